"""Structures learned from data: blocks of classes that are confused, or that lie close together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from structent._checks import as_array, checked_integer
from structent._typing import FloatArray, Label, WeightRule
from structent.errors import StructureError
from structent.structure.graph import LabelGraph
from structent.structure.labels import as_classes, class_indices, plain_values
from structent.structure.partition import Partition
from structent.structure.random_partition import CLASS_LEVEL, RandomPartition, trivial

MOST_LEVELS = 1000


def structure_from_confusion(
    confusion: ArrayLike,
    classes: Iterable[Any],
    *,
    n_levels: int = 3,
    weights: ArrayLike | WeightRule | None = None,
) -> RandomPartition:
    """Return cuts of the tree that first joins the classes that a model confuses most.

    :func:`distances_from_confusion` gives the distances, and :func:`structure_from_distances` the
    tree and its cuts.

    Parameters
    ----------
    confusion
        ``confusion[true, predicted]``, (classes, classes): counts, or mean probabilities, of rows
        that the model was not trained on.
    classes
        The classes, in the order of its rows.
    n_levels, weights
        As in :func:`structure_from_distances`.

    Examples
    --------
    >>> confusion = [[6, 4, 0, 0], [4, 6, 0, 0], [0, 0, 7, 3], [1, 0, 3, 6]]
    >>> trees = structure_from_confusion(confusion, ["oak", "ash", "rose", "lily"], n_levels=1)
    >>> trees.levels["level 1"][0].blocks
    (('oak', 'ash'), ('rose', 'lily'))
    """
    return structure_from_distances(
        distances_from_confusion(confusion), classes, n_levels=n_levels, weights=weights
    )


def structure_from_distances(
    distances: ArrayLike,
    classes: Iterable[Any],
    *,
    n_levels: int = 3,
    weights: ArrayLike | WeightRule | None = None,
) -> RandomPartition:
    """Return cuts of the tree that joins the nearest classes first (average linkage).

    Each join has a height: the mean distance between the blocks that it joins. The tree is cut at
    the ``n_levels`` largest gaps between successive heights: there, blocks are far apart compared
    with the distances within them. A cut has on average two or more classes per block, so that one
    very close pair does not make a level (unless there are too few classes for ``n_levels`` such
    cuts). The levels are called ``"level 1"``, the coarsest, to ``"level n"``, and ``"class"``.

    Parameters
    ----------
    distances
        (classes, classes), symmetric, 0 from a class to itself.
    classes
        The classes, in the order of the rows.
    n_levels
        How many cuts, beside the singletons; K classes allow at most K - 2.
    weights
        One weight per level, from the coarsest to the singletons, or a rule such as ``hxe(0.5)``;
        equal if None.

    Examples
    --------
    >>> places = np.array([0.0, 1.0, 10.0, 12.0])
    >>> distances = abs(places[:, None] - places)
    >>> on_a_line = structure_from_distances(distances, ["a", "b", "c", "d"], n_levels=1)
    >>> [partition.blocks for partition in on_a_line.partitions]
    [(('a', 'b'), ('c', 'd')), (('a',), ('b',), ('c',), ('d',))]
    """
    ordered = as_classes(classes)
    checked = _checked_distances(distances, len(ordered))
    n_levels = checked_integer(n_levels, "n_levels", at_least=1, at_most=MOST_LEVELS)
    n_cuts = min(n_levels, len(ordered) - 2)
    if n_cuts < 1:
        return trivial(ordered)
    tree = linkage(squareform(checked, checks=False), "average")
    blocks = cut_tree(tree, n_clusters=_block_counts(tree, n_cuts))  # (classes, cuts)
    cuts = [Partition(ordered, block_of) for block_of in blocks.T]
    return RandomPartition(
        [*cuts, Partition.singletons(ordered)],
        weights(n_cuts + 1) if callable(weights) else weights,
        levels=[*(f"level {number}" for number in range(1, n_cuts + 1)), CLASS_LEVEL],
    )


def structure_from_embeddings(
    embeddings: ArrayLike,
    labels: ArrayLike | Sequence[Any],
    *,
    n_levels: int = 3,
    weights: ArrayLike | WeightRule | None = None,
) -> RandomPartition:
    """Return cuts of the tree that first joins the classes whose rows are close together.

    :func:`distances_from_embeddings` gives the distances, and :func:`structure_from_distances` the
    tree and its cuts.

    Parameters
    ----------
    embeddings
        One row per label, (n, dimensions), on a common scale; one vector per class is enough.
    labels
        The class of each row, (n,).
    n_levels, weights
        As in :func:`structure_from_distances`.

    Examples
    --------
    >>> words = {"oak": [0.0, 1], "ash": [0.2, 1], "rose": [3.0, 0], "lily": [3.1, 0]}
    >>> structure = structure_from_embeddings(list(words.values()), list(words), n_levels=1)
    >>> structure.levels["level 1"][0].blocks
    (('ash', 'oak'), ('lily', 'rose'))
    """
    distances, classes = distances_from_embeddings(embeddings, labels)
    return structure_from_distances(distances, classes, n_levels=n_levels, weights=weights)


def neighbour_graph_from_confusion(
    confusion: ArrayLike, classes: Iterable[Any], *, n_neighbours: int = 2
) -> LabelGraph:
    """Return the graph that joins each class to the classes it is most confused with.

    For :class:`~structent.structure.SpanningTreePartitions`. :func:`distances_from_confusion` gives
    the distances, and :func:`neighbour_graph_from_distances` the graph.

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
    """Return the connected graph that joins each class to the nearest classes.

    Its edges are the minimum spanning tree, which connects it, and the edges from each class to
    its ``n_neighbours`` nearest classes.

    Parameters
    ----------
    distances
        (classes, classes), symmetric, 0 from a class to itself.
    classes
        The classes, in the order of the rows, two or more.
    n_neighbours
        To how many others each class is joined at least; less than the number of classes.

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
    checked = _checked_distances(distances, n_classes)
    n_neighbours = checked_integer(
        n_neighbours, "n_neighbours", at_least=1, at_most=n_classes - 1, reason=", one less than "
        "the number of classes",
    )  # fmt: skip
    # Only the order of the distances matters for the tree, and a distance of 0 would be no edge.
    order = 1.0 + np.unique(checked, return_inverse=True)[1].reshape(checked.shape)
    np.fill_diagonal(order, 0.0)
    joined = minimum_spanning_tree(order).toarray() > 0
    np.fill_diagonal(order, np.inf)
    nearest = np.argsort(order, axis=1, kind="stable")[:, :n_neighbours]
    np.put_along_axis(joined, nearest, values=True, axis=1)
    edges = np.argwhere(np.triu(joined | joined.T))
    return LabelGraph([(ordered[a], ordered[b]) for a, b in edges.tolist()], ordered)


def distances_from_confusion(confusion: ArrayLike) -> FloatArray:
    r"""Return how far apart classes are, by how often they are confused.

    Let :math:`q_{ab}` be the share of the rows of class a that are predicted as b, and :math:`c_b`
    its mean over all classes a, which is what a model that knows nothing would give. Then

    .. math:: D_{ab} = \log K - \log \tfrac12 (q_{ab} / c_b + q_{ba} / c_a)

    for K classes. It is 0 if all rows predicted as one class are of the other, log K if two classes
    are confused as often as by chance, and larger if they are confused less. The shares correct for
    classes with more rows, and :math:`c_b` for classes that are predicted more often.

    A confusion that never occurs counts as half of the rarest one that does, because its logarithm
    would be infinite. If nothing is confused, all classes are equally far apart.

    Parameters
    ----------
    confusion
        ``confusion[true, predicted]``, (classes, classes): how often rows of a class are predicted
        as another, or the mean of the predicted probabilities, which is less noisy. Every class
        must have rows.

    Examples
    --------
    >>> takes_oak_for_ash = [[6, 4, 0], [4, 6, 0], [1, 1, 18]]
    >>> distances_from_confusion(takes_oak_for_ash).round(2).tolist()
    [[0.0, 0.97, 3.74], [0.97, 0.0, 3.74], [3.74, 3.74, 0.0]]
    """
    counts = _checked_confusion(confusion)
    shares = counts / counts.sum(axis=1, keepdims=True)
    by_chance = shares.mean(axis=0)
    # The column of a class that is never predicted has no information: it counts as chance.
    lift = np.divide(shares, by_chance, out=np.ones_like(shares), where=by_chance > 0)
    likeness = (lift + lift.T) / 2
    apart = ~np.eye(len(likeness), dtype=bool)
    seen = likeness[apart & (likeness > 0)]
    likeness = np.maximum(likeness, seen.min() / 2 if len(seen) else 1.0)
    distances: FloatArray = np.where(apart, np.log(len(likeness)) - np.log(likeness), 0.0)
    return np.maximum(distances, 0.0)  # rounding alone can put a logarithm below 0


def distances_from_embeddings(
    embeddings: ArrayLike, labels: ArrayLike | Sequence[Any]
) -> tuple[FloatArray, tuple[Label, ...]]:
    r"""Return how far apart the means of the classes are, and the classes, sorted.

    Means of few rows differ by chance. The expected squared difference, which is the trace of the
    pooled covariance within classes times :math:`1/n_a + 1/n_b`, is subtracted from the squared
    distance, down to 0. With one row per class, such as word vectors, nothing is subtracted.

    Parameters
    ----------
    embeddings
        One row per label, (n, dimensions), on a common scale.
    labels
        The class of each row, (n,).

    Examples
    --------
    >>> distances, classes = distances_from_embeddings([[0.0, 0], [3, 4]], ["oak", "ash"])
    >>> classes, distances.tolist()
    (('ash', 'oak'), [[0.0, 5.0], [5.0, 0.0]])
    """
    points = _checked_numbers(embeddings, "embeddings")
    values = plain_values(labels)
    if len(values) != len(points) or len(points) == 0:
        raise StructureError(
            f"embeddings must have one row for each label, got {len(points)} rows and "
            f"{len(values)} labels"
        )
    classes = as_classes(_sorted_if_possible(set(values)))
    codes = class_indices(values, classes)
    counts = np.bincount(codes).astype(np.float64)
    means = np.zeros((len(classes), points.shape[1]))
    np.add.at(means, codes, points)
    means /= counts[:, None]
    within = float(((points - means[codes]) ** 2).sum())
    spread = within / max(len(points) - len(classes), 1)  # the trace of the pooled covariance
    by_chance = spread * (1 / counts[:, None] + 1 / counts)
    squared = squareform(pdist(means, "sqeuclidean")) - by_chance
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(np.maximum(squared, 0.0)), classes


def _block_counts(tree: FloatArray, n_cuts: int) -> list[int]:
    """Return how many blocks the cuts at the largest gaps between heights have, fewest first."""
    n_classes = len(tree) + 1
    most = max(n_classes // 2, n_cuts + 1)
    # The gap above a cut into k blocks, k = 2, 3, ...: before the last join, before the last two.
    gaps = np.diff(tree[:, 2])[::-1][: most - 1]
    largest = np.argsort(-gaps, kind="stable")[:n_cuts]
    return sorted((2 + largest).tolist())


def _checked_distances(distances: ArrayLike, n_classes: int) -> FloatArray:
    """Return distances: symmetric, not negative, and 0 from each class to itself."""
    checked = _checked_square(distances, "distances")
    if len(checked) != n_classes:
        raise StructureError(
            f"distances must have one row for each of the {n_classes} classes, got {len(checked)}"
        )
    if not np.allclose(checked, checked.T):
        raise StructureError(
            "distances must be symmetric, got different ones from a to b and from b to a; "
            "(D + D.T) / 2 is symmetric"
        )
    if not np.allclose(np.diagonal(checked), 0.0):
        raise StructureError("distances must be 0 from a class to itself, got others")
    return (checked + checked.T) / 2


def _checked_confusion(confusion: ArrayLike) -> FloatArray:
    checked = _checked_square(confusion, "confusion")
    empty = np.flatnonzero(checked.sum(axis=1) == 0)
    if len(empty):
        raise StructureError(
            f"confusion must have rows of every class, got none in row {empty[0]}; "
            "leave out classes without rows"
        )
    return checked


def _checked_square(values: ArrayLike, name: str) -> FloatArray:
    checked = _checked_numbers(values, name)
    if checked.shape[0] != checked.shape[1] or len(checked) == 0:
        raise StructureError(
            f"{name} must have one row and one column per class, got shape {checked.shape}"
        )
    if (checked < 0).any():
        raise StructureError(f"{name} must not be negative, got {checked.min():g}")
    return checked


def _checked_numbers(values: ArrayLike, name: str) -> FloatArray:
    checked = as_array(values, name)
    if checked.dtype.kind not in "fiub" or checked.ndim != 2:
        raise StructureError(
            f"{name} must be numbers on two axes, got {checked.dtype} of shape {checked.shape}"
        )
    numbers = checked.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise StructureError(f"{name} must be finite numbers, got NaN or infinity")
    return numbers


def _sorted_if_possible(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # str and int have no order among each other
        return sorted(values, key=lambda value: (type(value).__name__, value))
