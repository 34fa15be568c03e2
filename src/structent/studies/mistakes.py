"""The mistakes of a comparison by name, and whether they stay within a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structent._typing import FloatArray, IndexArray
from structent.structure import RandomPartition, SpanningTreePartitions
from structent.studies.levels import edges_between

if TYPE_CHECKING:
    from structent.studies.comparison import ArmName, Comparison

_ARMS: tuple[ArmName, ...] = ("none", "structure")
MOST_CONFUSIONS = 10


class Confusion(NamedTuple):
    """A class that is taken for another.

    Attributes
    ----------
    true, predicted
        The two classes.
    n_none, n_structure
        In how many test rows, by the model without structure and by the one with it.
    n_true
        How many test rows the true class has.
    together
        For each level with blocks of several classes: in how many of its partitions the two classes
        share a block, and how many partitions it has.
    edges
        How many edges of the graph are between the two; None if the structure is not a graph.
    """

    true: Any
    predicted: Any
    n_none: int
    n_structure: int
    n_true: int
    together: dict[str, tuple[int, int]]
    edges: int | None


class WithinBlocks(NamedTuple):
    """The share of the mistakes that stay within a block of a level; NaN without mistakes.

    Attributes
    ----------
    level
        The level; of several partitions the mean is taken.
    none, structure
        The shares, by the model without structure and by the one with it.
    chance
        The share if every mistake of the model without structure were a random other class.
    """

    level: str
    none: float
    structure: float
    chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as plain data, with None in place of NaN, which JSON does not have."""
        shares = {"none": self.none, "structure": self.structure, "chance": self.chance}
        known = {name: None if np.isnan(share) else share for name, share in shares.items()}
        return {"level": self.level, **known}


def frequent_confusions(comparison: Comparison) -> list[Confusion]:
    """Return the ten most frequent confusions of each model, those with most rows first."""
    none, with_structure = (_counted(comparison, arm) for arm in _ARMS)
    kept = dict.fromkeys([*_most_frequent(none), *_most_frequent(with_structure)])
    both = {pair: (none.get(pair, 0), with_structure.get(pair, 0)) for pair in kept}
    n_true = np.bincount(comparison.labels, minlength=len(comparison.task.classes))
    classes, structure = comparison.task.classes, comparison.structure
    scored = comparison.scored_structure
    edges = None
    if isinstance(structure, SpanningTreePartitions):
        edges = edges_between(structure.graph)
    found = []
    for true, predicted in sorted(both, key=lambda pair: (-max(both[pair]), pair)):
        n_none, n_structure = both[true, predicted]
        together = _together(scored, true, predicted)
        between = None if edges is None else int(edges[true, predicted])
        found.append(
            Confusion(
                classes[true],
                classes[predicted],
                n_none,
                n_structure,
                int(n_true[true]),
                together,
                between,
            )
        )
    return found


def shares_within_blocks(comparison: Comparison) -> list[WithinBlocks]:
    """Return what share of the mistakes stays within a block, at each level that has any."""
    structure = comparison.scored_structure
    wrong = {arm: _wrong(comparison, arm) for arm in _ARMS}
    return [
        WithinBlocks(
            name,
            _share_within(structure.level(name), *wrong["none"]),
            _share_within(structure.level(name), *wrong["structure"]),
            _share_by_chance(structure.level(name), wrong["none"][0]),
        )
        for name in _coarse_levels(structure)
    ]


def _wrong(comparison: Comparison, arm: ArmName) -> tuple[IndexArray, IndexArray]:
    """Return the true and the predicted class of the rows that a model got wrong, by number."""
    predicted = comparison.proba[arm].argmax(axis=1)
    is_wrong = predicted != comparison.labels
    return comparison.labels[is_wrong], predicted[is_wrong]


def _counted(comparison: Comparison, arm: ArmName) -> dict[tuple[int, int], int]:
    pairs, counts = np.unique(np.stack(_wrong(comparison, arm), axis=1), axis=0, return_counts=True)
    found = zip(pairs.tolist(), counts.tolist(), strict=True)
    return {(true, predicted): count for (true, predicted), count in found}


def _most_frequent(counts: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:MOST_CONFUSIONS]


def _coarse_levels(structure: RandomPartition) -> list[str]:
    levels = structure.levels.items()
    return [name for name, cuts in levels if not all(cut.is_singletons for cut in cuts)]


def _together(structure: RandomPartition, a: int, b: int) -> dict[str, tuple[int, int]]:
    return {
        name: (sum(bool(cut.block_of[a] == cut.block_of[b]) for cut in cuts), len(cuts))
        for name in _coarse_levels(structure)
        for cuts in (structure.levels[name],)
    }


def _share_within(level: RandomPartition, true: IndexArray, predicted: IndexArray) -> float:
    if not len(true):
        return float("nan")
    same = [(block_of[true] == block_of[predicted]).mean() for block_of in level.block_of]
    return float(level.weights @ np.array(same))


def _share_by_chance(level: RandomPartition, true: IndexArray) -> float:
    if not len(true):
        return float("nan")
    sizes: list[FloatArray] = [np.bincount(of)[of[true]] - 1.0 for of in level.block_of]
    return float(level.weights @ np.array([each.mean() for each in sizes]) / (level.n_classes - 1))
