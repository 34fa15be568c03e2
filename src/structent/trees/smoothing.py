r"""Leaf values that borrow from related classes: smoothing of the sums in a leaf.

The values of a leaf come from its sums of gradient and curvature, G and H, (classes,) each. With
smoothing :math:`\sigma` they are

.. math:: -\frac{G S}{H S + \lambda}, \qquad S = (1 - \sigma) I + \sigma R

Row i of R has sum 1 and says which classes, the relatives of class i, receive its sums. A class
without relatives keeps its own sums. For a structure, R is its similarity K without the diagonal,
with each row scaled to sum 1; for a drawn partition, R takes the mean over each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structent._compiled import kernel
from structent._typing import FloatArray, IntArray
from structent.structure import RandomPartition
from structent.structure.partition import pooled


@dataclass(frozen=True, eq=False)
class Relatives:
    r"""The matrix R in terms of blocks, without a table of pairs of classes if that is cheaper.

    .. math:: R = diag(own) + diag(given) \sum_t P_t \, diag(taken_t)

    where :math:`P_t` is 1 for two classes in one block of partition t.

    Attributes
    ----------
    block_of
        The partitions that say which classes are related, (partitions, classes).
    own, given
        The share of its sums that a class keeps, and the factor of what it gives to its blocks,
        (classes,).
    taken
        The factor of what a class takes from its block, (partitions, classes).
    table
        The matrix R itself if multiplying by it is cheaper, otherwise None.
    """

    block_of: IntArray
    own: FloatArray
    given: FloatArray
    taken: FloatArray
    table: FloatArray | None = None

    @classmethod
    def of(cls, structure: RandomPartition) -> Relatives | None:
        """Return the relatives by the similarity of a structure; None if no classes are related.

        The weight of the singletons does not matter: it scales the similarity of all pairs alike.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "ash": ("tree",), "rose": ("flower",)})
        >>> Relatives.of(plants).smoothed(np.array([[8.0, 0.0, 3.0]]), 0.25).tolist()
        [[6.0, 2.0, 3.0]]
        """
        found = _coarse(structure)
        if found is None:
            return None
        block_of, weights = found
        others = _block_sizes(block_of) - 1  # (partitions, classes)
        # Exactly 0 for a class that is alone in its block: adding its own weight and subtracting it
        # again could leave a rounding error.
        taken = np.where(others > 0, weights[:, None], 0.0)
        total = weights @ others  # row sums of K without its diagonal
        given = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        own = np.where(total > 0, -given * taken.sum(axis=0), 1.0)
        relatives = cls(block_of, own, given, taken)
        n_partitions, n_classes = block_of.shape
        if 2 * n_partitions < n_classes:
            return relatives
        table = relatives._mixed(np.eye(n_classes), 0.0, 1.0)
        table[np.diag_indices(n_classes)] = np.where(total > 0, 0.0, 1.0)
        return cls(block_of, own, given, taken, table)

    @classmethod
    def of_draw(cls, structure: RandomPartition) -> Relatives | None:
        """Return the relatives by a drawn structure: means over the blocks of its partitions.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "ash": ("tree",), "rose": ("flower",)})
        >>> Relatives.of_draw(plants).smoothed(np.array([[8.0, 0.0, 3.0]]), 0.25).tolist()
        [[7.0, 1.0, 3.0]]
        """
        found = _coarse(structure)
        if found is None:
            return None
        block_of, weights = found
        n_classes = block_of.shape[1]
        taken = (weights / weights.sum())[:, None] / _block_sizes(block_of)
        return cls(block_of, np.zeros(n_classes), np.ones(n_classes), taken)

    def smoothed(self, sums: FloatArray, smoothing: float) -> FloatArray:
        """Return the sums times S, (..., classes)."""
        return self._mixed(sums, 1.0 - smoothing, smoothing)

    def _mixed(self, sums: FloatArray, kept: float, shared: float) -> FloatArray:
        """Return ``kept * sums + shared * (sums @ R)``."""
        mixed = np.empty(sums.shape)
        rows, mixed_rows = (each.reshape(-1, sums.shape[-1]) for each in (sums, mixed))
        mix(rows, kept, shared, self.arrays, mixed_rows)
        return mixed

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """The arrays for compiled code; the table is empty if blocks are cheaper."""
        table = np.empty((0, 0)) if self.table is None else self.table
        return self.block_of, self.own, self.given, self.taken, table


def _coarse(structure: RandomPartition) -> tuple[IntArray, FloatArray] | None:
    """Return the partitions without the singletons, and their weights.

    If none of them has a weight, because the loss is plain, all get the same weight.
    """
    n_classes, weights = structure.n_classes, structure.weights
    places = [t for t, each in enumerate(structure.partitions) if each.n_blocks < n_classes]
    if not places:
        return None
    # Not structure.block_of: for a structure drawn in every round, building it would be wasted.
    block_of = np.array([structure.partitions[t].block_of for t in places])
    if len(places) == 1:
        return block_of, np.ones(1)
    weights = weights[places] if weights[places].any() else np.ones(len(places))
    found = pooled(block_of, weights)
    return block_of[found.rows], found.weights


def _block_sizes(block_of: IntArray) -> FloatArray:
    """Return how many classes the block of each class has, (partitions, classes)."""
    return np.array([np.bincount(row)[row] for row in block_of], dtype=np.float64)


@kernel
def mix(sums: Any, kept: float, shared: float, relatives: Any, mixed: Any) -> None:
    """Write sums (kept I + shared R), line by line: see :attr:`Relatives.arrays`."""
    block_of, own, given, taken, table = relatives
    n_classes = sums.shape[1]
    of_blocks = np.empty(n_classes)
    for i in range(sums.shape[0]):
        if table.size:
            for c in range(n_classes):
                mixed[i, c] = kept * sums[i, c]
            for other in range(n_classes):
                for c in range(n_classes):
                    mixed[i, c] += shared * sums[i, other] * table[other, c]
            continue
        for c in range(n_classes):
            mixed[i, c] = (kept + shared * own[c]) * sums[i, c]
        for t in range(block_of.shape[0]):  # O(partitions x classes)
            of_blocks[:] = 0
            for c in range(n_classes):
                of_blocks[block_of[t, c]] += given[c] * sums[i, c]
            for c in range(n_classes):
                mixed[i, c] += shared * taken[t, c] * of_blocks[block_of[t, c]]
