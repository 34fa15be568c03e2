"""Pairing: all losses of a trial share images, first weights, dropped units and draws."""

from functools import partial

import keras
import numpy as np
import pytest

from structent.experiments.cifar100 import paired_trial as module
from structent.experiments.cifar100.image_trial import image_trial
from structent.experiments.cifar100.images import read_images
from structent.experiments.cifar100.names import OTHER_LOSSES
from structent.experiments.cifar100.networks import read_backbone, small_cnn, with_head
from structent.experiments.cifar100.slices import images_of_trial
from structent.experiments.cifar100.training_loss import training_loss
from structent.structure import trivial


@pytest.fixture
def images(data):
    return images_of_trial(read_images(data), size=40, trial=0, n_validation=20, n_test=20)


def tiny_cnn(n_classes, *, dropout=0.5):
    """A network with all that is random in the larger ones, and little to reckon.

    Nothing in it jumps, so that rounding stays rounding.
    """
    return keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.AveragePooling2D(8),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="tanh"),
            keras.layers.Dropout(dropout),
            keras.layers.Dense(n_classes),
        ]
    )


def result_of(images, loss, *, seed=0, network_of=tiny_cnn, n_epochs=2):
    return image_trial(
        images,
        loss,
        network_of=network_of,
        optimizer_of=lambda _: keras.optimizers.SGD(0.1),
        batch_size=16,
        n_epochs=n_epochs,
        measured_every=1,
        seed=seed,
    )


def first_weights(images, loss, *, seed, make):
    """Return the weights of a network before it learns."""
    weights = []

    def network_of(n_classes):
        network = make(n_classes)
        weights.extend(network.get_weights())
        return network

    result_of(images, loss, seed=seed, network_of=network_of, n_epochs=1)
    return weights


def test_losses_of_a_trial_begin_at_the_same_weights_and_trials_at_others(images):
    def weights(loss, seed):
        made = first_weights(images, loss, seed=seed, make=small_cnn)
        return [weight for weight in made if weight.ndim > 1]  # biases begin at 0

    standard, structured, other = (
        weights(*case) for case in (("standard", 0), ("structured", 0), ("standard", 1))
    )
    assert len(standard) == 6
    assert all(map(np.array_equal, standard, structured))
    assert not any(map(np.array_equal, standard, other))


def test_losses_of_a_trial_begin_with_the_same_last_layer_on_a_backbone(images, backbone):
    def last_layer(loss, seed):
        return first_weights(
            images, loss, seed=seed, make=lambda n: with_head(read_backbone(backbone), n, pixels=32)
        )[-2]

    standard = last_layer("standard", 0)
    assert standard.shape == (6, 100)
    assert np.array_equal(standard, last_layer("soft labels 10", 0))
    assert not np.array_equal(standard, last_layer("standard", 1))


@pytest.mark.parametrize("loss", ["structured", *OTHER_LOSSES])
def test_the_same_settings_give_the_same_result(images, loss):
    first, again = (result_of(images, loss) for _ in range(2))

    assert first == again


def test_trials_and_losses_differ(images):
    results = [
        result_of(images, loss, seed=seed)
        for loss, seed in (("standard", 0), ("standard", 1), ("structured", 0))
    ]
    trajectories = {tuple(result["test"]["cross-entropy"]) for result in results}

    assert len(trajectories) == 3


def test_losses_that_are_equal_in_value_have_one_trajectory_dropout_and_all(images, monkeypatch):
    monkeypatch.setattr(
        module, "training_loss", lambda name, known: training_loss(name, trivial(known.classes))
    )
    standard, structured = (result_of(images, loss) for loss in ("standard", "structured"))
    other = result_of(images, "standard", seed=1)

    for part in ("validation", "test"):
        entropy = standard[part]["cross-entropy"]
        assert structured[part]["cross-entropy"] == pytest.approx(entropy, abs=2e-5)
        # Other draws are further away than rounding can take it.
        assert other[part]["cross-entropy"] != pytest.approx(entropy, abs=1e-3)


def test_dropout_is_in_the_trajectories(images):
    with_it, without = (
        result_of(images, "standard", network_of=partial(tiny_cnn, dropout=rate))
        for rate in (0.5, 0.0)
    )
    assert with_it["test"]["cross-entropy"] != pytest.approx(
        without["test"]["cross-entropy"], abs=1e-3
    )
