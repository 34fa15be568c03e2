"""The paper's augmentation: images shifted by up to a tenth, and mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_SHIFT = 3  # pixels: a tenth of 32


def augmented(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return each image shifted by whole pixels, up to a tenth each way, and every other mirrored.

    What is shifted in repeats the edge, as in Keras's own ``ImageDataGenerator``.

    Parameters
    ----------
    images
        The images, (n, height, width, channels).
    rng
        Draws the shifts and which are mirrored.

    Examples
    --------
    >>> plain = np.full((2, 32, 32, 3), 7, dtype=np.uint8)
    >>> bool((augmented(plain, np.random.default_rng(0)) == plain).all())  # nothing comes in
    True
    """
    n_images, height, width, _ = images.shape
    up, left = rng.integers(-MOST_SHIFT, MOST_SHIFT + 1, size=(2, n_images))
    rows = np.clip(np.arange(height) + up[:, None], 0, height - 1)
    columns = np.clip(np.arange(width) + left[:, None], 0, width - 1)
    mirrored = rng.random(n_images) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    which = np.arange(n_images)[:, None, None]
    moved: NDArray[np.uint8] = images[which, rows[:, :, None], columns[:, None, :]]
    return moved


def as_pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return images as numbers in [0, 1]."""
    return images.astype(np.float32) / np.float32(255)
