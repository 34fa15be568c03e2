"""Which learning rate suits the fine-tuning of Experiment 1C, and does the loss gain at it?

The rate of the quick preset was chosen for MobileNetV2. Another network may need another one, and
so may another loss: validation images choose it for each loss in each trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from paper.beyond import Asked
from paper.cifar100_results import READINGS, places
from paper.cifar100_tables import beside_paper
from paper.digests import Sources, check_one_data
from paper.experiment import Experiment, Finished, Result, Settings
from paper.fine_tuning import SCHEDULES, FineTuning, fine_tuned
from paper.networks import backbone_name
from paper.pages import Page, about
from paper.paper_numbers import MEASURES, PAPER_LOSSES
from paper.training import settings_of_trials

_QUICK = SCHEDULES["quick"]
RATES = (3e-5, 1e-4, _QUICK.learning_rate)
RATES_OF_MOBILENET = (1e-4, _QUICK.learning_rate, 1e-3)  # one below the preset's, and one above


@dataclass(frozen=True)
class LearningRate:
    """The runs of both losses at the rates that the quick preset does not have."""

    name: ClassVar[str] = "learning_rate"
    kept_in: ClassVar[str] = "learning_rate"

    data: Path
    backbone: str

    def runs(self) -> list[Settings]:
        """Return every run, a rate at a time."""
        schedules = [replace(_QUICK, learning_rate=rate) for rate in self.rates]
        return [
            run
            for schedule in schedules
            if schedule != _QUICK
            for run in settings_of_trials(
                "1C", "quick, other rates", PAPER_LOSSES,
                size=schedule.size, network=self.network, schedule=schedule,
            )
        ]  # fmt: skip

    def sources(self, settings: Settings) -> Sources:
        """Return the images and the pre-trained network."""
        return self.quick.sources(settings)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one loss at one rate in one trial."""
        schedule = replace(_QUICK, learning_rate=settings["schedule"]["learning_rate"])
        return fine_tuned(self.data, self.backbone, settings, schedule, n_threads)

    @property
    def rates(self) -> tuple[float, ...]:
        """All rates of this network, in ascending order."""
        return RATES_OF_MOBILENET if "mobilenet" in self.network.lower() else RATES

    @property
    def network(self) -> str:
        """The name of the network."""
        return backbone_name(self.backbone)

    @property
    def quick(self) -> FineTuning:
        """The experiment at the rate of the quick preset."""
        return FineTuning(self.data, "quick", self.backbone)


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [_asked_for(asked)]


def page(asked: Asked) -> Page:
    """Return the page of all rates; those of the quick preset are from 1C."""
    experiment = _asked_for(asked)
    runs = experiment.runs()
    own = asked.kept(experiment.kept_in).finished_of(runs)
    quick = asked.kept(FineTuning.kept_in).finished_of(experiment.quick.runs())
    check_one_data(run.data for run in (*own, *quick))
    by_rate = {
        rate: [run for run in (*own, *quick) if _rate(run) == rate] for rate in experiment.rates
    }
    parts = [
        "# The learning rate of fine-tuning",
        (
            f"In [1C](cifar100-1C.md) all layers learn at the rate {_QUICK.learning_rate:g}, which "
            f"was chosen for MobileNetV2. Here {experiment.network} learns from the same images at "
            f"the rates {', '.join(f'{rate:g}' for rate in experiment.rates)}, everything else "
            "unchanged."
        ),
        *about(own, len(runs), asked.command),
        "Values and differences are read as in [1A](cifar100-1A.md#ours-beside-the-papers).",
        "## The rate chosen on validation images",
        (
            "Rate and epoch are those whose validation value is best, for each metric, loss and "
            f"trial by itself. By cross-entropy: {_chosen_rates(by_rate)}."
        ),
        _values(_joined(by_rate), ["chosen epoch"]),
    ]
    for rate, of_rate in by_rate.items():
        parts += [f"## The rate {rate:g}", _values(of_rate, list(READINGS))]
    return Page(f"learning_rate-{experiment.network}", "\n\n".join(parts))


def _asked_for(asked: Asked) -> LearningRate:
    return LearningRate(asked.data, asked.backbone or "ResNet50")


def _rate(run: Finished) -> float:
    return float(run.settings["schedule"]["learning_rate"])


def _joined(by_rate: dict[float, list[Finished]]) -> list[Finished]:
    """Return the runs of each loss and trial as one, as if its rates followed each other."""
    same: dict[tuple[str, int], list[Finished]] = {}
    for of_rate in by_rate.values():
        for run in of_rate:
            same.setdefault((run.settings["loss"], run.settings["trial"]), []).append(run)
    return [
        replace(runs[0], result=_in_a_row([run.result for run in runs])) for runs in same.values()
    ]


def _in_a_row(results: Sequence[Result]) -> Result:
    joined: Result = {"epochs": [epoch for result in results for epoch in result["epochs"]]}
    for part in ("validation", "test"):
        joined[part] = {
            name: [value for result in results for value in result[part][name]] for name in MEASURES
        }
    return joined


def _chosen_rates(by_rate: dict[float, list[Finished]]) -> str:
    """Return how often each rate has the lowest validation cross-entropy, for each loss."""
    best: dict[tuple[str, int], tuple[float, float]] = {}
    for rate, of_rate in by_rate.items():
        for run in of_rate:
            lowest = (min(run.result["validation"]["cross-entropy"]), rate)
            where = (run.settings["loss"], run.settings["trial"])
            best[where] = min(best.get(where, lowest), lowest)
    counts = {
        loss: Counter(rate for (of, _), (_, rate) in best.items() if of == loss)
        for loss in PAPER_LOSSES
    }
    return "; ".join(
        f"{loss} "
        + ", ".join(
            f"{rate:g} in {count} of {count_of.total()}" for rate, count in sorted(count_of.items())
        )
        for loss, count_of in counts.items()
    )


def _values(runs: Sequence[Finished], readings: list[str]) -> str:
    return beside_paper(
        [place for place in places("1C", runs) if place.case is not None],
        runs,
        losses=PAPER_LOSSES,
        pairs=[("structured", "standard")],
        readings=readings,
    )
