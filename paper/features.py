"""Features of images under a frozen network: computed once, kept in a folder, read by every run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.digests import Sources, digest, digest_of_file
from paper.experiment import keep_freed_memory
from paper.images import as_pixels, image_sources, read_images
from structent._optional import load_optional
from structent._typing import IndexArray
from structent.errors import StructentError

_AT_A_TIME = 32
# For the questions beyond the paper: images as they are, and a network in the folder of the data.
BACKBONE, _PIXELS = Path("weights") / "mobilenet_v2_imagenet.keras", 160
_N_TRAIN, _N_TEST, _IN_A_FILE = 10_000, 10_000, 1000


@dataclass(frozen=True)
class KeptFeatures:
    """The features of images under one network.

    Parameters
    ----------
    folder
        Where they are kept.
    backbone
        The network: a ``.keras`` file or a name of ``keras.applications``.
    pixels
        The size that images are resized to.
    """

    folder: Path
    backbone: str
    pixels: int

    def keep(self, name: str, images: Callable[[], NDArray[np.uint8]]) -> None:
        """Compute the features of images and keep them by a name, unless they are kept already."""
        file = self._file(name)
        if file.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        made = self._network.predict(as_pixels(images()), batch_size=_AT_A_TIME, verbose=0)
        # Under another name until it is complete: an interrupted run leaves no incomplete file.
        unfinished = file.with_suffix(f".{os.getpid()}.unfinished.npy")
        np.save(unfinished, made)
        unfinished.replace(file)

    def read(self, name: str) -> NDArray[np.float32]:
        """Return the features that were kept by a name, (n, features)."""
        kept: NDArray[np.float32] = np.load(self._file(name), allow_pickle=False)
        return kept

    def _file(self, name: str) -> Path:
        return self.folder / f"{self._digest}-{self.pixels}-{name}.npy"

    @cached_property
    def _network(self) -> Any:
        # Imported only here, because it loads Keras, which is not needed to read kept features.
        load_optional("keras", extra="keras", purpose="Computing the features of images")
        from paper.networks import feature_extractor, read_backbone  # noqa: PLC0415

        keep_freed_memory()
        return feature_extractor(read_backbone(self.backbone), pixels=self.pixels)

    @cached_property
    def _digest(self) -> str:
        # A different network in a file of the same name gives different features.
        file = Path(self.backbone)
        return digest_of_file(file) if file.is_file() else digest(self.backbone.encode())


def cache_folder() -> Path:
    """Return the default folder for kept features."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "structent"


def backbone_sources(backbone: str) -> Sources:
    """Return the file of a network, as a source of runs; none if Keras downloads its weights."""
    if not backbone.endswith(".keras"):
        return {backbone: ()}
    file = Path(backbone)
    if not file.is_file():
        raise StructentError(f"--backbone must be a .keras file that exists, got {file}")
    return {file.stem: (file,)}


def feature_sources(data: Path) -> Sources:
    """Return the images and the network of the features for questions beyond the paper."""
    return {**image_sources(data), **backbone_sources(str(data / BACKBONE))}


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """Features, (n, 1280), and class indices in the order of ``catalog.cifar100()``, (n,)."""

    train: NDArray[np.float32]
    train_labels: IndexArray
    test: NDArray[np.float32]
    test_labels: IndexArray


@cache
def cifar100_features(data: Path) -> LabelledFeatures:
    """Return the features of the first 10,000 training images and of the test images.

    Computing them takes about nine minutes on one core; after that they are read from a file.
    """
    images = read_images(data)
    return LabelledFeatures(
        _features_of(images.x_train[:_N_TRAIN], data),
        images.y_train[:_N_TRAIN],
        _features_of(images.x_test[:_N_TEST], data),
        images.y_test[:_N_TEST],
    )


@cache
def fresh_cifar100_features(data: Path) -> LabelledFeatures:
    """Return the features of images that nothing else here uses: the next 10,000 training images.

    The images after them serve as test images, because the test images have been used before.
    """
    images = read_images(data)
    train, test = slice(_N_TRAIN, 2 * _N_TRAIN), slice(2 * _N_TRAIN, 2 * _N_TRAIN + _N_TEST)
    return LabelledFeatures(
        _features_of(images.x_train[train], data),
        images.y_train[train],
        _features_of(images.x_train[test], data),
        images.y_train[test],
    )


@cache
def features_of_images(data: Path, part: str, count: int) -> tuple[NDArray[np.float32], IndexArray]:
    """Return features and class indices of the first images of a part, "train" or "test"."""
    images = read_images(data)
    pixels, labels = getattr(images, f"x_{part}"), getattr(images, f"y_{part}")
    return _features_of(pixels[:count], data), labels[:count]


def _features_of(images: NDArray[np.uint8], data: Path) -> NDArray[np.float32]:
    """Return the features of images: computed, unless they are kept already."""
    kept = KeptFeatures(cache_folder(), str(data / BACKBONE), _PIXELS)
    parts = []
    for start in range(0, len(images), _IN_A_FILE):
        part = images[start : start + _IN_A_FILE]
        name = digest(part.tobytes())
        kept.keep(name, partial(np.asarray, part))
        parts.append(kept.read(name))
    return np.concatenate(parts)
