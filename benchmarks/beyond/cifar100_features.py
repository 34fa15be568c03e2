"""Features of CIFAR-100 under the frozen MobileNetV2: plain images at 160 pixels, kept on disk.

``python -m benchmarks.beyond.cifar100_features --data ../shared/data`` computes what is missing:
the first 30,000 training images and all test images, by the thousand (about fourteen minutes on
one core).
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIXELS, N_TRAIN, N_TEST, AT_A_TIME = 160, 10_000, 10_000, 1000
BACKBONE = Path("weights") / "mobilenet_v2_imagenet.keras"


@dataclass(frozen=True)
class Features:
    """Features, (n, 1280), and class indices in the order of ``catalog.cifar100()``, (n,)."""

    train: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def cifar100_features(data: Path) -> Features:
    """Return the features of the first training images and of the test images."""
    images, features_of = _opened(data)
    return Features(
        features_of(images.x_train[:N_TRAIN]),
        images.y_train[:N_TRAIN],
        features_of(images.x_test[:N_TEST]),
        images.y_test[:N_TEST],
    )


def fresh_cifar100_features(data: Path) -> Features:
    """Return those of images that nothing else here has: the next training images.

    The ones after them stand for test images, because the test images have been looked at.
    """
    images, features_of = _opened(data)
    train, test = slice(N_TRAIN, 2 * N_TRAIN), slice(2 * N_TRAIN, 2 * N_TRAIN + N_TEST)
    return Features(
        features_of(images.x_train[train]),
        images.y_train[train],
        features_of(images.x_train[test]),
        images.y_train[test],
    )


def _opened(data: Path) -> tuple[Any, Callable[[NDArray[np.uint8]], NDArray[np.float32]]]:
    """Return the images, and what gives the features of some: computed unless they are kept."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    # Only here: they load Keras.
    from structent.experiments.cifar100.features import Features as Kept  # noqa: PLC0415
    from structent.experiments.cifar100.features import cache_folder, digest  # noqa: PLC0415
    from structent.experiments.cifar100.images import read_images  # noqa: PLC0415
    from structent.experiments.memory import keep_freed_memory  # noqa: PLC0415

    keep_freed_memory()
    kept = Kept(cache_folder(), str(data / BACKBONE), PIXELS)

    def features_of(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        parts = []
        for start in range(0, len(pixels), AT_A_TIME):
            part = pixels[start : start + AT_A_TIME]
            name = digest(part.tobytes())
            kept.keep(name, lambda part=part: part)
            parts.append(kept.read(name))
        return np.concatenate(parts)

    return read_images(data), features_of


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    for found in (cifar100_features(folder), fresh_cifar100_features(folder)):
        print(found.train.shape, found.test.shape)
