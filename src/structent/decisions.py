"""Decisions from probabilities: the class of least expected cost, and sets that are sure enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import as_array, checked_fraction
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructureError
from structent.metrics.blocks import block_probabilities, weighted_partitions
from structent.metrics.rows import checked_columns, checked_proba, checked_structure
from structent.structure import Partition, RandomPartition
from structent.structure.labels import as_classes, label_array, plain_values
from structent.structure.levels import CLASS_LEVEL

ALL_CLASSES = "all classes"


def minimum_risk(
    proba: ArrayLike, cost: RandomPartition | ArrayLike, *, classes: Any = None
) -> NDArray[Any]:
    r"""The class of least expected cost of each row.

    From a structure, being wrong costs the weight of the partitions that separate the true class
    from the predicted one:

    .. math:: risk_j = \sum_t w_t \, \bigl( 1 - Q(B_t(j)) \bigr)

    with :math:`B_t(j)` the block of partition t that holds j. No table over the pairs of classes
    is made. From a matrix, :math:`risk_j = \sum_i q_i \, cost_{ij}`.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    cost
        A random partition, or the cost of predicting class j where i is true, ``cost[i, j]``, with
        the classes in the order of the columns of ``proba``.
    classes
        The class of each column of ``proba``. If None, those of the structure in its order; with a
        matrix, the columns' numbers.

    Returns
    -------
    The class of each row, (n,); of those with equal risk the most probable, then the first.

    Examples
    --------
    A rose is the most probable class, but a tree is more probable still:

    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> minimum_risk([[0.35, 0.25, 0.4]], plants).tolist()
    ['oak']

    Missing an illness (row 1) is ten times worse than a false alarm:

    >>> minimum_risk([[0.8, 0.2]], [[0, 1], [10, 0]], classes=["well", "ill"]).tolist()
    ['ill']
    """
    if isinstance(cost, RandomPartition):
        columns = checked_columns(classes, cost.classes)
        table = checked_proba(proba, cost.n_classes, columns)
        return label_array(cost.classes)[_least(_structured_risk(table, cost), table)]
    costs = _checked_costs(cost)
    labels = _checked_names(classes, len(costs))
    table = checked_proba(proba, len(costs), None)
    return labels[_least(table @ costs, table)]


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
    """

    sets: tuple[tuple[Label, ...], ...]
    probability: FloatArray
    names: tuple[str, ...]
    levels: tuple[str | None, ...]


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
    structure = checked_structure(structure)
    confidence = checked_fraction(confidence, "confidence")
    columns = checked_columns(classes, structure.classes)
    table = checked_proba(proba, structure.n_classes, columns)
    sets, set_at = _sets(structure)
    sizes = np.array([len(each.members) for each in sets])
    next_sets = cache(partial(_next_sets, sets=sets, set_at=set_at))
    set_of = table.argmax(axis=1)  # the sets of one class are numbered as the classes
    probability = table[np.arange(len(table)), set_of]
    unsure = np.arange(len(table))
    while len(
        unsure := unsure[
            (probability[unsure] < confidence) & (sizes[set_of[unsure]] < structure.n_classes)
        ]
    ):
        for number, rows in _grouped(unsure, set_of[unsure]):
            larger, added = next_sets(number)
            gains = [table[np.ix_(rows, classes_added)].sum(axis=1) for classes_added in added]
            set_of[rows] = larger[np.argmax(gains, axis=0)]  # of equal ones the first
            probability[rows] += np.max(gains, axis=0)
    return _predictions(sets, set_of.tolist(), probability, structure.classes)


class _Set(NamedTuple):
    """A set of classes at which a row may stand, and what it is called."""

    members: IndexArray
    name: str
    level: str | None


def _sets(structure: RandomPartition) -> tuple[list[_Set], IndexArray]:
    """Return the different sets, and which of them is the block of a class in each partition.

    The sets of one class come first. A partition into one block is added as the last, so that
    every set but all classes has a larger one.
    """
    classes, partitions, levels = structure.classes, structure.partitions, structure.level_of
    of_singletons = (level for p, level in zip(partitions, levels, strict=True) if p.is_singletons)
    level_of_classes = next(of_singletons, CLASS_LEVEL)
    sets = [_Set(np.array([c]), str(label), level_of_classes) for c, label in enumerate(classes)]
    number_of = {each.members.tobytes(): number for number, each in enumerate(sets)}
    one_block = Partition(classes, np.zeros(len(classes), dtype=np.int64), names=[ALL_CLASSES])
    set_at = np.empty((len(partitions) + 1, len(classes)), dtype=np.int64)
    for t, (partition, level) in enumerate(
        zip((*partitions, one_block), (*levels, None), strict=True)
    ):
        blocks = _grouped(np.arange(len(classes)), partition.block_of)
        for name, (_, members) in zip(partition.names, blocks, strict=True):
            number = number_of.setdefault(members.tobytes(), len(sets))
            if number == len(sets):
                sets.append(_Set(members, name, level))
            set_at[t, members] = number
    return sets, set_at


def _next_sets(
    number: int, *, sets: list[_Set], set_at: IndexArray
) -> tuple[IndexArray, list[IndexArray]]:
    """Return the sets with the fewest classes of those that hold a set and more.

    With each come the classes that it adds.
    """
    members = sets[number].members
    block = set_at[:, members[0]]  # (partitions,)
    holds_all = (set_at[:, members] == block[:, None]).all(axis=1)
    size_of = {each: len(sets[each].members) for each in block[holds_all].tolist()}
    fewest = min(size for size in size_of.values() if size > len(members))
    larger = [each for each, size in size_of.items() if size == fewest]
    return np.array(larger), [np.setdiff1d(sets[each].members, members) for each in larger]


def _grouped(items: IndexArray, keys: NDArray[Any]) -> Iterator[tuple[int, IndexArray]]:
    """Yield each key in ascending order, with the items that have it."""
    order = np.argsort(keys, kind="stable")
    different, starts = np.unique(keys[order], return_index=True)
    yield from zip(different.tolist(), np.split(items[order], starts[1:]), strict=True)


def _predictions(
    sets: list[_Set], set_of: list[int], probability: FloatArray, classes: tuple[Label, ...]
) -> HedgedPredictions:
    labels = {i: tuple(classes[c] for c in sets[i].members.tolist()) for i in set(set_of)}
    return HedgedPredictions(
        tuple(labels[i] for i in set_of),
        probability,
        tuple(sets[i].name for i in set_of),
        tuple(sets[i].level for i in set_of),
    )


def _structured_risk(proba: FloatArray, structure: RandomPartition) -> FloatArray:
    """Return the expected weight of the partitions that separate the truth from each class."""
    risk = np.zeros(proba.T.shape)  # classes first: a block's column is then copied in one piece
    for weight, partition in weighted_partitions(structure):
        outside = 1.0 - block_probabilities(proba, partition).T  # (blocks, n)
        risk += weight * outside[partition.block_of]
    return risk.T


def _least(risk: FloatArray, proba: FloatArray) -> IndexArray:
    """Return the column of least risk, of equal ones the most probable, then the first."""
    is_least = risk == risk.min(axis=1, keepdims=True)
    least: IndexArray = np.where(is_least, proba, -1.0).argmax(axis=1)
    return least


def _checked_costs(cost: ArrayLike) -> FloatArray:
    costs = as_array(cost, "cost")
    if costs.ndim != 2 or len(set(costs.shape)) != 1 or costs.dtype.kind not in "fiub":
        raise StructureError(
            "cost must be a RandomPartition or a square matrix of numbers, cost[true, predicted], "
            f"got {costs.dtype} of shape {costs.shape}"
        )
    if not np.isfinite(costs).all():
        raise StructureError("cost must hold finite numbers, got infinity or NaN")
    return costs.astype(np.float64)


def _checked_names(classes: Any, n_classes: int) -> NDArray[Any]:
    """Return the class of each column as an array: the columns' numbers where none are given."""
    if classes is None:
        return np.arange(n_classes)
    names = as_classes(plain_values(classes))
    if len(names) != n_classes:
        raise StructureError(
            f"classes must be one for each of the {n_classes} columns of cost, got {len(names)}"
        )
    return label_array(names)
