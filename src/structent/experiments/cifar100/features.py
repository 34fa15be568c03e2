"""Features of a frozen network: computed once, kept in a folder, read by every run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent.experiments.cifar100.augmentation import as_pixels
from structent.experiments.cifar100.networks import feature_extractor, read_backbone

_AT_A_TIME = 32


@dataclass(frozen=True)
class Features:
    """The features of images under one network.

    Parameters
    ----------
    folder
        Where they are kept.
    backbone
        The network: a ``.keras`` file or a name of ``keras.applications``.
    pixels
        The size that images are brought to.
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
        # Under another name until it is whole: a run that is broken off leaves no half a file.
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
        return feature_extractor(read_backbone(self.backbone), pixels=self.pixels)

    @cached_property
    def _digest(self) -> str:
        # Another network in a file of the same name has other features.
        file = Path(self.backbone)
        return digest(file.read_bytes() if file.is_file() else self.backbone.encode())


def cache_folder() -> Path:
    """Return where features are kept if nobody says where."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "structent"


def digest(content: bytes) -> str:
    """Return a short name for content, which other content does not have."""
    return hashlib.sha256(content).hexdigest()[:16]
