"""Problem 2: which month is it? Boosted trees on a day's weather (the paper's log loss figure).

Months form a circle. Standard cross-entropy is compared with a fixed structure, the three ways to
cut the circle into quarters, and with a variable one, a spanning tree of the circle cut into four
for every tree, at nine weights of the singletons. The paper has no control here; ours has: the same
structures with the months shuffled, anew in every trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from structent.experiments.experiment import Result, Settings, chosen_sizes
from structent.experiments.weather.boosted_trial import SCHEDULES, boosted_trial
from structent.experiments.weather.rows import draw
from structent.experiments.weather.settings import settings_of
from structent.structure import (
    LabelGraph,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    trivial,
)
from structent.studies.progress import OnProgress

MONTHS = range(1, 13)
_N_BLOCKS = 4
_PAPER_SIZES = (500, 1000, 2000, 5000, 10_000)
_PAPER_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SIZES = {"paper": _PAPER_SIZES, "quick": _PAPER_SIZES, "smoke": (200,)}
_WEIGHTS = {"paper": _PAPER_WEIGHTS, "quick": _PAPER_WEIGHTS, "smoke": (0.3,)}
_CONTROL_WEIGHTS = {"paper": (0.1, 0.3, 0.5), "quick": (0.1, 0.3, 0.5), "smoke": (0.3,)}
_N_TRIALS = {"paper": 5, "quick": 5, "smoke": 2}


@dataclass(frozen=True)
class Months:
    """The experiment.

    Parameters
    ----------
    data
        The folder of the weather table.
    preset
        "paper", "quick" (larger steps of the same trees) or "smoke".
    sizes
        The training set sizes to run, of those of the preset; all if None.
    """

    name: ClassVar[str] = "months"
    kept_in: ClassVar[str] = "months"

    data: Path
    preset: str
    sizes: tuple[int, ...] | None = None

    def runs(self) -> list[Settings]:
        """Return every size, trial, method and weight of the singletons; small sizes first."""
        methods = [("standard", 1.0)]
        for kind in ("fixed", "variable"):
            methods += [(kind, weight) for weight in _WEIGHTS[self.preset]]
            methods += [(f"{kind}, scrambled", weight) for weight in _CONTROL_WEIGHTS[self.preset]]
        return [
            settings_of(
                self.name,
                self.preset,
                size=size,
                method=method,
                n_blocks=_N_BLOCKS if method.startswith("variable") else None,
                singleton_weight=weight,
                trial=trial,
            )
            for size in chosen_sizes(_SIZES[self.preset], self.sizes)
            for trial in range(_N_TRIALS[self.preset])
            for method, weight in methods
        ]

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the log losses of one method in one trial."""
        schedule, trial = SCHEDULES[self.preset], settings["trial"]
        rows = draw(
            self.data, "month", trial=trial, n_train=settings["size"],
            n_validation=schedule.n_validation, n_test=schedule.n_test,
        )  # fmt: skip
        structure = _structure(settings["method"], settings["singleton_weight"], trial)
        return boosted_trial(rows, structure, schedule, seed=trial, n_threads=n_threads)


def _structure(
    method: str, singleton_weight: float, trial: int
) -> RandomPartition | PartitionSampler:
    kind, _, scrambled = method.partition(", ")
    if kind == "standard":
        return trivial(MONTHS)
    structure: RandomPartition | SpanningTreePartitions
    if kind == "fixed":
        structure = circular(MONTHS, width=3, singleton_weight=singleton_weight)
    else:
        circle = LabelGraph([(month, month % 12 + 1) for month in MONTHS])
        structure = SpanningTreePartitions(circle, _N_BLOCKS, singleton_weight, seed=trial)
    return structure.scramble(np.random.default_rng(trial)) if scrambled else structure
