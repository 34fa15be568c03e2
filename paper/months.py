"""Problem 2: which month is it? Boosted trees on a day's weather (the paper's log loss figure).

Months form a circle. Standard cross-entropy is compared with a fixed structure, the three ways to
cut the circle into quarters, and with a variable one: for every boosted tree, a spanning tree of
the circle is cut into four. There are nine weights of the singletons, and five training set sizes
with five trials each. The paper has no control here; we add one: the same structures with the
months shuffled, in another order in every trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from paper.digests import Sources
from paper.experiment import Result, Settings, chosen_sizes
from paper.paper_numbers import MONTH_BLOCKS, MONTH_LOSSES, SINGLETON_WEIGHTS
from paper.weather import (
    SCHEDULES,
    boosted_trial,
    draw,
    settings_of_trials,
    weather_sources,
)
from structent.structure import (
    LabelGraph,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    trivial,
)

MONTHS = range(1, 13)
_SIZES = {"paper": tuple(MONTH_LOSSES), "quick": tuple(MONTH_LOSSES), "smoke": (200,)}
_WEIGHTS = {"paper": SINGLETON_WEIGHTS, "quick": SINGLETON_WEIGHTS, "smoke": (0.3,)}
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
        Which training set sizes of the preset to run; all if None.
    """

    name: ClassVar[str] = "months"
    kept_in: ClassVar[str] = "months"

    data: Path
    preset: str
    sizes: tuple[int, ...] | None = None

    def runs(self) -> list[Settings]:
        """Return every size, trial, method and weight of the singletons; small sizes first."""
        weights, of_controls = _WEIGHTS[self.preset], _CONTROL_WEIGHTS[self.preset]
        arms: list[tuple[str, int | None, float]] = [("standard", None, 1.0)]
        for kind, n_blocks in (("fixed", None), ("variable", MONTH_BLOCKS)):
            arms += [(kind, n_blocks, weight) for weight in weights]
            arms += [(f"{kind}, scrambled", n_blocks, weight) for weight in of_controls]
        sizes = chosen_sizes(_SIZES[self.preset], self.sizes)
        return settings_of_trials(
            self.name, self.preset, arms, sizes=sizes, n_trials=_N_TRIALS[self.preset]
        )

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the weather."""
        return weather_sources(self.data)

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
        structure = SpanningTreePartitions(circle, MONTH_BLOCKS, singleton_weight, seed=trial)
    return structure.scramble(np.random.default_rng(trial)) if scrambled else structure
