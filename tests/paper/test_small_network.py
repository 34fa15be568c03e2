"""Experiments 1A and 1B: what is run under each preset, and every loss once."""

import json
from dataclasses import replace

import keras
import numpy as np
import pytest

from paper import small_network as module
from paper.experiment import PRESETS, key
from paper.paper_numbers import MEASURES, OTHER_LOSSES
from paper.small_network import SCHEDULES, Schedule, SmallNetwork
from structent.errors import StructentError

# Table 1 of the paper: training set size, trials, learning rate, epochs.
PAPER = [
    (50_000, 1, 0.00005, 600),
    (10_000, 5, 0.00005, 600),
    (5_000, 10, 0.00005, 1000),
    (2_500, 10, 0.00003, 1500),
    (1_000, 10, 0.00003, 1500),
]


def runs(preset, experiment="1A", sizes=None):
    return SmallNetwork(None, preset, experiment, sizes).runs()


def how_it_trains(monkeypatch, preset, size, trial=0):
    """Return what a run asks of the training, without the training."""
    asked = {}
    monkeypatch.setattr(module, "read_images", lambda _: "images")
    monkeypatch.setattr(module, "images_of_trial", lambda images, **of: (images, of))
    monkeypatch.setattr(
        module, "image_trial", lambda images, _, **how: asked.update(images=images, **how)
    )
    settings = next(run for run in runs(preset) if (run["size"], run["trial"]) == (size, trial))
    SmallNetwork(None, preset, "1A").run(settings, 1)
    return asked


# The runs


def test_the_papers_sizes_trials_learning_rates_and_epochs_are_run():
    done = {
        (
            run["size"],
            SCHEDULES["paper"][run["size"]].n_trials,
            run["schedule"]["learning_rate"],
            run["schedule"]["epochs"],
        )
        for run in runs("paper")
    }
    assert done == set(PAPER)


@pytest.mark.parametrize(("size", "n_trials", "learning_rate", "epochs"), PAPER)
def test_a_run_trains_as_the_paper_says(monkeypatch, size, n_trials, learning_rate, epochs):
    asked = how_it_trains(monkeypatch, "paper", size, trial=n_trials - 1)
    optimizer = asked["optimizer_of"](7)

    assert isinstance(optimizer, keras.optimizers.RMSprop)
    assert float(optimizer.learning_rate) == pytest.approx(learning_rate)
    assert (asked["batch_size"], asked["n_epochs"], asked["measured_every"]) == (32, epochs, 1)
    assert asked["seed"] == n_trials - 1
    assert asked["images"][1] == {
        "size": size, "trial": n_trials - 1, "n_validation": 2_000, "n_test": 10_000,
    }  # fmt: skip


@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_every_size_has_the_papers_losses_in_every_trial(preset):
    sizes = sorted(size for size, *_ in PAPER)
    expected = {
        (size, loss, trial)
        for size in sizes
        for loss in ("standard", "structured")
        for trial in range(SCHEDULES[preset][size].n_trials)
    }
    done = [
        (run["size"], run["loss"], run["trial"])
        for run in runs(preset)
        if run["loss"] not in OTHER_LOSSES
    ]

    assert sorted(set(done)) == sorted(expected) == sorted(done)


@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_other_losses_are_tried_on_5000_images_alone_in_the_same_trials(preset):
    others = [run for run in runs(preset) if run["loss"] in OTHER_LOSSES]
    n_trials = SCHEDULES[preset][5000].n_trials

    assert {run["size"] for run in others} == {5000}
    assert sorted((run["loss"], run["trial"]) for run in others) == sorted(
        (loss, trial) for loss in OTHER_LOSSES for trial in range(n_trials)
    )
    assert {run["loss"] for run in others} == {
        *("label smoothing", "hierarchical .1", "hierarchical .3", "hierarchical .5"),
        *("soft labels 10", "soft labels 30"),
    }


def test_the_papers_losses_come_first_and_pairs_together():
    losses = [run["loss"] for run in runs("quick")]
    first_other = next(place for place, loss in enumerate(losses) if loss in OTHER_LOSSES)

    assert losses[:first_other] == ["standard", "structured"] * (first_other // 2)
    assert set(losses[first_other:]) == set(OTHER_LOSSES)


@pytest.mark.parametrize("preset", PRESETS)
def test_1b_is_1as_standard_and_structured_and_the_scrambled_structure(preset):
    of_1a = {key(run) for run in runs(preset)}
    shared = [run for run in runs(preset, "1B") if key(run) in of_1a]
    own = [run for run in runs(preset, "1B") if key(run) not in of_1a]
    size = 40 if preset == "smoke" else 5000

    assert {run["loss"] for run in shared} == {"standard", "structured"}
    assert {run["loss"] for run in own} == {"scrambled"}
    assert {run["size"] for run in (*shared, *own)} == {size}
    assert {run["experiment"] for run in own} == {"1B"}
    assert sorted(run["trial"] for run in own) == list(range(SCHEDULES[preset][size].n_trials))
    assert len(shared) == 2 * len(own)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("experiment", ["1A", "1B"])
def test_no_two_runs_are_one(preset, experiment):
    keys = [key(run) for run in runs(preset, experiment)]

    assert len(set(keys)) == len(keys) > 0


def test_settings_are_plain_json_and_say_what_was_run():
    settings = runs("quick", sizes=(10_000,))[0]

    assert json.loads(json.dumps(settings)) == settings
    assert {name: settings[name] for name in ("experiment", "preset", "network", "size")} == {
        "experiment": "1A", "preset": "quick", "network": "small CNN", "size": 10_000,
    }  # fmt: skip


def test_wanted_sizes_alone_are_run():
    assert {run["size"] for run in runs("quick", sizes=(1000, 2500))} == {1000, 2500}


def test_sizes_that_the_experiment_does_not_have_are_refused():
    with pytest.raises(StructentError, match=r"must be among 1000, .*50000, got 700"):
        runs("quick", sizes=(700,))
    with pytest.raises(StructentError, match="must be among 5000, got 1000"):
        runs("quick", "1B", sizes=(1000,))


def test_the_quick_rate_falls_to_0_along_a_cosine(monkeypatch):
    asked = how_it_trains(monkeypatch, "quick", 5000)
    schedule = SCHEDULES["quick"][5000]
    optimizer = asked["optimizer_of"](11)
    rates = []
    for step in (0, schedule.epochs * 11 // 2, schedule.epochs * 11):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))

    first = schedule.learning_rate
    assert rates == pytest.approx([first, first / 2, 0.0], abs=1e-9)


@pytest.mark.parametrize("size", [1000, 2500])
def test_the_quick_rates_add_up_to_the_papers_where_images_are_few(monkeypatch, size):
    def added_up(preset):
        asked = how_it_trains(monkeypatch, preset, size)
        optimizer, total = asked["optimizer_of"](1), 0.0
        for epoch in range(asked["n_epochs"]):
            optimizer.iterations.assign(epoch)
            total += float(optimizer.learning_rate)
        return total

    assert added_up("quick") == pytest.approx(added_up("paper"), rel=0.02)


# A run


@pytest.fixture(scope="module")
def results(data):
    """The results of the first trial, by loss."""
    experiments = [SmallNetwork(data, "smoke", which) for which in ("1A", "1B")]
    return {
        run["loss"]: experiment.run(run, 1)
        for experiment in experiments
        for run in experiment.runs()
        if run["trial"] == 0
    }


@pytest.mark.slow
def test_every_loss_runs_and_gives_every_measure_after_every_epoch(results):
    assert set(results) == {"standard", "structured", "scrambled", *OTHER_LOSSES}
    for result in results.values():
        assert result["epochs"] == [1, 2]
        for part in ("validation", "test"):
            assert list(result[part]) == list(MEASURES)
            assert np.isfinite(list(result[part].values())).all()
            assert np.shape(list(result[part].values())) == (6, 2)


@pytest.mark.slow
def test_losses_give_results_of_their_own(results):
    trajectories = {tuple(result["test"]["cross-entropy"]) for result in results.values()}

    assert len(trajectories) == len(results)


@pytest.mark.slow
def test_an_experiment_again_gives_the_same(data, results):
    experiment = SmallNetwork(data, "smoke", "1B")
    again, other_trial = (
        experiment.run(run, 1) for run in experiment.runs() if run["loss"] == "scrambled"
    )
    assert again == results["scrambled"]
    assert other_trial != again


def test_the_whole_set_is_run_without_its_validation_images(data, monkeypatch):
    """As 50,000 images are, of which there are so many."""
    whole = Schedule(1, 1e-3, 1, 1, decay="cosine", n_validation=20, n_test=20)
    monkeypatch.setitem(SCHEDULES, "smoke", {110: whole})
    experiment = SmallNetwork(data, "smoke", "1A")
    (settings, *_) = experiment.runs()

    assert settings["size"] == 110
    assert np.isfinite(experiment.run(settings, 1)["test"]["cross-entropy"]).all()


def test_pages_and_results_are_named_by_the_experiment():
    named = [SmallNetwork(None, "smoke", which) for which in ("1A", "1B")]

    assert [one.name for one in named] == ["cifar100-1A", "cifar100-1B"]
    assert {one.kept_in for one in named} == {"cifar100"}


def test_more_trials_leave_those_that_were_done_as_they_are(monkeypatch):
    before = runs("quick")
    schedules = {
        size: replace(schedule, n_trials=schedule.n_trials + 1)
        for size, schedule in SCHEDULES["quick"].items()
    }
    monkeypatch.setitem(SCHEDULES, "quick", schedules)
    after = runs("quick")

    assert len(after) > len(before)
    assert all(run in after for run in before)


@pytest.mark.parametrize("size", [1000, 2500])
def test_with_few_images_there_are_as_many_trials_as_in_the_paper(size):
    assert SCHEDULES["quick"][size].n_trials == SCHEDULES["paper"][size].n_trials == 10
