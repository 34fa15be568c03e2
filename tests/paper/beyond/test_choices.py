"""Which should I choose: the runs, and the page of made-up runs against slow loops."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from paper import ways
from paper.beyond import Asked, choices
from paper.beyond.choices import CASES, HIERARCHICAL, LEARNED, OTHERS, OURS, SMOOTHED, SOFT, Choices
from paper.experiment import Finished, key
from paper.weather import Draw, Examples
from structent.structure import hierarchy, ordinal

STUDENTS_T = 2.7764451  # 97.5 % of Student's t with 4 degrees of freedom, from a table
HIERARCHIES = ("CLINC-150", "regions of places", "CIFAR-100")


def arms_of(settings):
    if settings["arms"] == "structent":
        return (ways.NONE, *OURS)
    if settings["arms"] == "other losses":
        return (
            (HIERARCHICAL, SOFT, SMOOTHED) if settings["task"] in HIERARCHIES else (SOFT, SMOOTHED)
        )
    return (settings["arms"],)


def made_up(settings):
    """Return a finished run: an arm gains the same in every trial, but for some noise."""
    known = [len(settings["task"]), settings["size"], len(settings["model"])]
    of_cell = np.random.default_rng([*known, len(settings["arms"])])
    of_trial = np.random.default_rng([*known, settings["trial"]])
    noise = np.random.default_rng([*known, len(settings["arms"]), settings["trial"]])
    level, result = 2.0 + of_trial.normal(scale=0.2), {}
    for arm in arms_of(settings):
        gain = 0.0 if arm == ways.NONE else of_cell.normal(scale=0.06)
        own = float(level + gain + noise.normal(scale=0.02))
        result[arm] = {
            "log_loss": round(own, 6), "accuracy": round(0.4 - gain, 6),
            "severity": round(1.5 + 2.0 * gain, 6),
            "validation": round(own + float(noise.normal(scale=0.02)), 6),
            "setting": [0.4], "seconds": 0.25,
        }  # fmt: skip
    return Finished(settings, result, 36.0, "2026-01-02", "a machine", {})


RUNS = [made_up(settings) for settings in Choices(Path("folder")).runs()]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    lines = [json.dumps(asdict(run)) + "\n" for run in RUNS]
    (out / "choices.jsonl").write_text("".join(lines))
    return choices.page(Asked(Path("folder"), out, "python -m paper choices --data folder"))


def results(case):
    """Return the results of trials 0 to 4, with those of all arms."""
    found = [{} for _ in range(5)]
    for run in RUNS:
        named = (run.settings["task"], run.settings["size"], run.settings["model"])
        if named == (case.task.name, case.size, case.model):
            found[run.settings["trial"]] |= run.result
    return found


def difference(first, second):
    each = [one - other for one, other in zip(first, second, strict=True)]
    mean = sum(each) / 5
    error = (sum((value - mean) ** 2 for value in each) / 4 / 5) ** 0.5
    return mean, STUDENTS_T * error


def chosen(trial):
    """Return our arm of least validation loss."""
    return min((trial[arm] for arm in (ways.NONE, *OURS)), key=lambda each: each["validation"])


def lines_of(text, heading):
    section = text.split(f"{heading}\n")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def test_every_run_is_another_one_and_every_kind_of_structure_is_there():
    runs = Choices(Path("folder")).runs()
    assert len({key(run) for run in runs}) == len(runs)
    assert {run["trial"] for run in runs} == set(range(5))
    kinds = {case.task.name for case in CASES}
    assert {"months", "counties", "hours at JFK", *HIERARCHIES} < kinds
    assert len([case for case in CASES if "mord" in case.peers]) == 3


@pytest.mark.parametrize("place", range(len(CASES)))
def test_the_short_table_has_the_arm_that_validation_chooses_and_the_best_other(page, place):
    case, trials = CASES[place], results(CASES[place])
    _, _, *rows = lines_of(page.text, "## In short")
    task, model, none, ours, other, better = rows[place]
    assert (task, model) == (f"{case.task.name}, {case.size:,} {case.task.unit}", case.model)
    plain = [trial[ways.NONE]["log_loss"] for trial in trials]
    own = [chosen(trial)["log_loss"] for trial in trials]
    assert none == f"{sum(plain) / 5:.3f}"
    mean, half = difference(own, plain)
    assert ours.strip("*") == f"{mean:+.3f} ± {half:.3f}"
    assert ours.startswith("**") == (mean + half < 0)

    losses = {
        arm: [trial[arm]["log_loss"] for trial in trials] for arm in OTHERS if arm in trials[0]
    }
    best = min(losses, key=lambda arm: sum(losses[arm]))
    mean, half = difference(losses[best], plain)
    assert other.replace("*", "") == f"{best} {mean:+.3f} ± {half:.3f}"
    mean, half = difference(own, losses[best])
    expected = "structent" if mean + half < 0 else best if mean - half > 0 else "not clear"
    assert better == expected


def test_every_verdict_occurs_in_the_made_up_runs(page):
    _, _, *rows = lines_of(page.text, "## In short")
    assert len({row[-1] for row in rows}) > 2


@pytest.mark.parametrize(
    ("score", "words", "sign"),
    [
        ("log_loss", "a lower log loss", 1),
        ("accuracy", "a higher accuracy", -1),
        ("severity", "milder mistakes", 1),
    ],
)
def test_where_another_loss_or_package_is_better_is_said(page, score, words, sign):
    count, named = 0, []
    for case in CASES:
        trials = results(case)
        own = [sign * chosen(trial)[score] for trial in trials]
        for arm in OTHERS:
            if arm in trials[0]:
                mean, half = difference([sign * trial[arm][score] for trial in trials], own)
                if mean + half < 0:
                    count += 1
                    named.append(f"{arm} on {case.where}")
    assert count
    assert (
        f"- Comparisons in which another loss or package has {words} than structent, beyond the "
        f"interval: {count} ({'; '.join(named)})."
    ) in page.text


def test_every_score_of_every_arm_is_there(page):
    case = CASES[1]
    trials = results(case)
    heading = f"### {case.where[0].upper()}{case.where[1:]}"
    _, _, *rows = lines_of(page.text, heading)
    assert [row[0] for row in rows] == [
        "none", "structured loss", "prior", "loss and parameters", LEARNED,
        "structent, chosen by validation", SOFT, SMOOTHED, "mord",
    ]  # fmt: skip
    none, smoothed = rows[0], rows[-2]
    plain, other = ([trial[arm]["accuracy"] for trial in trials] for arm in (ways.NONE, SMOOTHED))
    assert none[3] == f"{sum(plain) / 5:.4f}"
    mean, half = difference(other, plain)
    assert smoothed[3].strip("*") == f"{mean:+.4f} ± {half:.4f}"
    assert smoothed[3].startswith("**") == (mean - half > 0)
    assert smoothed[-1] == "0.250 s"


def test_the_page_tells_what_was_run(page):
    assert f"{len(RUNS)} of {len(RUNS)} runs are finished" in page.text
    assert "nan" not in page.text


# One trial of a small task


def planted(classes, per_class=8):
    names = np.array(classes)

    def part(seed):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(len(names)), per_class)
        features = np.column_stack([codes // 2, codes % 2, codes]) * 1.0
        return Examples(features + rng.normal(size=features.shape), names[codes])

    return Draw(part(0), part(1), part(2))


TREE = hierarchy({f"c{code}": (f"b{code // 2}",) for code in range(6)})


@pytest.mark.parametrize("model", ["linear", "trees"])
@pytest.mark.parametrize("structure", [TREE, ordinal(range(4))], ids=["hierarchy", "order"])
def test_each_arm_has_its_scores(model, structure):
    rows = planted(structure.classes)
    case = choices.Case(None, 8, model)
    found = {
        arm: tried
        for arms in ("structent", "other losses")
        for arm, tried in choices._tried(case, arms, rows, structure, 0)
    }
    nested = model == "linear" and structure.is_nested
    assert set(found) == {ways.NONE, *OURS, SOFT, SMOOTHED, *([HIERARCHICAL] if nested else [])}
    for tried in found.values():
        scores = choices.scores(tried.model, rows, structure)
        proba = tried.model.predict_proba(rows.test.features)
        place = np.searchsorted(tried.model.classes_, rows.test.labels)
        loss = -np.log(proba[np.arange(len(place)), place]).mean()
        assert scores["log_loss"] == pytest.approx(loss, abs=1e-6)
        guess = tried.model.classes_[proba.argmax(axis=1)]
        wrong = [
            structure.distance(true, said)
            for true, said in zip(rows.test.labels.tolist(), guess.tolist(), strict=True)
            if true != said
        ]
        assert scores["severity"] == pytest.approx(np.mean(wrong), abs=1e-6)
        assert json.loads(json.dumps(tried.setting)) == tried.setting
        assert tried.seconds > 0


def test_hierarchical_cross_entropy_keeps_its_own_weights(monkeypatch):
    asked = []

    class Remembers(ways.Linear):
        def found(self, rows, structure, setting):
            asked.append(
                (structure.weights.tolist(), structure.with_singleton_weight(setting.in_loss))
            )
            return super().found(rows, structure, setting)

    monkeypatch.setattr(ways, "Linear", Remembers)
    choices._hierarchical(planted(TREE.classes), TREE, 0)
    # exp(-alpha) on the classes, the rest on the blocks above them.
    expected = [[1 - np.exp(-alpha), np.exp(-alpha)] for alpha in choices.ALPHAS]
    assert [weights for weights, _ in asked] == [pytest.approx(each) for each in expected]
    for weights, used in asked:
        assert used.weights.tolist() == pytest.approx(weights)
