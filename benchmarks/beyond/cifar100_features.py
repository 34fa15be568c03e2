"""Features of CIFAR-100 under the frozen MobileNetV2: plain images at 160 pixels, kept on disk.

``python -m benchmarks.beyond.cifar100_features --data ../shared/data`` computes what is missing:
the first 10,000 training images and all test images, by the thousand (about seven minutes on one
core).
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

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
    """Return the features, computed unless they are kept already."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    # Only here: they load Keras.
    from structent.experiments.cifar100.features import Features as Kept  # noqa: PLC0415
    from structent.experiments.cifar100.features import digest  # noqa: PLC0415
    from structent.experiments.cifar100.images import read_images  # noqa: PLC0415
    from structent.experiments.memory import keep_freed_memory  # noqa: PLC0415

    keep_freed_memory()
    images = read_images(data)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "structent"
    kept = Kept(cache, str(data / BACKBONE), PIXELS)

    def features(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        parts = []
        for start in range(0, len(pixels), AT_A_TIME):
            part = pixels[start : start + AT_A_TIME]
            name = digest(part.tobytes())
            kept.keep(name, lambda part=part: part)
            parts.append(kept.read(name))
        return np.concatenate(parts)

    return Features(
        features(images.x_train[:N_TRAIN]),
        images.y_train[:N_TRAIN],
        features(images.x_test[:N_TEST]),
        images.y_test[:N_TEST],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    found = cifar100_features(parser.parse_args().data)
    print(found.train.shape, found.test.shape)
