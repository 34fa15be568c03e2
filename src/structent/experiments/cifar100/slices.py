"""The images of a trial: a slice of the training set, validation images beside it, test images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structent.errors import StructentError
from structent.experiments.cifar100.images import Images


@dataclass(frozen=True)
class TrialImages:
    """Images, (n, 32, 32, 3), and their labels, (n,), of the three parts of a trial."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    validation: NDArray[np.uint8]
    validation_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]


def images_of_trial(
    images: Images, *, size: int, trial: int, n_validation: int, n_test: int
) -> TrialImages:
    """Return the images of a trial, the same for every loss.

    Trials learn from slices that do not overlap. The images that follow a slice, from the start
    again after the last one, are its validation images. A slice that is the whole set goes without
    them.

    Parameters
    ----------
    images
        All images.
    size
        The length of a slice.
    trial
        The number of the slice.
    n_validation, n_test
        How many validation images, and how many of the first test images.
    """
    n_images = len(images.y_train)
    _check_enough(images, size, trial, n_validation, n_test)
    validation = np.arange((trial + 1) * size, (trial + 1) * size + n_validation) % n_images
    train = np.setdiff1d(np.arange(trial * size, (trial + 1) * size), validation)
    return TrialImages(
        images.x_train[train],
        images.y_train[train],
        images.x_train[validation],
        images.y_train[validation],
        images.x_test[:n_test],
        images.y_test[:n_test],
    )


def _check_enough(images: Images, size: int, trial: int, n_validation: int, n_test: int) -> None:
    n_images = len(images.y_train)
    # Validation images come out of a slice only where there are no others.
    beside = n_validation if size < n_images else 0
    needed = max((trial + 1) * size, size + beside, n_validation + 1)
    if needed > n_images:
        raise StructentError(
            f"trial {trial} of {size:,} images and {n_validation:,} validation images needs "
            f"{needed:,} training images, got {n_images:,}; use all of CIFAR-100"
        )
    if n_test > len(images.y_test):
        raise StructentError(
            f"the test needs {n_test:,} test images, got {len(images.y_test):,}; use all of "
            "CIFAR-100"
        )
