"""What coarse targets compile to: rows that are known to be in a set of classes, and no more.

For a set C the loss is ``-sum_t w_t log Q(A_t(C))``, where A_t(C) is the block of partition t that
holds C if one does, else C itself. In the partitions that hold it, C is as good as its first class:
their blocks are the same. So a coarse row is a row of that class, with weights of its own that are
0 where C is cut, and one more term for C itself, whose weight is that of the singletons and of all
partitions that cut it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from structent._typing import FloatArray, IntArray

if TYPE_CHECKING:
    from structent.kernels.layout import Layout


@dataclass(frozen=True, eq=False)
class CoarseSets:
    """Sets of classes beside a layout: code ``n_classes + s`` of a row means set s.

    Attributes
    ----------
    first_class
        The first class of each set, (sets,).
    weights
        The weight of each partition of the layout for each set, (sets, partitions): the layout's
        own, and 0 where the partition cuts the set.
    own_weight
        The weight of the set by itself, (sets,).
    start, members
        The classes of set s are ``members[start[s]:start[s + 1]]``, in ascending order.
    """

    first_class: IntArray
    weights: FloatArray
    own_weight: FloatArray
    start: IntArray
    members: IntArray

    @classmethod
    def of(cls, layout: Layout, sets: Sequence[Sequence[int]]) -> CoarseSets:
        """Return the sets, each of the indices of its classes in ascending order, compiled.

        A set of all classes says nothing: all its weights are 0.

        Examples
        --------
        >>> from structent import hierarchy
        >>> from structent.kernels.layout import Layout
        >>> paths = {"oak": ("tree",), "elm": ("tree",), "rose": ("flower",), "daisy": ("flower",)}
        >>> coarse = CoarseSets.of(Layout.of(hierarchy(paths)), [(0, 1), (1, 2)])
        >>> coarse.weights.tolist(), coarse.own_weight.tolist()  # a tree; an elm or a rose
        ([[0.5], [0.0]], [0.5, 1.0])
        """
        sizes = np.array([len(each) for each in sets], dtype=np.int32)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        members = np.array([c for each in sets for c in each], dtype=np.int32)
        if len(sizes) == 0:
            empty = np.zeros((0, layout.n_partitions))
            return cls(members, empty, np.zeros(0), start, members)
        block_of = layout.block_of[:, members]  # (partitions, members)
        least = np.minimum.reduceat(block_of, start[:-1], axis=1)
        holds = least == np.maximum.reduceat(block_of, start[:-1], axis=1)
        says_something = sizes < layout.n_classes
        weights = np.where(holds.T, layout.weights, 0.0)
        cut = np.where(holds.T, 0.0, layout.weights).sum(axis=1)
        own_weight = (layout.singleton_weight + cut) * says_something
        return cls(members[start[:-1]], weights, own_weight, start, members)

    @property
    def n_sets(self) -> int:
        """How many sets there are."""
        return len(self.first_class)
