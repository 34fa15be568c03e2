"""One trial of a network that learns from images: Experiments 1A, 1B and 1C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types

from structent.experiments.cifar100.augmentation import as_pixels, augmented
from structent.experiments.cifar100.measures import Measures
from structent.experiments.cifar100.slices import TrialImages
from structent.experiments.cifar100.training import Epochs, Judged, trajectories
from structent.experiments.cifar100.training_loss import training_loss
from structent.experiments.experiment import Result
from structent.structure import catalog


def image_trial(
    images: TrialImages,
    loss_name: str,
    *,
    network_of: Callable[[int], Any],
    optimizer_of: Callable[[int], Any],
    batch_size: int,
    n_epochs: int,
    measured_every: int,
    seed: int,
) -> Result:
    """Return the trajectories of one loss.

    Parameters
    ----------
    images
        What is learned from, and what the network is measured on.
    loss_name
        The loss, as in :func:`training_loss`.
    network_of
        Gives the network, from the number of classes.
    optimizer_of
        Gives the optimizer, from the number of batches in an epoch.
    batch_size, n_epochs, measured_every
        How long it learns.
    seed
        One for all losses of a trial: they begin at the same weights, drop the same units, and see
        the same augmented images in the same order.
    """
    structure = catalog.cifar100()
    loss = training_loss(loss_name, structure)
    epochs = Epochs(
        lambda rows, rng: as_pixels(augmented(images.train[rows], rng)),
        loss.targets[images.train_labels],
        batch_size=batch_size,
        seed=seed,
    )
    keras.utils.set_random_seed(seed)
    network = network_of(structure.n_classes)
    network.compile(optimizer=optimizer_of(len(epochs)), loss=loss.loss)
    judged = Judged(
        (as_pixels(images.validation), images.validation_labels),
        (as_pixels(images.test), images.test_labels),
    )
    return trajectories(
        network, epochs, judged, Measures(structure), n_epochs=n_epochs, every=measured_every
    )
