"""The structure in the last layer of a network: what does it gain, compared with the loss?

The networks of Experiments 1A, 1C and 1D learn from the same images with the same schedules as in
their recorded runs, which are the arms "standard" and "structured".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from paper.beyond import Asked
from paper.cifar100_results import READINGS, Place, cases
from paper.cifar100_tables import beside_paper
from paper.digests import Sources, check_one_data
from paper.experiment import Experiment, Finished, Result, Settings
from paper.features import BACKBONE, cache_folder
from paper.fine_tuning import FineTuning
from paper.last_layer import LastLayer
from paper.pages import Page, about
from paper.paper_numbers import LAYERS, PAPER_LOSSES, TABLE_1A, TABLE_1C, TABLE_1D, PaperCase
from paper.small_network import SmallNetwork
from paper.training import SINGLETON_WEIGHT_OF_LAYER
from structent.studies.progress import OnProgress

_SIZES, _LARGE = (1000, 2500), (5000,)
_N_TRIALS = 3  # 1A has more with few images
_PROBLEMS = ("1A", "1D", "1A-5000", "1C")
_ALL = (*PAPER_LOSSES, *LAYERS)
_PAIRS = [
    ("structured", "standard"),
    ("structured layer", "standard"),
    ("scrambled layer", "standard"),
    ("loss and layer", "standard"),
    ("loss and layer", "structured"),
]
_QUESTION = (
    "The networks of [1A](cifar100-1A.md), trained from scratch, of [1C](cifar100-1C.md), "
    "fine-tuned as a whole, and of [1D](cifar100-1D.md), of which only the last layer is trained, "
    "learn from the same images with a structured last layer "
    "([what that is](../prior.md)). Its weight of the singletons is "
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
    sizes: tuple[int, ...] = _SIZES

    def runs(self) -> list[Settings]:
        """Return every run, the small size first."""
        return [run for size in self.sizes for run in self.runs_of(size, LAYERS)]

    def sources(self, settings: Settings) -> Sources:
        """Return the images."""
        return self._network.sources(settings)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one network in one trial."""
        return self._network.run(settings, n_threads)

    def runs_of(self, size: int, losses: tuple[str, ...]) -> list[Settings]:
        """Return the runs of some losses with one number of images, in the first trials."""
        runs = self._network.runs_of("1A", size, losses)
        return [run for run in runs if run["trial"] < _N_TRIALS]

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

    def sources(self, settings: Settings) -> Sources:
        """Return the images and their network."""
        return self._last_layer.sources(settings)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one last layer in one trial."""
        return self._last_layer.run(settings, n_threads)

    def runs_of(self, losses: tuple[str, ...]) -> list[Settings]:
        """Return the runs of some losses."""
        return self._last_layer.runs_of(losses)

    @property
    def _last_layer(self) -> LastLayer:
        return LastLayer(self.data, "paper", str(self.data / BACKBONE), cache_folder())


@dataclass(frozen=True)
class FineTuned:
    """Three structured last layers in every trial of 1C, on MobileNetV2."""

    name: ClassVar[str] = "layers-1C"
    kept_in: ClassVar[str] = "layers"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run."""
        return self.runs_of(LAYERS)

    def sources(self, settings: Settings) -> Sources:
        """Return the images and their network."""
        return self._fine_tuning.sources(settings)

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the trajectories of one network in one trial."""
        return self._fine_tuning.run(settings, n_threads)

    def runs_of(self, losses: tuple[str, ...]) -> list[Settings]:
        """Return the runs of some losses."""
        return self._fine_tuning.runs_of(losses)

    @property
    def _fine_tuning(self) -> FineTuning:
        return FineTuning(self.data, "quick", str(self.data / BACKBONE))


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run: 1A and 1D; 1A with 5,000 images and 1C only if they are asked for."""
    of_problem: dict[str, Experiment] = {
        "1A": FromNothing(asked.data),
        "1D": OnFrozenFeatures(asked.data),
        "1A-5000": FromNothing(asked.data, _LARGE),
        "1C": FineTuned(asked.data),
    }
    wanted = asked.problems_among(_PROBLEMS) if asked.problems else ("1A", "1D")
    return [of_problem[problem] for problem in wanted]


def page(asked: Asked) -> Page:
    """Return the page of these runs, compared with runs of 1A, 1C and 1D on the same images.

    Experiments that take longer are shown when some of their runs are finished.
    """
    small, frozen, tuned = (
        FromNothing(asked.data), OnFrozenFeatures(asked.data), FineTuned(asked.data)
    )  # fmt: skip
    kept = asked.kept(FromNothing.kept_in)
    large = FromNothing(asked.data, _LARGE)
    later = [each for each in (large, tuned) if kept.finished_of(each.runs())]
    own = [run for each in (small, frozen, *later) for run in each.runs()]
    finished = kept.finished_of(own)
    sizes = (*_SIZES, *(_LARGE if large in later else ()))
    paper = [run for size in sizes for run in small.runs_of(size, PAPER_LOSSES)]
    paper += frozen.runs_of(PAPER_LOSSES)
    paper += tuned.runs_of(PAPER_LOSSES) if tuned in later else []
    runs = [*asked.kept("cifar100").finished_of(paper), *finished]
    check_one_data(run.data for run in runs)
    parts = [
        "# A structured last layer",
        _QUESTION,
        *about(finished, len(own), asked.command),
        "Values and differences are read as in [1A](cifar100-1A.md#ours-beside-the-papers).",
    ]
    places = [("1A", size, TABLE_1A[size]) for size in sizes]
    places += [("1D", 1000, TABLE_1D[1000])]
    places += [("1C", 1000, TABLE_1C["MobileNetV2"])] if tuned in later else []
    for experiment, size, in_paper in places:
        of_place = [run for run in runs if _is_of(run, experiment, size)]
        parts += [
            f"## {experiment}, {size:,} images",
            _values(f"{size:,} images", of_place, in_paper),
        ]
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
