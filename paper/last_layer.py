"""Experiment 1D: transfer learning, where only the last layer is trained, on 1,000 images.

A pre-trained network is frozen; a new last layer learns from its features. Features are computed
once and kept, for several augmented views of every training image; each epoch takes one view at
random. All losses learn from the same views in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from numpy.typing import NDArray

from paper.digests import Sources, digest
from paper.experiment import Result, Settings
from paper.features import KeptFeatures, backbone_sources
from paper.images import TrialImages, augmented, image_sources, images_of_trial, read_images
from paper.networks import backbone_name, head
from paper.paper_numbers import OTHER_LOSSES, PAPER_LOSSES
from paper.training import Judged, paired_trial, settings_of_trials, use_machine
from structent.studies.progress import OnProgress


@dataclass(frozen=True)
class Schedule:
    """How the last layer learns; the defaults are the paper's, the number of views is ours."""

    size: int = 1000
    n_trials: int = 3
    learning_rate: float = 0.002
    momentum: float = 0.9
    epochs: int = 300
    measured_every: int = 10
    batch_size: int = 40
    pixels: int = 224
    n_views: int = 20
    n_validation: int = 2_000
    n_test: int = 10_000


_PAPER = Schedule()
# Smaller images take less than a fifth of the time; nothing else here takes long.
_QUICK = Schedule(pixels=96)
_SMOKE = Schedule(
    size=40, n_trials=2, epochs=2, measured_every=1, pixels=32, n_views=2, n_validation=20,
    n_test=20,
)  # fmt: skip
SCHEDULES = {"paper": _PAPER, "quick": _QUICK, "smoke": _SMOKE}


class _Part(NamedTuple):
    """Images whose features are kept, and the name they are kept under."""

    name: str
    images: Callable[[], NDArray[np.uint8]]


@dataclass(frozen=True)
class LastLayer:
    """Experiment 1D.

    Parameters
    ----------
    data
        Where CIFAR-100 is; None if Keras is to download it.
    preset
        "paper", "quick" (images of 96 pixels) or "smoke".
    backbone
        The frozen network: a ``.keras`` file or a name of ``keras.applications``.
    cache
        The folder where features are kept.
    """

    name: ClassVar[str] = "cifar100-1D"
    kept_in: ClassVar[str] = "cifar100"

    data: Path | None
    preset: str
    backbone: str
    cache: Path

    def runs(self) -> list[Settings]:
        """Return every trial and loss, the paper's losses first."""
        return [*self.runs_of(PAPER_LOSSES), *self.runs_of(OTHER_LOSSES)]

    def runs_of(self, losses: tuple[str, ...]) -> list[Settings]:
        """Return every trial of some losses."""
        schedule = SCHEDULES[self.preset]
        return settings_of_trials(
            "1D", self.preset, losses,
            size=schedule.size, network=backbone_name(self.backbone), schedule=schedule,
        )  # fmt: skip

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Compute the features of all trials, and keep them."""
        use_machine(n_threads)
        features = self._features
        trials = [self._images(trial) for trial in range(SCHEDULES[self.preset].n_trials)]
        parts = [part for trial, images in enumerate(trials) for part in self._parts(trial, images)]
        for done, part in enumerate(parts):
            on_progress("features", done, len(parts))
            features.keep(part.name, part.images)

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the images and the frozen network."""
        return {**image_sources(self.data), **backbone_sources(self.backbone)}

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one loss in one trial."""
        use_machine(n_threads)
        schedule, trial = SCHEDULES[self.preset], settings["trial"]
        images, features = self._images(trial), self._features
        *views_kept, validation, test = (
            features.read(part.name) for part in self._parts(trial, images)
        )
        views = np.stack(views_kept)
        return paired_trial(
            settings["loss"],
            inputs_of=lambda rows, rng: views[rng.integers(len(views), size=len(rows)), rows],
            labels=images.train_labels,
            judged=Judged((validation, images.validation_labels), (test, images.test_labels)),
            network_of=lambda last: head(views.shape[2], last),
            optimizer_of=lambda _: keras.optimizers.SGD(
                schedule.learning_rate, momentum=schedule.momentum, nesterov=True
            ),
            batch_size=schedule.batch_size,
            n_epochs=schedule.epochs,
            measured_every=schedule.measured_every,
            seed=trial,
        )

    @property
    def _features(self) -> KeptFeatures:
        return KeptFeatures(self.cache, self.backbone, SCHEDULES[self.preset].pixels)

    def _parts(self, trial: int, images: TrialImages) -> list[_Part]:
        """Return a trial's images by parts: the views, the validation and the test images."""
        # Named by the digest of their content, because other data has other features.
        train, validation, test = (
            digest(part.tobytes()) for part in (images.train, images.validation, images.test)
        )
        views = [
            _Part(f"{train}-trial-{trial}-view-{view}", partial(_view, images.train, trial, view))
            for view in range(SCHEDULES[self.preset].n_views)
        ]
        return [
            *views,
            _Part(validation, lambda: images.validation),
            _Part(test, lambda: images.test),
        ]

    def _images(self, trial: int) -> TrialImages:
        schedule = SCHEDULES[self.preset]
        return images_of_trial(
            read_images(self.data), size=schedule.size, trial=trial,
            n_validation=schedule.n_validation, n_test=schedule.n_test,
        )  # fmt: skip


def _view(images: NDArray[np.uint8], trial: int, view: int) -> NDArray[np.uint8]:
    return augmented(images, np.random.default_rng((trial, view)))
