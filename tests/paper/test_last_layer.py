"""Experiment 1D: what is run under each preset, on which views, and every loss once."""

import keras
import numpy as np
import pytest

from paper import training as module
from paper.experiment import PRESETS, key
from paper.features import KeptFeatures
from paper.images import augmented, read_images
from paper.last_layer import SCHEDULES, LastLayer, Schedule
from paper.networks import feature_extractor, read_backbone
from paper.paper_numbers import MEASURES, OTHER_LOSSES
from tests.paper.made_up_images import write_npz


def silent(*_):
    """Nobody looks at the progress."""


def runs(preset):
    return LastLayer(None, preset, "tiny.keras", "cache").runs()


@pytest.fixture
def experiment(data, backbone, tmp_path):
    made = LastLayer(data, "smoke", backbone, tmp_path / "cache")
    made.prepare(1, silent)
    return made


@pytest.fixture
def trained(monkeypatch):
    """What each run gives to the training, which is left out."""
    given = []

    def trajectories(network, epochs, judged, _, **how):
        given.append((network, epochs, judged, how))
        return {}

    monkeypatch.setattr(module, "trajectories", trajectories)
    return given


# The runs


def test_the_paper_trains_3_times_on_1000_images_of_224_pixels():
    schedule = SCHEDULES["paper"]

    assert (schedule.size, schedule.n_trials, schedule.pixels) == (1000, 3, 224)
    assert (schedule.epochs, schedule.batch_size, schedule.n_test) == (300, 40, 10_000)
    assert schedule.n_views >= 20
    assert SCHEDULES["quick"].n_views >= 20


@pytest.mark.parametrize("preset", PRESETS)
def test_all_losses_are_run_in_every_trial_the_papers_first(preset):
    done = [(run["trial"], run["loss"]) for run in runs(preset)]
    n_trials = SCHEDULES[preset].n_trials

    assert done[: 2 * n_trials] == [
        (trial, loss) for trial in range(n_trials) for loss in ("standard", "structured")
    ]
    assert sorted(done[2 * n_trials :]) == sorted(
        (trial, loss) for trial in range(n_trials) for loss in OTHER_LOSSES
    )
    assert len({key(run) for run in runs(preset)}) == len(done)
    assert {(run["experiment"], run["network"]) for run in runs(preset)} == {("1D", "tiny")}


def test_the_last_layer_learns_as_the_paper_says(data, backbone, tmp_path, monkeypatch, trained):
    # The paper's own, on fewer and smaller images.
    papers = Schedule(size=40, pixels=32, n_views=2, n_validation=20, n_test=20, n_trials=1)
    monkeypatch.setitem(SCHEDULES, "smoke", papers)
    experiment = LastLayer(data, "smoke", backbone, tmp_path)
    experiment.prepare(1, silent)
    experiment.run(experiment.runs()[0], 1)
    (network, epochs, _, how) = trained[0]
    optimizer = network.optimizer

    assert isinstance(optimizer, keras.optimizers.SGD)
    assert float(optimizer.learning_rate) == pytest.approx(0.002)
    assert (optimizer.momentum, optimizer.nesterov) == (0.9, True)
    assert how == {"n_epochs": 300, "every": 10}
    assert len(epochs[0][0]) == 40
    assert [weight.shape for weight in network.get_weights()] == [(6, 100), (100,)]


# Features


def test_the_features_are_those_of_the_views_and_of_the_images_themselves(
    experiment, trained, backbone, data
):
    images = read_images(data)
    network = feature_extractor(read_backbone(backbone), pixels=32)
    views = [
        network.predict(
            augmented(images.x_train[40:80], np.random.default_rng((1, view))) / 255, verbose=0
        )
        for view in (0, 1)
    ]
    settings = next(run for run in experiment.runs() if run["trial"] == 1)
    experiment.run(settings, 1)
    (_, epochs, judged, _) = trained[0]

    assert judged.validation[0] == pytest.approx(
        network.predict(images.x_train[80:100] / 255, verbose=0), abs=1e-5
    )
    assert judged.validation[1].tolist() == images.y_train[80:100].tolist()
    assert judged.test[0] == pytest.approx(
        network.predict(images.x_test[:20] / 255, verbose=0), abs=1e-5
    )
    assert judged.test[1].tolist() == images.y_test[:20].tolist()
    _assert_each_row_is_one_of(views, epochs, images.y_train[40:80])


def _assert_each_row_is_one_of(views, epochs, labels):
    """Every image in every epoch by one of its views, both of which are taken."""
    taken = set()
    for _ in range(3):
        epochs.on_epoch_begin()
        inputs, targets = epochs[0]
        assert sorted(targets) == sorted(labels)
        for features, target in zip(inputs, targets, strict=True):
            found = [
                (view, row)
                for view in (0, 1)
                for row in np.flatnonzero(labels == target)
                if np.allclose(views[view][row], features, atol=1e-5)
            ]
            assert len(found) == 1
            taken.add(found[0])
    assert {view for view, _ in taken} == {0, 1}
    assert {row for _, row in taken} == set(range(40))


def test_all_losses_are_shown_the_same_views_from_the_same_weights(experiment, trained):
    settings = [run for run in experiment.runs() if run["trial"] == 0]
    for run in settings:
        experiment.run(run, 1)
    first, *others = [(network.get_weights(), epochs[0][0]) for network, epochs, *_ in trained]

    assert len(others) == 7
    for weights, inputs in others:
        assert all(map(np.array_equal, weights, first[0]))
        assert np.array_equal(inputs, first[1])


def test_trials_differ_in_views_and_weights(experiment, trained):
    for run in experiment.runs()[::2][:2]:
        experiment.run(run, 1)
    (first, first_epochs, *_), (second, second_epochs, *_) = trained

    assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])
    assert not np.allclose(first_epochs[0][0], second_epochs[0][0])


def test_features_are_computed_once(experiment, monkeypatch):
    computed = []
    monkeypatch.setattr(KeptFeatures, "_network", property(lambda _: computed.append(1)))
    experiment.prepare(1, silent)

    assert computed == []


def test_progress_tells_how_many_parts_there_are(data, backbone, tmp_path):
    told = []
    LastLayer(data, "smoke", backbone, tmp_path).prepare(1, lambda *now: told.append(now))

    # Two trials, each of two views, validation images and test images.
    assert told == [("features", done, 8) for done in range(8)]
    assert len(list(tmp_path.iterdir())) == 7  # the test images are the same


def test_other_images_have_other_features(experiment, backbone, tmp_path):
    other = LastLayer(
        write_npz(tmp_path / "other.npz", seed=1), "smoke", backbone, experiment.cache
    )
    settings = experiment.runs()[0]
    other.prepare(1, silent)

    assert len(list(experiment.cache.iterdir())) == 14
    assert other.run(settings, 1) != experiment.run(settings, 1)


# A run


def test_every_loss_runs_and_gives_every_measure_after_every_epoch(experiment):
    results = {run["loss"]: experiment.run(run, 1) for run in experiment.runs()[::-1]}

    assert set(results) == {"standard", "structured", *OTHER_LOSSES}
    assert results["standard"] != results["structured"]
    for result in results.values():
        assert result["epochs"] == [1, 2]
        assert list(result["test"]) == list(MEASURES)
        assert np.isfinite([*result["validation"].values(), *result["test"].values()]).all()


def test_a_run_again_gives_the_same(experiment):
    settings = experiment.runs()[1]

    assert experiment.run(settings, 1) == experiment.run(settings, 1)


def test_the_page_and_the_results_have_names(experiment):
    assert (experiment.name, experiment.kept_in) == ("cifar100-1D", "cifar100")
