"""The page on a structured last layer: the recorded runs beside made-up copies of them."""

import json
import shutil
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from paper.beyond import Asked, layers
from paper.beyond.layers import FromNothing, OnFrozenFeatures
from paper.experiment import Finished, Kept, key
from paper.last_layer import LastLayer
from paper.paper_numbers import COLUMNS, LAYERS
from paper.small_network import SmallNetwork
from tests.conftest import PROJECT

RECORDED = PROJECT / "docs" / "results"
PRESETS = {"1A": "quick", "1D": "paper"}
PLACES = [("1A", 1000), ("1A", 2500), ("1D", 1000)]
WHAT = ("experiment", "size", "loss", "trial")
EXPERIMENTS = (FromNothing(Path("folder")), OnFrozenFeatures(Path("folder")))
OF_PAPER = {
    tuple(run.settings[name] for name in WHAT): run
    for run in Kept(RECORDED / "cifar100.jsonl").finished()
    if run.settings["preset"] == PRESETS.get(run.settings["experiment"])
}
# By how much cross-entropy differs from that of the standard loss, in trials 0 to 2.
SHIFTS = {
    "structured layer": (-0.10, -0.12, -0.08),
    "scrambled layer": (0.05, -0.04, 0.02),
    "loss and layer": (-0.20, -0.21, -0.22),
}
STUDENTS_T = 4.3026527  # 97.5 % of Student's t with 2 degrees of freedom, from a table


def copied(settings):
    """Return the run of the standard loss as that of another one, shifted at every epoch."""
    standard = settings | {"loss": "standard"}
    run = OF_PAPER[tuple(standard[name] for name in WHAT)]
    result = deepcopy(run.result)
    for part in ("validation", "test"):
        shift = SHIFTS[settings["loss"]][settings["trial"]]
        result[part]["cross-entropy"] = [v + shift for v in result[part]["cross-entropy"]]
    return Finished(settings, result, run.seconds, run.date, run.machine)


RUNS = [copied(settings) for each in EXPERIMENTS for settings in each.runs()]


@pytest.fixture
def results(tmp_path):
    shutil.copy(RECORDED / "cifar100.jsonl", tmp_path)
    (tmp_path / "layers.jsonl").write_text("".join(json.dumps(asdict(run)) + "\n" for run in RUNS))
    return tmp_path


def lines_of(text, experiment, size):
    """Return the cells of a table by what is in the line and where it was read."""
    section = text.split(f"## {experiment}, {size:,} images\n")[1].split("\n## ")[0]
    found, what = {}, ""
    for line in section.splitlines()[3:]:
        _, named, read_at, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        what = named or what
        found[what, read_at] = cells
    return found


def text_of(differences):
    mean, error = np.mean(differences), np.std(differences, ddof=1) / 3**0.5
    text = f"{mean:+.4f} ± {error:.4f}"
    return f"**{text}**" if abs(mean) > STUDENTS_T * error else text


def page(results):
    return layers.page(Asked(Path("folder"), results, "python -m paper layers --data folder"))


@pytest.mark.parametrize(
    ("own", "paper"),
    [
        (EXPERIMENTS[0], SmallNetwork(Path("folder"), "quick", "1A")),
        (EXPERIMENTS[1], LastLayer(Path(), "paper", "mobilenet_v2_imagenet.keras", Path("kept"))),
    ],
)
def test_its_runs_are_those_of_the_paper_with_other_last_layers(own, paper):
    runs, of_paper = own.runs(), {key(run) for run in paper.runs()}
    places = {(run["experiment"], run["size"]) for run in runs}
    assert places == {place for place in PLACES if place[0] == runs[0]["experiment"]}
    assert len({key(run) for run in runs}) == len(runs) == len(places) * 3 * 3
    assert {run["loss"] for run in runs} == set(LAYERS)
    for run in runs:
        assert key(run) not in of_paper
        assert key(run | {"loss": "standard"}) in of_paper


@pytest.mark.parametrize(
    ("own", "paper"), [(EXPERIMENTS[0], SmallNetwork), (EXPERIMENTS[1], LastLayer)]
)
def test_a_run_is_done_by_the_experiment_of_the_paper(monkeypatch, own, paper):
    asked = []
    monkeypatch.setattr(paper, "run", lambda self, *args: asked.append((self.preset, *args)))
    settings = own.runs()[-1]
    own.run(settings, 2)
    assert asked == [(PRESETS[settings["experiment"]], settings, 2)]


@pytest.mark.parametrize(("experiment", "size"), PLACES)
@pytest.mark.parametrize("loss", LAYERS)
@pytest.mark.parametrize(
    "reading", ["chosen epoch", "least cross-entropy", "last epoch", "the paper's way"]
)
def test_differences_from_the_standard_loss_are_those_by_trial(
    results, experiment, size, loss, reading
):
    lines = lines_of(page(results).text, experiment, size)
    entropy, *_ = lines[f"{loss} - standard", f"{reading}, 3 trials"]
    assert entropy == text_of(SHIFTS[loss])


@pytest.mark.parametrize(("experiment", "size"), PLACES)
def test_differences_from_the_structured_loss_are_those_by_trial(results, experiment, size):
    lines = lines_of(page(results).text, experiment, size)
    last = []
    for trial in range(3):
        standard, structured = (
            OF_PAPER[experiment, size, loss, trial].result["test"]["cross-entropy"][-1]
            for loss in ("standard", "structured")
        )
        last.append(standard + SHIFTS["loss and layer"][trial] - structured)
    assert lines["loss and layer - structured", "last epoch, 3 trials"][0] == text_of(last)
    # Accuracies are those of the standard loss here, to the last bit.
    assert (
        lines["loss and layer - standard", "last epoch, 3 trials"][1:] == ["+0.0000 ± 0.0000"] * 4
    )


@pytest.mark.parametrize(("experiment", "size"), PLACES)
def test_recorded_values_are_those_at_the_epochs_that_validation_chooses(results, experiment, size):
    lines = lines_of(page(results).text, experiment, size)
    expected = []
    for metric in COLUMNS:
        best = np.argmin if metric == "cross-entropy" else np.argmax
        values = []
        for trial in range(3):
            result = OF_PAPER[experiment, size, "standard", trial].result
            values.append(result["test"][metric][best(result["validation"][metric])])
        expected.append(f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / 3**0.5:.4f}")
    assert lines["standard", "chosen epoch, 3 trials"] == expected


def test_the_page_tells_what_was_run(results):
    text = page(results).text
    assert "Command: `python -m paper layers --data folder`. 27 of 27 runs are finished" in text
    assert "Its weight of the singletons is 0.6." in text
    assert "nan" not in text
    assert "not run" not in text


def test_runs_that_are_not_finished_make_no_page(paper_command, results):
    lines = (results / "layers.jsonl").read_text().splitlines(keepends=True)
    (results / "layers.jsonl").write_text("".join(lines[:-1]))
    asked = ["layers", "--data", "folder", "--out", results, "--report-only"]
    code, out, err = paper_command(*asked)
    assert (code, out) == (2, "")
    assert "the page of layers needs all its runs (left: 1); leave out --report-only" in err
    assert not (results / "layers.md").exists()

    (results / "layers.jsonl").write_text("".join(lines))
    code, _, err = paper_command(*asked)
    assert code == 0, err
    assert (results / "layers.md").exists()


def test_what_takes_longer_is_run_where_it_is_asked_for_alone():
    def asked(*problems):
        return Asked(Path("folder"), Path("out"), "command", problems or None)

    names = [each.name for each in layers.experiments(asked())]
    assert names == ["layers-1A", "layers-1D"]
    large, tuned = layers.experiments(asked("1A-5000", "1C"))
    assert {(run["experiment"], run["size"]) for run in large.runs()} == {("1A", 5000)}
    assert {(run["experiment"], run["size"]) for run in tuned.runs()} == {("1C", 1000)}
    assert {run["network"] for run in tuned.runs()} == {"mobilenet_v2_imagenet"}
    for each in (large, tuned):
        assert {run["loss"] for run in each.runs()} == set(LAYERS)
        for run in each.runs():  # what is recorded of the same images stands beside it
            standard = OF_PAPER_AND_1C[run["experiment"], run["size"], "standard", run["trial"]]
            assert standard.settings == run | {"loss": "standard"}


OF_PAPER_AND_1C = {
    tuple(run.settings[name] for name in WHAT): run
    for run in Kept(RECORDED / "cifar100.jsonl").finished()
    if run.settings["preset"] == {**PRESETS, "1C": "quick"}.get(run.settings["experiment"])
    and run.settings["network"] != "resnet50_imagenet"  # 1C has two networks
}


def test_what_takes_longer_has_its_place_when_it_is_finished(results):
    assert "## 1C" not in page(results).text
    for each in (FromNothing(Path("folder"), (5000,)), layers.FineTuned(Path("folder"))):
        for settings in each.runs():
            standard = settings | {"loss": "standard"}
            run = OF_PAPER_AND_1C[tuple(standard[name] for name in WHAT)]
            Kept(results / "layers.jsonl").add(
                Finished(settings, run.result, run.seconds, run.date, run.machine)
            )
    text = page(results).text
    for experiment, size in (("1A", 5000), ("1C", 1000)):
        lines = lines_of(text, experiment, size)
        assert lines["structured layer - standard", "last epoch, 3 trials"][0] == "+0.0000 ± 0.0000"
