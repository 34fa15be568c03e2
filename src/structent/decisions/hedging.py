"""Sets of classes that are sure enough, by the model's own probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_fraction
from structent._typing import FloatArray, IndexArray, Label
from structent.decisions.chains import Chains, Climbed
from structent.metrics.rows import checked_columns, checked_proba
from structent.structure import RandomPartition
from structent.structure.partition_sampler import checked_fixed


@dataclass(frozen=True, eq=False)
class HedgedPredictions:
    """A set of classes for each row; all columns have one entry a row.

    Attributes
    ----------
    sets
        The classes of each row's set, in the structure's order.
    probability
        The probability of the set, (n,).
    names
        What the set is called: a class, a block's name, or ``"all classes"``.
    levels
        The level whose block it is; None where the set is all classes and no block.
    depths
        How many levels of the structure the set settles, (n,): those with a block that holds all
        of it. In a hierarchy that is its depth in the tree, 0 for all classes.
    classes
        All classes of the structure.
    """

    sets: tuple[tuple[Label, ...], ...]
    probability: FloatArray
    names: tuple[str, ...]
    levels: tuple[str | None, ...]
    depths: IndexArray
    classes: tuple[Label, ...]

    @property
    def sizes(self) -> IndexArray:
        """How many classes each set has, (n,)."""
        return np.array([len(each) for each in self.sets], dtype=np.int64)

    @property
    def average_size(self) -> float:
        """The mean number of classes in a set; NaN without rows."""
        return float(self.sizes.mean()) if self.sets else float("nan")

    @property
    def average_depth(self) -> float:
        """The mean number of levels that a set settles; NaN without rows."""
        return float(self.depths.mean()) if self.sets else float("nan")


def hedge(
    proba: ArrayLike, structure: RandomPartition, confidence: float, *, classes: Any = None
) -> HedgedPredictions:
    """As precise a set of classes for each row as its probabilities allow.

    A row's probabilities alone fix a chain of growing sets: the most probable class; then, each
    time, the block with the fewest classes of those that hold the last set and more, the most
    probable one where there are several; at the end all classes. In a hierarchy that is the path
    from the class to the root. The result is the first set of the chain with at least the asked
    probability, so that it grows with the confidence.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    structure
        The structure. The blocks of all its partitions count, those of weight 0 among them: which
        sets may be named is not a matter of weights.
    confidence
        The probability that a set must have, between 0 and 1. With 0 the most probable class is
        enough. All classes are always enough.
    classes
        The class of each column of ``proba``; those of the structure in its order, if None.

    Returns
    -------
    The set of each row with its probability, name and level. Equally probable classes and blocks
    are taken in their order, that of partitions first.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.875, 0.125, 0.0], [0.5, 0.375, 0.125], [0.25, 0.25, 0.5]]
    >>> hedged = hedge(proba, plants, 0.8)
    >>> hedged.names
    ('oak', 'tree', 'all classes')
    >>> hedged.sets[1], float(hedged.probability[1])
    (('oak', 'maple'), 0.875)
    """
    confidence = checked_fraction(confidence, "confidence")
    chains, table = checked_rows(proba, structure, classes)
    climbed = chains.climb(table, lambda _rows, _sets, probability: probability < confidence)
    return predictions(climbed, chains, structure.classes)


def checked_rows(
    proba: ArrayLike, structure: RandomPartition, classes: Any
) -> tuple[Chains, FloatArray]:
    """Return the chains of a structure, and probabilities whose columns are in its order."""
    structure = checked_fixed(structure)
    columns = checked_columns(classes, structure.classes)
    return Chains.of(structure), checked_proba(proba, structure.n_classes, columns)


def predictions(climbed: Climbed, chains: Chains, classes: tuple[Label, ...]) -> HedgedPredictions:
    """Return the sets where rows stand, with what they are called."""
    set_of = climbed.set_of.tolist()
    different = {i: chains.sets[i] for i in set(set_of)}
    labels = {i: tuple(classes[c] for c in each.members.tolist()) for i, each in different.items()}
    depths = {i: chains.depth(i) for i in different}
    return HedgedPredictions(
        tuple(labels[i] for i in set_of),
        climbed.probability,
        tuple(different[i].name for i in set_of),
        tuple(different[i].level for i in set_of),
        np.array([depths[i] for i in set_of], dtype=np.int64),
        classes,
    )
