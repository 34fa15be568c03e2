"""Experiment 1C: what is run under each preset, and a run of a file and of a name."""

import keras
import numpy as np
import pytest

from paper import fine_tuning as module
from paper.experiment import PRESETS, key
from paper.fine_tuning import SCHEDULES, FineTuning
from paper.paper_numbers import MEASURES
from structent.errors import StructentError


def runs(preset, backbone="ResNet50"):
    return FineTuning(None, preset, backbone).runs()


def test_the_paper_trains_once_on_all_images_with_adam_at_96_pixels(monkeypatch, backbone):
    asked, pixels = {}, []
    monkeypatch.setattr(module, "read_images", lambda _: "images")
    monkeypatch.setattr(module, "images_of_trial", lambda _, **of: of)
    monkeypatch.setattr(
        module, "image_trial", lambda images, _, **how: asked.update(images=images, **how)
    )
    monkeypatch.setattr(module, "with_head", lambda *_, **how: pixels.append(how["pixels"]))
    experiment = FineTuning(None, "paper", backbone)
    experiment.run(experiment.runs()[0], 1)
    asked["network_of"](100)
    optimizer = asked["optimizer_of"](7)

    assert isinstance(optimizer, keras.optimizers.Adam)
    assert float(optimizer.learning_rate) == pytest.approx(1e-5)
    assert (asked["batch_size"], asked["n_epochs"], asked["measured_every"]) == (128, 250, 1)
    assert asked["images"]["size"] == 50_000
    assert asked["images"]["n_test"] == 10_000
    assert pixels == [96]


@pytest.mark.parametrize("preset", PRESETS)
def test_both_losses_are_run_in_every_trial(preset):
    done = [(run["trial"], run["loss"]) for run in runs(preset)]

    assert done == [
        (trial, loss)
        for trial in range(SCHEDULES[preset].n_trials)
        for loss in ("standard", "structured")
    ]
    assert len({key(run) for run in runs(preset)}) == len(done)
    assert {run["experiment"] for run in runs(preset)} == {"1C"}
    assert {run["size"] for run in runs(preset)} == {SCHEDULES[preset].size}


def test_the_paper_has_one_trial_of_50000_images():
    assert [run["size"] for run in runs("paper")] == [50_000, 50_000]


def test_networks_have_runs_of_their_own():
    files = ["some/where/mine.keras", "MobileNetV2", "ResNet50"]
    names = [runs("quick", backbone)[0]["network"] for backbone in files]

    assert names == ["mine", "MobileNetV2", "ResNet50"]


def test_each_loss_runs_from_a_file_and_gives_every_measure(data, backbone):
    experiment = FineTuning(data, "smoke", backbone)
    results = [experiment.run(run, 1) for run in experiment.runs()]

    assert len({tuple(result["test"]["cross-entropy"]) for result in results}) == 4
    for result in results:
        assert result["epochs"] == [1, 2]
        assert list(result["test"]) == list(MEASURES)
        assert np.isfinite([*result["validation"].values(), *result["test"].values()]).all()


def test_a_run_again_gives_the_same(data, backbone):
    experiment = FineTuning(data, "smoke", backbone)
    settings = experiment.runs()[1]

    assert experiment.run(settings, 1) == experiment.run(settings, 1)


@pytest.mark.slow
def test_resnet50_is_run(data, monkeypatch):
    real = keras.applications.ResNet50
    monkeypatch.setattr(
        keras.applications, "ResNet50", lambda **options: real(**{**options, "weights": None})
    )
    experiment = FineTuning(data, "smoke", "ResNet50")
    result = experiment.run(experiment.runs()[1], 1)

    assert result["epochs"] == [1, 2]
    assert len(result["test"]["cross-entropy"]) == 2


def test_an_unknown_network_is_refused(data):
    experiment = FineTuning(data, "smoke", "VGG16")
    with pytest.raises(StructentError, match="got 'VGG16'"):
        experiment.run(experiment.runs()[0], 1)


def test_the_page_and_the_results_have_names():
    experiment = FineTuning(None, "smoke", "ResNet50")

    assert (experiment.name, experiment.kept_in) == ("cifar100-1C", "cifar100")
