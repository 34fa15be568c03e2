"""Why does a scrambled graph of the counties help? Partitions drawn for every tree, or averaged.

The trials of the counties are trained again with the average of many draws, the same for every
tree: the loss is the same on average, but nothing is random. The standard loss at half the learning
rate shows what slower learning alone would gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from paper.beyond import Asked
from paper.counties import Counties
from paper.digests import Sources, check_one_data
from paper.experiment import Experiment, Result, Settings
from paper.pages import Page, about, difference_cell, loss_cell, table
from paper.weather import SCHEDULES, boosted_trial, county_graph, county_sources
from paper.weather_results import (
    STANDARD,
    Arm,
    Readings,
    chosen_on_validation,
    difference,
    mean_loss,
    scrambled,
)
from structent import RandomPartition, mix, trivial

_N_DRAWS = 100
_PAPER = SCHEDULES["paper"]
# Twice the patience, because steps are half as large.
_HALF_RATE = replace(_PAPER, learning_rate=_PAPER.learning_rate / 2, patience=2 * _PAPER.patience)

_SIZES = (1000, 2000)
_DRAWN, _AVERAGED = Arm("variable", 10, 0.5), Arm("averaged", 10, 0.5)
_SLOWER = Arm("standard, half the learning rate", None, 1.0)
_N_TRIALS = 5
_OF_SIZES = [f"{size:,} rows" for size in _SIZES]

_STEPS = (
    ("slower learning alone", STANDARD, _SLOWER),
    ("the average of scrambled graphs", STANDARD, scrambled(_AVERAGED)),
    ("drawing a scrambled graph for every tree", scrambled(_AVERAGED), scrambled(_DRAWN)),
    ("both: what the control gains", STANDARD, scrambled(_DRAWN)),
    ("the average of the true graph", STANDARD, _AVERAGED),
    ("drawing the true graph for every tree", _AVERAGED, _DRAWN),
    ("both: what the structure gains", STANDARD, _DRAWN),
)


@dataclass(frozen=True)
class Drawing:
    """The runs: the counties' settings with averaged structures, or with a slower standard loss."""

    name: ClassVar[str] = "drawing"
    kept_in: ClassVar[str] = "drawing"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run: a slower one for each standard run, an average for each drawn run."""
        averaged = {"n_draws": _N_DRAWS}
        other: dict[Arm, Settings] = {
            STANDARD: {"method": _SLOWER.method, "schedule": _HALF_RATE.as_settings()},
            _DRAWN: {"method": _AVERAGED.method, **averaged},
            scrambled(_DRAWN): {"method": scrambled(_AVERAGED).method, **averaged},
        }
        return [{**run, "experiment": self.name, **other[_arm(run)]} for run in self.compared()]

    def compared(self) -> list[Settings]:
        """Return the runs of the counties that these are compared with."""
        arms = (STANDARD, _DRAWN, scrambled(_DRAWN))
        return [run for run in self._counties().runs() if _arm(run) in arms]

    def sources(self, settings: Settings) -> Sources:  # noqa: ARG002  the same for all
        """Return the weather and the graph."""
        return county_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the log losses of one method in one trial."""
        return boosted_trial(
            self._counties().rows(settings),
            self._structure(settings),
            _HALF_RATE if settings["method"] == _SLOWER.method else _PAPER,
            seed=settings["trial"],
            n_threads=n_threads,
        )

    def _structure(self, settings: Settings) -> RandomPartition:
        if settings["method"] == _SLOWER.method:
            return trivial(county_graph(self.data).classes)
        drawn = settings["method"].replace(_AVERAGED.method, _DRAWN.method)
        sampler = self._counties().variable_structure({**settings, "method": drawn})
        return mix([sampler.sample(iteration) for iteration in range(_N_DRAWS)])

    def _counties(self) -> Counties:
        return Counties(self.data, "paper", _SIZES)


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Drawing(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page of these runs, compared with runs of the counties."""
    drawing = Drawing(asked.data)
    own = asked.kept("drawing").finished_of(drawing.runs())
    of_counties = asked.kept("counties").finished_of(drawing.compared())
    check_one_data(run.data for run in (*own, *of_counties))
    readings = chosen_on_validation([*own, *of_counties])
    parts = [
        "# Why a scrambled graph helps the counties",
        (
            "On [counties](counties.md) a scrambled graph is better than the standard loss, "
            "although it has no true information. There are two possible causes: the loss, which "
            "any partition makes more lenient, or the drawing, which gives every tree another loss "
            "and so makes trees differ, as sampling rows or columns does. To separate the two, the "
            "partitions of "
            f"{_N_DRAWS} draws are averaged once for all trees: the loss is then the same on "
            "average, and nothing is random. Half the learning rate shows what smaller steps alone "
            "would do, as a lenient loss makes them smaller, too. 10 blocks, singleton weight 0.5."
        ),
        *about(own, len(drawing.runs()), asked.command),
        (
            "The other runs are from [counties](counties.md), on the same rows. Differences "
            "are in nats of test log loss, trial by trial, with standard errors, the depth of the "
            "trees chosen on validation; **bold** is below 0 beyond the 95 % interval."
        ),
        table(["what it is", *_OF_SIZES], _step_rows(readings)),
        "Test log losses:",
        table(["method", *_OF_SIZES], _loss_rows(readings)),
    ]
    return Page("drawing", "\n\n".join(parts))


def _arm(run: Settings) -> Arm:
    return Arm(run["method"], run["n_blocks"], run["singleton_weight"])


def _step_rows(readings: Readings) -> list[list[str]]:
    return [
        [
            name,
            *(
                difference_cell(difference(readings, size, after, before), _N_TRIALS)
                for size in _SIZES
            ),
        ]
        for name, before, after in _STEPS
    ]


def _loss_rows(readings: Readings) -> list[list[str]]:
    arms = (STANDARD, _SLOWER, _AVERAGED, _DRAWN, scrambled(_AVERAGED), scrambled(_DRAWN))
    return [
        [arm.method, *(loss_cell(mean_loss(readings, size, arm), _N_TRIALS) for size in _SIZES)]
        for arm in arms
    ]
