"""One trial of a network that learns from images: Experiments 1A, 1B and 1C."""

from __future__ import annotations

from typing import Any

from structent.experiments.cifar100.augmentation import as_pixels, augmented
from structent.experiments.cifar100.paired_trial import paired_trial
from structent.experiments.cifar100.slices import TrialImages
from structent.experiments.cifar100.training import Judged
from structent.experiments.experiment import Result


def image_trial(images: TrialImages, loss_name: str, **how: Any) -> Result:
    """Return the trajectories of one loss, learned from augmented images.

    Parameters
    ----------
    images
        What is learned from, and what the network is measured on.
    loss_name
        The loss, as in :func:`training_loss`.
    **how
        The network and how it learns, as in :func:`paired_trial`.
    """
    return paired_trial(
        loss_name,
        inputs_of=lambda rows, rng: as_pixels(augmented(images.train[rows], rng)),
        labels=images.train_labels,
        judged=Judged(
            (as_pixels(images.validation), images.validation_labels),
            (as_pixels(images.test), images.test_labels),
        ),
        **how,
    )
