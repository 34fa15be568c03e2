"""The structure in the last layer of a network: what does it gain, beside the loss and with it?

The networks of Experiments 1A and 1D learn from the same images and by the same schedules as in
their recorded runs, which stand for "standard" and "structured".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paper.beyond import Asked
from paper.cifar100_results import READINGS, Place, cases
from paper.cifar100_tables import beside_paper
from paper.experiment import Experiment, Finished, Result, Settings
from paper.features import BACKBONE, cache_folder
from paper.last_layer import LastLayer
from paper.pages import Page, about
from paper.paper_numbers import LAYERS, PAPER_LOSSES, TABLE_1A, TABLE_1D, PaperCase
from paper.small_network import SmallNetwork
from paper.training import SINGLETON_WEIGHT_OF_LAYER
from structent.studies.progress import OnProgress

_SIZES = (1000, 2500)
_ALL = (*PAPER_LOSSES, *LAYERS)
_PAIRS = [
    ("structured", "standard"),
    ("structured layer", "standard"),
    ("scrambled layer", "standard"),
    ("loss and layer", "standard"),
    ("loss and layer", "structured"),
]
_QUESTION = (
    "The networks of [1A](cifar100-1A.md), trained from nothing, and of "
    "[1D](cifar100-1D.md), whose last layer alone is trained, learn from the same images with a "
    "structured last layer "
    "([what that is](../prior.md)), whose weight of the singletons is "
    f"{SINGLETON_WEIGHT_OF_LAYER}. It was not tuned, and there is no weight decay. "
    '"Standard" and "structured" are the recorded runs: the ordinary layer with the standard loss, '
    "and with the paper's. A scrambled layer is the control."
)


@dataclass(frozen=True)
class FromNothing:
    """Three networks with a structured last layer in every trial of 1A."""

    name: ClassVar[str] = "layers-1A"
    kept_in: ClassVar[str] = "layers"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run, the small size first."""
        return [run for size in _SIZES for run in self.runs_of(size, LAYERS)]

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one network in one trial."""
        return self._network.run(settings, n_threads)

    def runs_of(self, size: int, losses: tuple[str, ...]) -> list[Settings]:
        """Return the runs of some losses with one number of images."""
        return self._network.runs_of("1A", size, losses)

    @property
    def _network(self) -> SmallNetwork:
        return SmallNetwork(self.data, "quick", "1A")


@dataclass(frozen=True)
class OnFrozenFeatures:
    """Three structured last layers in every trial of 1D."""

    name: ClassVar[str] = "layers-1D"
    kept_in: ClassVar[str] = "layers"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run."""
        return self.runs_of(LAYERS)

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Compute the features of all trials, and keep them."""
        self._last_layer.prepare(n_threads, on_progress)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one last layer in one trial."""
        return self._last_layer.run(settings, n_threads)

    def runs_of(self, losses: tuple[str, ...]) -> list[Settings]:
        """Return the runs of some losses."""
        return self._last_layer.runs_of(losses)

    @property
    def _last_layer(self) -> LastLayer:
        return LastLayer(self.data, "paper", str(self.data / BACKBONE), cache_folder())


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [FromNothing(asked.data), OnFrozenFeatures(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page, of these runs and of those of 1A and 1D on the same images."""
    small, frozen = FromNothing(asked.data), OnFrozenFeatures(asked.data)
    own = [run for each in (small, frozen) for run in each.runs()]
    finished = asked.kept(FromNothing.kept_in).finished_of(own)
    paper = [run for size in _SIZES for run in small.runs_of(size, PAPER_LOSSES)]
    recorded = asked.kept("cifar100").finished_of([*paper, *frozen.runs_of(PAPER_LOSSES)])
    runs = [*recorded, *finished]
    of_sizes = {size: [run for run in runs if _is_of(run, "1A", size)] for size in _SIZES}
    of_frozen = [run for run in runs if run.settings["experiment"] == "1D"]
    parts = [
        "# A structured last layer",
        _QUESTION,
        *about(finished, len(own), asked.command),
        "Values and differences are read as in [1A](cifar100-1A.md#ours-beside-the-papers).",
    ]
    for size, of_size in of_sizes.items():
        parts += [f"## 1A, {size:,} images", _values(f"{size:,} images", of_size, TABLE_1A[size])]
    parts += ["## 1D, 1,000 images", _values("1,000 images", of_frozen, TABLE_1D[1000])]
    return Page("layers", "\n\n".join(parts))


def _is_of(run: Finished, experiment: str, size: int) -> bool:
    return bool(run.settings["experiment"] == experiment and run.settings["size"] == size)


def _values(name: str, runs: Sequence[Finished], in_paper: PaperCase) -> str:
    case = next(iter(cases(runs)), None)  # there is one network
    return beside_paper(
        [Place(name, name, case, in_paper)],
        runs,
        losses=_ALL,
        pairs=_PAIRS,
        readings=list(READINGS),
    )
