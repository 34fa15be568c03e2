"""What labels that are sets of classes compile to: a layout for each set.

For a set C the loss is ``-sum_t w_t log Q(A_t(C))``, where A_t(C) is the block of partition t that
holds C if one does, else C itself. So it is the ordinary loss of any class of C under a structure
of C's own: partitions that hold C stay as they are, and all others, including the singletons,
become the one partition {C, the rest} with the sum of their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray
from structent.kernels.layout import Layout

# How many numbers the cached layouts may hold; beyond that the cache is cleared.
_KEPT = 2**25


@dataclass(frozen=True, eq=False)
class CoarseLayouts:
    """A layout for each set of classes: code ``n_classes + s`` of a row means set s.

    A layout is made when its set first occurs in a row: ``sets`` has every block of a
    structure, and few of them are used as labels.

    Attributes
    ----------
    layout
        The layout of the structure.
    sets
        The indices of the classes of each set, in ascending order.
    """

    layout: Layout
    sets: tuple[tuple[int, ...], ...]
    _made: dict[int, Layout] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, layout: Layout, sets: Sequence[Sequence[int]]) -> CoarseLayouts:
        """Return the layouts of sets, each given as its class indices in ascending order.

        Examples
        --------
        >>> from structent import hierarchy
        >>> paths = {"oak": ("tree",), "elm": ("tree",), "rose": ("flower",), "daisy": ("flower",)}
        >>> plants = hierarchy(paths, weights=[0.75, 0.25])  # of trees and flowers, of the classes
        >>> coarse = CoarseLayouts.of(Layout.of(plants), [(0, 1), (1, 2), (0, 1, 2, 3)])
        >>> a_tree, elm_or_rose, a_plant = (coarse.layout_of(s) for s in range(3))
        >>> a_tree.block_of.tolist(), a_tree.weights.tolist()
        ([[0, 0, 1, 1]], [1.0])
        >>> elm_or_rose.block_of.tolist(), elm_or_rose.weights.tolist()
        ([[0, 1, 1, 0]], [1.0])
        >>> a_plant.n_partitions  # a set of all classes says nothing
        0
        """
        return cls(layout, tuple(map(tuple, sets)))

    def layout_of(self, s: int) -> Layout:
        """Return the layout under which a row of set s has the loss of any class of the set."""
        made = self._made.get(s)
        if made is None:
            made = self._layout_of(self.sets[s])
            if len(self._made) * (self.layout.block_of.size + self.layout.n_classes) > _KEPT:
                self._made.clear()
            self._made[s] = made
        return made

    def _layout_of(self, members: tuple[int, ...]) -> Layout:
        if len(members) == 1:
            return self.layout
        block_of, weights = self.layout.local_block_of, self.layout.weights
        own = block_of[:, list(members)]  # (partitions, members)
        holds = (own == own[:, :1]).all(axis=1)
        is_outside = np.ones(self.layout.n_classes, dtype=np.int32)
        is_outside[list(members)] = 0
        # Blocks are numbered by their first class, as everywhere: equal partitions are pooled.
        set_or_rest = is_outside ^ is_outside[0]
        return Layout.from_arrays(
            np.concatenate([block_of[holds], set_or_rest[None]]),
            np.append(weights[holds], self.layout.singleton_weight + weights[~holds].sum()),
        )


def weights_of_sets(class_weights: FloatArray, sets: Sequence[Sequence[int]]) -> FloatArray:
    """Return the weight of a row of each set, (sets,): the mean of its classes' weights.

    Neither the row's class is known nor how often each class occurs. If the classes of a set have
    equal weights, the row has the same weight as if its class were known.

    Examples
    --------
    >>> weights_of_sets(np.array([1.0, 3.0, 1.0]), [(0, 2), (0, 1)]).tolist()
    [1.0, 2.0]
    """
    means = [class_weights[list(members)].mean() for members in sets]
    return np.array(means, dtype=class_weights.dtype)


def members_of_sets(sets: Sequence[Sequence[int]], n_classes: int) -> NDArray[np.bool_]:
    """Return which classes each set holds, (sets, classes): what adapters look up row by row.

    Examples
    --------
    >>> members_of_sets([(0, 2), (1, 2)], 3).astype(int).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """
    members = np.zeros((len(sets), n_classes), dtype=bool)
    for s, classes in enumerate(sets):
        members[s, list(classes)] = True
    return members
