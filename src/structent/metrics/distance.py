"""How far predictions are from the truth, in the structure's own distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import checked_integer
from structent._typing import FloatArray, IndexArray
from structent.metrics.measure import Measure, ScoredRows, mean_of, measured
from structent.structure import RandomPartition
from structent.structure.samplers import checked_fixed


def mistake_severity(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
) -> float:
    """Mean distance between the true and the most probable class, over the wrong rows only.

    The distance is :meth:`structure.distance <structent.RandomPartition.distance>`: in a hierarchy
    the height of the lowest common ancestor. If no row is wrong, the result is 0. A model with more
    mistakes may have the smaller severity, because the additional mistakes are often harmless. See
    :func:`average_distance`, which counts all rows.

    Parameters
    ----------
    y_true, proba, structure, sample_weight, classes
        As in :func:`~structent.metrics.structured_log_loss`. If classes are equally probable, the
        first in the structure's order is predicted.

    Examples
    --------
    One row is right, one takes an oak for a maple (1), and one takes it for a rose (2).

    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> mistake_severity(["oak", "oak", "oak"], np.eye(3), plants)
    1.5
    """
    measure = severity_measure(checked_fixed(structure))
    return measured([measure], structure.classes, y_true, proba, sample_weight, classes)[0]


def average_distance(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    k: int = 1,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
) -> float:
    """Mean distance between the true class and the k most probable ones, over all rows.

    For a hierarchy this is the average hierarchical distance at k of Bertinetto et al. (2020). Any
    other structure uses its own distance.

    Parameters
    ----------
    y_true, proba, structure, sample_weight, classes
        As in :func:`mistake_severity`.
    k
        How many of the most probable classes of each row count.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> average_distance(["maple"], [[0.5, 0.2, 0.3]], plants)
    0.0
    >>> average_distance(["maple"], [[0.5, 0.2, 0.3]], plants, k=2)  # maple itself, and rose
    1.0
    """
    structure = checked_fixed(structure)
    reason = f" for a structure of {structure.n_classes} classes"
    k = checked_integer(k, "k", at_least=1, at_most=structure.n_classes, reason=reason)
    measure = distance_measure(structure, k)
    return measured([measure], structure.classes, y_true, proba, sample_weight, classes)[0]


def severity_measure(structure: RandomPartition) -> Measure:
    """Return the mean distance over the wrong rows, 0 where there are none."""

    def of_rows(rows: ScoredRows) -> FloatArray:
        predicted = rows.proba.argmax(axis=1)
        weights = np.where(predicted == rows.codes, 0.0, rows.weights)
        return np.array(
            [weights @ class_distances(structure, rows.codes, predicted), weights.sum()]
        )

    def of_parts(parts: Sequence[FloatArray]) -> float:
        total, weight = np.sum(parts, axis=0)
        return float(total / weight) if weight > 0 else 0.0

    return Measure(of_rows, of_parts)


def distance_measure(structure: RandomPartition, k: int) -> Measure:
    """Return the mean distance to the k most probable classes, over all rows."""

    def distances(rows: ScoredRows) -> FloatArray:
        top = _most_probable(rows.proba, k)  # (n, k)
        mean: FloatArray = class_distances(structure, rows.codes[:, None], top).mean(axis=1)
        return mean

    return mean_of(distances)


def class_distances(structure: RandomPartition, a: IndexArray, b: IndexArray) -> FloatArray:
    """Return the structure's distance between classes given by number; a and b broadcast.

    It is computed partition by partition, so that no table over the pairs of classes is made.
    """
    distance = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    if not structure.is_nested:
        for weight, block_of in zip(structure.weights, structure.block_of, strict=True):
            distance += weight * (block_of[a] != block_of[b])
        return distance
    for level in structure.levels.values():
        separates: NDArray[np.bool_] = np.zeros(distance.shape, dtype=np.bool_)
        for partition in level:
            separates |= partition.block_of[a] != partition.block_of[b]
        distance += separates
    return distance


def _most_probable(proba: FloatArray, k: int) -> IndexArray:
    """Return the k most probable classes of each row, (n, k); the first ones in ties."""
    top: IndexArray
    if k == 1:
        top = proba.argmax(axis=1, keepdims=True)
    else:
        top = np.argsort(-proba, axis=1, kind="stable")[:, :k]
    return top
