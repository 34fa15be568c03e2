"""Problem 3: which county is it? The paper's Table "Log Loss values for County Prediction".

Counties are neighbours on a map. Standard cross-entropy is compared with the variable random
partition, a spanning tree of the map cut into m blocks for every tree, at the paper's five
combinations of m and the weight of the singletons. The paper has no control here; ours has: the
same graph with the counties shuffled over its nodes, anew in every trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from structent.experiments.experiment import Result, Settings, chosen_sizes
from structent.experiments.weather.boosted_trial import SCHEDULES, boosted_trial
from structent.experiments.weather.rows import Draw, county_graph, draw
from structent.experiments.weather.settings import settings_of
from structent.structure import PartitionSampler, RandomPartition, SpanningTreePartitions, trivial
from structent.studies.progress import OnProgress

_PAPER_SIZES = (500, 1000, 2000, 5000, 10_000, 20_000)
_SIZES = {"paper": _PAPER_SIZES, "quick": _PAPER_SIZES, "smoke": (200,)}
_N_TRIALS = {"paper": 5, "quick": 5, "smoke": 2}
# Blocks and the weight of the singletons, as in the columns of the paper's table.
COMBINATIONS = ((10, 0.25), (10, 0.5), (10, 0.75), (5, 0.5), (20, 0.5))
_CONTROLS = ((10, 0.25), (10, 0.5))


@dataclass(frozen=True)
class Counties:
    """The experiment.

    Parameters
    ----------
    data
        The folder of the weather table and the graph of the counties.
    preset
        "paper", "quick" (larger steps of the same trees) or "smoke".
    sizes
        The training set sizes to run, of those of the preset; all if None.
    """

    name: ClassVar[str] = "counties"
    kept_in: ClassVar[str] = "counties"

    data: Path
    preset: str
    sizes: tuple[int, ...] | None = None

    def runs(self) -> list[Settings]:
        """Return every size, trial, method and combination; small sizes first."""
        methods: list[tuple[str, int | None, float]] = [("standard", None, 1.0)]
        methods += [("variable", *combination) for combination in COMBINATIONS]
        methods += [("variable, scrambled", *combination) for combination in _CONTROLS]
        return [
            settings_of(
                self.name,
                self.preset,
                size=size,
                method=method,
                n_blocks=n_blocks,
                singleton_weight=weight,
                trial=trial,
            )
            for size in chosen_sizes(_SIZES[self.preset], self.sizes)
            for trial in range(_N_TRIALS[self.preset])
            for method, n_blocks, weight in methods
        ]

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the log losses of one method in one trial."""
        return boosted_trial(
            self.rows(settings),
            self.structure(settings),
            SCHEDULES[self.preset],
            seed=settings["trial"],
            n_threads=n_threads,
        )

    def rows(self, settings: Settings) -> Draw:
        """Return the rows of a run, the same for every method."""
        schedule = SCHEDULES[self.preset]
        return draw(
            self.data, "county", trial=settings["trial"], n_train=settings["size"],
            n_validation=schedule.n_validation, n_test=schedule.n_test,
        )  # fmt: skip

    def structure(self, settings: Settings) -> RandomPartition | PartitionSampler:
        """Return the structure of a run."""
        graph, trial = county_graph(self.data), settings["trial"]
        if settings["method"] == "standard":
            return trivial(graph.classes)
        structure = SpanningTreePartitions(
            graph, settings["n_blocks"], settings["singleton_weight"], seed=trial
        )
        if settings["method"] == "variable":
            return structure
        return structure.scramble(np.random.default_rng(trial))
