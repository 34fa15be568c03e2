"""Experiments 1A and 1B: a small network, trained from scratch on few images.

1A trains the network of Keras's CIFAR-10 example with the standard and with the structured loss, on
training sets of several sizes that do not overlap. With 5,000 images other losses, with the
hierarchy or without structure, are tried on the same trials. 1B adds the scrambled structure, to
separate the effect of the structure's meaning from regularisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import keras  # type: ignore[import-untyped]  # Keras has no types

from paper.digests import Sources
from paper.experiment import Result, Settings, chosen_sizes
from paper.images import image_sources, images_of_trial, read_images
from paper.networks import small_cnn
from paper.paper_numbers import OTHER_LOSSES, PAPER_LOSSES, SIZE_OF_1B
from paper.training import image_trial, settings_of_trials, use_machine

NETWORK = "small CNN"


@dataclass(frozen=True)
class Schedule:
    """How long and how fast the network learns, and what it is measured on.

    ``decay`` is "none" (the paper's constant rate) or "cosine" (down to 0 at the end).
    """

    n_trials: int
    learning_rate: float
    epochs: int
    measured_every: int
    batch_size: int = 32
    decay: str = "none"
    n_validation: int = 2_000
    n_test: int = 10_000


def _quick(n_trials: int, learning_rate: float, epochs: int, measured_every: int) -> Schedule:
    return Schedule(
        n_trials, learning_rate, epochs, measured_every,
        decay="cosine", n_test=5_000,
    )  # fmt: skip


# The paper's own, by size, from its table of training set sizes.
_PAPER = {
    1000: Schedule(10, 3e-5, 1500, 1),
    2500: Schedule(10, 3e-5, 1500, 1),
    5000: Schedule(10, 5e-5, 1000, 1),
    10_000: Schedule(5, 5e-5, 600, 1),
    50_000: Schedule(1, 5e-5, 600, 1),
}
# With cosine decay the mean rate is half the initial one. All rates add up to the paper's sum, but
# for 5,000 images (0.6 of it, about ten minutes) and 50,000 (half of it, about an hour).
_QUICK = {
    1000: _quick(10, 1e-3, 90, 5),
    2500: _quick(10, 1e-3, 90, 5),
    5000: _quick(3, 1e-3, 60, 4),
    10_000: _quick(3, 1e-3, 60, 4),
    50_000: _quick(1, 1e-3, 30, 2),
}
_SMOKE = {
    40: Schedule(2, 1e-3, 2, 1, n_validation=20, n_test=20),
}
SCHEDULES = {"paper": _PAPER, "quick": _QUICK, "smoke": _SMOKE}


@dataclass(frozen=True)
class SmallNetwork:
    """Experiment 1A or 1B.

    Parameters
    ----------
    data
        Where CIFAR-100 is; None if Keras is to download it.
    preset
        "paper", "quick" (a higher learning rate that decays, fewer epochs) or "smoke".
    experiment
        "1A" or "1B".
    sizes
        Which training set sizes of the experiment to run; all if None.
    """

    data: Path | None
    preset: str
    experiment: str
    sizes: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The name of its page."""
        return f"cifar100-{self.experiment}"

    @property
    def kept_in(self) -> str:
        """The name of its results file."""
        return "cifar100"

    def runs(self) -> list[Settings]:
        """Return every size, trial and loss: the paper's losses first, then the others."""
        schedules = SCHEDULES[self.preset]
        # In the smoke preset the other losses are tried at every size.
        compared = SIZE_OF_1B if SIZE_OF_1B in schedules else next(iter(schedules))
        sizes = chosen_sizes(schedules if self.experiment == "1A" else [compared], self.sizes)
        if self.experiment == "1B":
            return [
                *self.runs_of("1A", compared, PAPER_LOSSES),
                *self.runs_of("1B", compared, ("scrambled",)),
            ]
        paper = [run for size in sizes for run in self.runs_of("1A", size, PAPER_LOSSES)]
        others = self.runs_of("1A", compared, OTHER_LOSSES) if compared in sizes else []
        return [*paper, *others]

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the images."""
        return image_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one loss in one trial."""
        schedule = SCHEDULES[self.preset][settings["size"]]
        return learned(self.data, settings, schedule, n_threads)

    def runs_of(self, experiment: str, size: int, losses: tuple[str, ...]) -> list[Settings]:
        """Return every trial of some losses at one size."""
        schedule = SCHEDULES[self.preset][size]
        return settings_of_trials(
            experiment, self.preset, losses, size=size, network=NETWORK, schedule=schedule
        )


def learned(data: Path | None, settings: Settings, schedule: Schedule, n_threads: int) -> Result:
    """Return the trajectories of the loss, size and trial of a run under a schedule."""
    use_machine(n_threads)
    size, trial = settings["size"], settings["trial"]
    images = images_of_trial(
        read_images(data), size=size, trial=trial,
        n_validation=schedule.n_validation, n_test=schedule.n_test,
    )  # fmt: skip
    return image_trial(
        images,
        settings["loss"],
        network_of=small_cnn,
        optimizer_of=lambda n_batches: _optimizer(schedule, n_batches),
        batch_size=schedule.batch_size,
        n_epochs=schedule.epochs,
        measured_every=schedule.measured_every,
        seed=trial,
    )


def _optimizer(schedule: Schedule, n_batches: int) -> keras.optimizers.Optimizer:
    rate = schedule.learning_rate
    if schedule.decay == "cosine":
        steps = schedule.epochs * n_batches
        rate = keras.optimizers.schedules.CosineDecay(schedule.learning_rate, steps)
    return keras.optimizers.RMSprop(rate)
