"""Experiment 1C: fine-tuning all layers of a pre-trained network.

The network starts from ImageNet weights and gets a new last layer. All layers learn, so early
features can also profit from the structure. The paper uses all 50,000 images and 250 epochs, for
ResNet50 and MobileNetV2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import keras  # type: ignore[import-untyped]  # Keras has no types

from paper.digests import Sources
from paper.experiment import Result, Settings
from paper.features import backbone_sources
from paper.images import image_sources, images_of_trial, read_images
from paper.networks import backbone_name, read_backbone, with_head
from paper.paper_numbers import PAPER_LOSSES
from paper.training import image_trial, settings_of_trials, use_machine


@dataclass(frozen=True)
class Schedule:
    """How the whole network learns; the defaults are the paper's."""

    size: int = 50_000
    n_trials: int = 1
    learning_rate: float = 1e-5
    epochs: int = 250
    measured_every: int = 1
    batch_size: int = 128
    pixels: int = 96
    n_validation: int = 2_000
    n_test: int = 10_000


_PAPER = Schedule()
_QUICK = Schedule(
    size=1_000, n_trials=3, learning_rate=3e-4, epochs=8, measured_every=2, batch_size=32,
    n_validation=1_000, n_test=2_000,
)  # fmt: skip
_SMOKE = Schedule(
    size=40, n_trials=2, learning_rate=1e-3, epochs=2, batch_size=20, pixels=32, n_validation=20,
    n_test=20,
)  # fmt: skip
SCHEDULES = {"paper": _PAPER, "quick": _QUICK, "smoke": _SMOKE}


@dataclass(frozen=True)
class FineTuning:
    """Experiment 1C.

    Parameters
    ----------
    data
        Where CIFAR-100 is; None if Keras is to download it.
    preset
        "paper", "quick" (1,000 images, a higher learning rate, fewer epochs) or "smoke".
    backbone
        The pre-trained network: a ``.keras`` file or a name of ``keras.applications``.
    """

    name: ClassVar[str] = "cifar100-1C"
    kept_in: ClassVar[str] = "cifar100"

    data: Path | None
    preset: str
    backbone: str

    def runs(self) -> list[Settings]:
        """Return every trial and loss."""
        return self.runs_of(PAPER_LOSSES)

    def runs_of(self, losses: tuple[str, ...]) -> list[Settings]:
        """Return every trial of some losses."""
        schedule = SCHEDULES[self.preset]
        network = backbone_name(self.backbone)
        return settings_of_trials(
            "1C", self.preset, losses, size=schedule.size, network=network, schedule=schedule
        )

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the images and the pre-trained network."""
        return {**image_sources(self.data), **backbone_sources(self.backbone)}

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one loss in one trial."""
        return fine_tuned(self.data, self.backbone, settings, SCHEDULES[self.preset], n_threads)


def fine_tuned(
    data: Path | None, backbone: str, settings: Settings, schedule: Schedule, n_threads: int
) -> Result:
    """Return the trajectories of the loss and trial of a run under a schedule."""
    use_machine(n_threads)
    trial = settings["trial"]
    images = images_of_trial(
        read_images(data), size=schedule.size, trial=trial,
        n_validation=schedule.n_validation, n_test=schedule.n_test,
    )  # fmt: skip
    return image_trial(
        images,
        settings["loss"],
        network_of=lambda last: with_head(read_backbone(backbone), last, pixels=schedule.pixels),
        optimizer_of=lambda _: keras.optimizers.Adam(schedule.learning_rate),
        batch_size=schedule.batch_size,
        n_epochs=schedule.epochs,
        measured_every=schedule.measured_every,
        seed=trial,
    )
