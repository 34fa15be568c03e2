"""The places in the table of an experiment: what was run, what the paper has, or both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from structent.experiments.cifar100.names import SIZE_OF_1B
from structent.experiments.cifar100.paper_numbers import (
    TABLE_1A,
    TABLE_1C,
    TABLE_1D,
    PaperCase,
)
from structent.experiments.cifar100.readings import Case, cases
from structent.experiments.kept import Finished

# Experiments whose table goes by the number of training images.
_BY_SIZE: Mapping[str, Mapping[int, PaperCase]] = {
    "1A": TABLE_1A,
    "1B": {SIZE_OF_1B: TABLE_1A[SIZE_OF_1B]},
    "1D": TABLE_1D,
}
# How the paper's networks may be called, in small letters and digits; ResNet50V2 is another one.
_PATTERN = {"ResNet50": r"resnet50(?!v2)", "MobileNetV2": r"mobilenetv2"}


@dataclass(frozen=True)
class Place:
    """A place in the table of an experiment.

    Attributes
    ----------
    label
        Its name, for readers.
    slug
        Its name, for files.
    case
        The case that was run; None where nothing was.
    paper
        What the paper has there, if anything.
    """

    label: str
    slug: str
    case: Case | None
    paper: PaperCase | None


def places(name: str, runs: Sequence[Finished]) -> list[Place]:
    """Return the places of an experiment's table, in the order of the paper's."""
    found = cases(runs)
    return _by_network(found) if name == "1C" else _by_size(found, _BY_SIZE[name])


def _by_size(run: list[Case], papers: Mapping[int, PaperCase]) -> list[Place]:
    n_networks = len({case.network for case in run})
    found = []
    for size in sorted({*papers, *(case.size for case in run)}):
        here: list[Case | None] = [case for case in run if case.size == size]
        for case in here or [None]:
            network = case.network if case is not None and n_networks > 1 else ""
            label = f"{size:,} images" + f", {network}" * bool(network)
            found.append(Place(label, _slug(f"{size} {network}"), case, papers.get(size)))
    return found


def _by_network(run: list[Case]) -> list[Place]:
    found = []
    for network, paper in TABLE_1C.items():
        same = [case for case in run if _is_network(case.network, network)]
        found += [_of_network(case, network, paper) for case in same]
        if not same:
            found.append(Place(network, _slug(network), None, paper))
    known = {place.case for place in found}
    others = [case for case in run if case not in known]
    return found + [_of_network(case, case.network, None) for case in others]


def _of_network(case: Case, network: str, paper: PaperCase | None) -> Place:
    name = network if case.network == network else f"{network} ({case.network})"
    return Place(f"{name}, {case.size:,} images", _slug(f"{case.network} {case.size}"), case, paper)


def _is_network(ours: str, papers: str) -> bool:
    letters = re.sub(r"[^a-z0-9]", "", ours.lower())
    return re.search(_PATTERN[papers], letters) is not None


def _slug(text: str) -> str:
    return "-".join(re.findall(r"\w+", text))
