"""Structures learned from data: blocks of classes that are confused, or that lie close together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform

from structent._checks import checked_integer
from structent._typing import FloatArray, WeightRule
from structent.structure.distances import (
    checked_distances,
    distances_from_confusion,
    distances_from_embeddings,
)
from structent.structure.labels import as_classes
from structent.structure.levels import CLASS_LEVEL
from structent.structure.mixture import trivial
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition

MOST_LEVELS = 1000


def structure_from_confusion(
    confusion: ArrayLike,
    classes: Iterable[Any],
    *,
    n_levels: int = 3,
    weights: ArrayLike | WeightRule | None = None,
) -> RandomPartition:
    """Return cuts of the tree of classes that joins first what a model confuses most.

    The distances are those of :func:`distances_from_confusion`, the tree and its cuts those of
    :func:`structure_from_distances`.

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

    Each join has a height: the mean distance between the blocks that it joins. The tree is cut
    where the next join is furthest above the last, at the ``n_levels`` largest of these gaps: there
    blocks are far apart for how close their classes are. Blocks have two classes or more on average
    (unless there are too few classes for ``n_levels`` such cuts): one pair that is closest by far
    does not make a level. The levels are called ``"level 1"``, the coarsest, to ``"level n"``, and
    ``"class"``.

    Parameters
    ----------
    distances
        (classes, classes), symmetric, 0 from a class to itself.
    classes
        The classes, in the order of the rows.
    n_levels
        How many cuts, beside the singletons; K classes have no more than K - 2.
    weights
        One weight a level, from the coarsest to the singletons, or a rule such as ``hxe(0.5)``;
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
    checked = checked_distances(distances, len(ordered))
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
    """Return cuts of the tree of classes that joins first those whose rows lie close together.

    The distances are those of :func:`distances_from_embeddings`, the tree and its cuts those of
    :func:`structure_from_distances`.

    Parameters
    ----------
    embeddings
        One row a label, (n, dimensions), scaled alike; one vector a class will do.
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


def _block_counts(tree: FloatArray, n_cuts: int) -> list[int]:
    """Return how many blocks the cuts at the largest gaps between heights have, fewest first."""
    n_classes = len(tree) + 1
    most = max(n_classes // 2, n_cuts + 1)
    # The gap above a cut into k blocks, k = 2, 3, ...: before the last join, before the last two.
    gaps = np.diff(tree[:, 2])[::-1][: most - 1]
    largest = np.argsort(-gaps, kind="stable")[:n_cuts]
    return sorted((2 + largest).tolist())
