"""The class with the lowest expected cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import as_array
from structent._typing import FloatArray, IndexArray
from structent.errors import StructureError
from structent.metrics.blocks import block_probabilities, weighted_partitions
from structent.metrics.measure import checked_proba, columns_of
from structent.structure import RandomPartition
from structent.structure.labels import as_classes, label_array, plain_values


def minimum_risk(
    proba: ArrayLike, cost: RandomPartition | ArrayLike, *, classes: Any = None
) -> NDArray[Any]:
    r"""The class with the lowest expected cost, for each row.

    With a structure, being wrong costs the weight of the partitions that separate the true class
    from the predicted one:

    .. math:: risk_j = \sum_t w_t \, \bigl( 1 - Q(B_t(j)) \bigr)

    with :math:`B_t(j)` the block of partition t that holds j. No table over the pairs of classes
    is made. With a matrix, :math:`risk_j = \sum_i q_i \, cost_{ij}`.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    cost
        A random partition; or a matrix, ``cost[i, j]`` for predicting class j if i is true, with
        the classes in the order of the columns of ``proba``.
    classes
        The class of each column of ``proba``: with a structure as in
        :func:`~structent.metrics.structured_log_loss`; with a matrix the numbers of the columns if
        it is left out.

    Returns
    -------
    The class of each row, (n,). If risks are equal, it is the most probable, then the first.

    Examples
    --------
    Rose is the most probable class, but the block of the trees is more probable:

    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> minimum_risk([[0.35, 0.25, 0.4]], plants).tolist()
    ['maple']

    Missing an illness (row 1) is ten times worse than a false alarm:

    >>> minimum_risk([[0.8, 0.2]], [[0, 1], [10, 0]], classes=["well", "ill"]).tolist()
    ['ill']
    """
    if isinstance(cost, RandomPartition):
        columns = columns_of(cost.classes, proba, classes)
        table = checked_proba(proba, cost.n_classes, columns)
        return label_array(cost.classes)[_least(_structured_risk(table, cost), table)]
    costs = _checked_costs(cost)
    labels = _checked_names(classes, len(costs))
    table = checked_proba(proba, len(costs), None)
    return labels[_least(table @ costs, table)]


def _structured_risk(proba: FloatArray, structure: RandomPartition) -> FloatArray:
    """Return the expected weight of the partitions that separate the truth from each class."""
    risk = np.zeros(proba.T.shape)  # classes first: a block's column is then copied in one piece
    for weight, partition in weighted_partitions(structure):
        outside = 1.0 - block_probabilities(proba, partition).T  # (blocks, n)
        risk += weight * outside[partition.block_of]
    return risk.T


def _least(risk: FloatArray, proba: FloatArray) -> IndexArray:
    """Return the column with the lowest risk; in ties the most probable, then the first."""
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
    """Return the class of each column as an array: the columns' numbers if none are given."""
    if classes is None:
        return np.arange(n_classes)
    names = as_classes(plain_values(classes))
    if len(names) != n_classes:
        raise StructureError(
            f"classes must be one for each of the {n_classes} columns of cost, got {len(names)}"
        )
    return label_array(names)
