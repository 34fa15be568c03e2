"""The page on learning rates: rate and epoch are chosen by slow loops over made-up runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from paper import fine_tuning
from paper.beyond import Asked, learning_rate
from paper.beyond.learning_rate import RATES, LearningRate
from paper.experiment import Finished, key
from paper.fine_tuning import SCHEDULES, FineTuning
from paper.paper_numbers import MEASURES

OWN = LearningRate(Path("folder"), "mine.keras")
QUICK = FineTuning(Path("folder"), "quick", "mine.keras")
LOWER_IS_BETTER = ("cross-entropy", "structured")
METRICS = ("cross-entropy", "accuracy", "accuracy 2", "accuracy 3", "accuracy 4")


def made_up(settings):
    rng = np.random.default_rng(
        [settings["trial"], len(settings["loss"]), int(1e6 * rate_of(settings))]
    )
    parts = {
        part: {name: rng.uniform(0.2, 0.9, size=4).round(5).tolist() for name in MEASURES}
        for part in ("validation", "test")
    }
    return Finished(settings, {"epochs": [2, 4, 6, 8], **parts}, 60.0, "2026-01-02", "a machine")


def rate_of(settings):
    return settings["schedule"]["learning_rate"]


RUNS = [made_up(run) for run in OWN.runs()]
QUICK_RUNS = [made_up(run) for run in QUICK.runs()]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    for name, runs in (("learning_rate", RUNS), ("cifar100", QUICK_RUNS)):
        lines = [json.dumps(asdict(run)) + "\n" for run in runs]
        (out / f"{name}.jsonl").write_text("".join(lines))
    asked = Asked(Path("folder"), out, "python -m paper learning_rate", backbone="mine.keras")
    return learning_rate.page(asked).text


def test_the_other_rates_are_run_for_both_losses_in_every_trial_of_the_quick_preset():
    done = {(rate_of(run), run["trial"], run["loss"]) for run in OWN.runs()}
    quick = SCHEDULES["quick"]
    assert done == {
        (rate, trial, loss)
        for rate in RATES
        if rate != quick.learning_rate
        for trial in range(quick.n_trials)
        for loss in ("standard", "structured")
    }
    assert len({key(run) for run in [*OWN.runs(), *QUICK.runs()]}) == len(RUNS) + len(QUICK_RUNS)


def test_a_run_has_its_own_rate_and_everything_else_of_the_preset(monkeypatch):
    asked = []
    monkeypatch.setattr(fine_tuning, "read_images", lambda _: "images")
    monkeypatch.setattr(fine_tuning, "images_of_trial", lambda _, **of: of)
    monkeypatch.setattr(
        fine_tuning, "image_trial", lambda images, loss, **how: asked.append((images, loss, how))
    )
    quick = QUICK.runs()[3]
    own = next(
        run for run in OWN.runs() if (run["loss"], run["trial"]) == (quick["loss"], quick["trial"])
    )
    OWN.run(own, 1)
    QUICK.run(quick, 1)

    functions = ("network_of", "optimizer_of")
    (own_images, own_loss, how), (images, loss, of_quick) = asked
    assert (own_images, own_loss) == (images, loss)
    assert float(how["optimizer_of"](7).learning_rate) == pytest.approx(rate_of(own))
    assert {name: how[name] for name in how if name not in functions} == {
        name: of_quick[name] for name in of_quick if name not in functions
    }


def value_at_the_best(loss, trial, metric):
    """Return the test value where the validation value of the metric is best of all rates."""
    best, value = None, None
    for run in [*RUNS, *QUICK_RUNS]:
        if (run.settings["loss"], run.settings["trial"]) == (loss, trial):
            for at, judged in enumerate(run.result["validation"][metric]):
                score = -judged if metric in LOWER_IS_BETTER else judged
                if best is None or score > best:
                    best, value = score, run.result["test"][metric][at]
    return value


@pytest.mark.parametrize("loss", ["standard", "structured"])
def test_values_are_those_at_the_rate_and_epoch_that_validation_images_choose(text, loss):
    section = text.split("## The rate chosen on validation images\n")[1].split("\n## ")[0]
    (line,) = [line for line in section.splitlines() if f"| {loss} | chosen epoch" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")][3:]
    for metric, cell in zip(METRICS, cells, strict=True):
        values = [value_at_the_best(loss, trial, metric) for trial in range(3)]
        error = np.std(values, ddof=1) / 3**0.5
        assert cell == f"{np.mean(values):.4f} ± {error:.4f}"


def test_how_often_each_rate_is_chosen_is_said(text):
    for loss in ("standard", "structured"):
        chosen = []
        for trial in range(3):
            same = [
                run
                for run in [*RUNS, *QUICK_RUNS]
                if (run.settings["loss"], run.settings["trial"]) == (loss, trial)
            ]
            lowest = [min(run.result["validation"]["cross-entropy"]) for run in same]
            chosen.append(rate_of(same[lowest.index(min(lowest))].settings))
        said = ", ".join(f"{rate:g} in {chosen.count(rate)} of 3" for rate in sorted(set(chosen)))
        assert f"{loss} {said}" in text


def test_every_rate_has_a_section(text):
    for rate in RATES:
        assert f"## The rate {rate:g}\n" in text


def test_the_rate_of_the_preset_is_the_middle_one_of_the_network_that_it_was_chosen_for():
    lowest, middle, highest = LearningRate(Path("folder"), "mobilenet_v2_imagenet.keras").rates
    assert lowest < middle == SCHEDULES["quick"].learning_rate < highest


def test_every_network_has_a_page_of_its_own(tmp_path):
    for backbone in ("one.keras", "two.keras"):
        asked = Asked(Path("folder"), tmp_path, "python -m paper learning_rate", backbone=backbone)
        assert learning_rate.page(asked).name == f"learning_rate-{Path(backbone).stem}"


def test_runs_of_other_networks_are_left_out(text, tmp_path):
    others = [replace(run, settings={**run.settings, "network": "other"}) for run in QUICK_RUNS]
    for name, runs in (("learning_rate", RUNS), ("cifar100", [*QUICK_RUNS, *others])):
        lines = [json.dumps(asdict(run)) + "\n" for run in runs]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    asked = Asked(Path("folder"), tmp_path, "python -m paper learning_rate", backbone="mine.keras")
    assert learning_rate.page(asked).text == text
