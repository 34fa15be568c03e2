"""Graphs learned from data: every class is joined to those that are nearest to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import minimum_spanning_tree

from structent._checks import checked_integer
from structent.errors import StructureError
from structent.structure.distances import checked_distances, distances_from_confusion
from structent.structure.graph import LabelGraph
from structent.structure.labels import as_classes


def neighbour_graph_from_confusion(
    confusion: ArrayLike, classes: Iterable[Any], *, n_neighbours: int = 2
) -> LabelGraph:
    """Return the graph that joins each class to those it is most confused with.

    For :class:`~structent.structure.SpanningTreePartitions`. The distances are those of
    :func:`distances_from_confusion`, the graph that of :func:`neighbour_graph_from_distances`.

    Examples
    --------
    >>> confusion = [[6, 4, 0, 0], [4, 6, 0, 0], [0, 0, 7, 3], [1, 0, 3, 6]]
    >>> names = ["oak", "ash", "rose", "lily"]
    >>> neighbour_graph_from_confusion(confusion, names, n_neighbours=1).edges
    (('oak', 'ash'), ('oak', 'lily'), ('rose', 'lily'))
    """
    distances = distances_from_confusion(confusion)
    return neighbour_graph_from_distances(distances, classes, n_neighbours=n_neighbours)


def neighbour_graph_from_distances(
    distances: ArrayLike, classes: Iterable[Any], *, n_neighbours: int = 2
) -> LabelGraph:
    """Return the connected graph that joins each class to those nearest to it.

    Its edges are those of the shortest spanning tree, which connect it, and those from each class
    to its nearest ``n_neighbours``.

    Parameters
    ----------
    distances
        (classes, classes), symmetric, 0 from a class to itself.
    classes
        The classes, in the order of the rows, two or more.
    n_neighbours
        To how many others each class is joined, at the least; less than the number of classes.

    Examples
    --------
    >>> places = np.array([0.0, 1.0, 3.0, 6.0])
    >>> distances = abs(places[:, None] - places)
    >>> neighbour_graph_from_distances(distances, list("abcd"), n_neighbours=1).edges
    (('a', 'b'), ('b', 'c'), ('c', 'd'))
    """
    ordered = as_classes(classes)
    n_classes = len(ordered)
    if n_classes < 2:
        raise StructureError(f"a graph of neighbours needs two classes or more, got {n_classes}")
    checked = checked_distances(distances, n_classes)
    n_neighbours = checked_integer(
        n_neighbours, "n_neighbours", at_least=1, at_most=n_classes - 1, reason=", one less than "
        "the number of classes",
    )  # fmt: skip
    # The tree hangs on the order of the distances alone, and a distance of 0 would be no edge.
    order = 1.0 + np.unique(checked, return_inverse=True)[1].reshape(checked.shape)
    np.fill_diagonal(order, 0.0)
    joined = minimum_spanning_tree(order).toarray() > 0
    np.fill_diagonal(order, np.inf)
    nearest = np.argsort(order, axis=1, kind="stable")[:, :n_neighbours]
    np.put_along_axis(joined, nearest, values=True, axis=1)
    edges = np.argwhere(np.triu(joined | joined.T))
    return LabelGraph([(ordered[a], ordered[b]) for a, b in edges.tolist()], ordered)
