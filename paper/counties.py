"""Problem 3: which county is it? The paper's Table "Log Loss values for County Prediction".

Counties are neighbours on a map. Standard cross-entropy is compared with a variable random
partition: for every boosted tree, a spanning tree of the map is cut into m blocks. There are the
paper's five combinations of m and the weight of the singletons. The paper has no control here; we
add one: the same graph with the counties shuffled over its nodes, in another order in every trial.

The first runs were done with XGBoost's vector leaves, up to 10,000 rows. All sizes were then run
with our own engine, which takes about a tenth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from paper.digests import Sources
from paper.experiment import Result, Settings, chosen_sizes
from paper.paper_numbers import COUNTY_COMBINATIONS, COUNTY_LOSSES
from paper.weather import (
    SCHEDULES,
    Draw,
    boosted_trial,
    county_graph,
    county_sources,
    draw,
    settings_of_trials,
)
from structent.structure import PartitionSampler, RandomPartition, SpanningTreePartitions, trivial

_SIZES = {"paper": tuple(COUNTY_LOSSES), "quick": tuple(COUNTY_LOSSES), "smoke": (200,)}
_N_TRIALS = {"paper": 5, "quick": 5, "smoke": 2}
_CONTROLS = ((10, 0.25), (10, 0.5))
OURS, XGBOOST = "structent", "xgboost"
ENGINES = (OURS, XGBOOST)


def engine_of(settings: Settings) -> str:
    """Return the engine that grew the trees of a run."""
    return str(settings.get("engine", XGBOOST))


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
        Which training set sizes of the preset to run; all if None.
    engines
        Which engines grow the trees.
    """

    name: ClassVar[str] = "counties"
    kept_in: ClassVar[str] = "counties"

    data: Path
    preset: str
    sizes: tuple[int, ...] | None = None
    engines: tuple[str, ...] = (XGBOOST,)

    def runs(self) -> list[Settings]:
        """Return every engine, size, trial, method and combination; small sizes first."""
        arms = [
            ("standard", None, 1.0),
            *(("variable", *combination) for combination in COUNTY_COMBINATIONS),
            *(("variable, scrambled", *combination) for combination in _CONTROLS),
        ]
        sizes = chosen_sizes(_SIZES[self.preset], self.sizes)
        runs = settings_of_trials(
            self.name, self.preset, arms, sizes=sizes, n_trials=_N_TRIALS[self.preset]
        )
        # Runs were recorded before there was another engine than XGBoost; theirs is not named.
        of_engine = {XGBOOST: runs, OURS: [{**run, "engine": OURS} for run in runs]}
        return [run for engine in self.engines for run in of_engine[engine]]

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the weather and the graph."""
        return county_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the log losses of one method in one trial."""
        return boosted_trial(
            self.rows(settings),
            self.structure(settings),
            SCHEDULES[self.preset],
            seed=settings["trial"],
            n_threads=n_threads,
            engine=engine_of(settings),
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
        if settings["method"] == "standard":
            return trivial(county_graph(self.data).classes)
        return self.variable_structure(settings)

    def variable_structure(self, settings: Settings) -> PartitionSampler:
        """Return the partitions of a run that are drawn for every tree."""
        structure = SpanningTreePartitions(
            county_graph(self.data),
            settings["n_blocks"],
            settings["singleton_weight"],
            seed=settings["trial"],
        )
        if settings["method"] == "variable":
            return structure
        return structure.scramble(np.random.default_rng(settings["trial"]))
