"""What a structure compiles to before it meets logits: O(partitions x classes) memory.

Equal partitions are pooled, the partition into one block is dropped (its loss is always 0), and the
singletons are kept as a weight, since they are plain cross-entropy. Weights are never renormalised:
they sum to W <= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._typing import FloatArray, IntArray
from structent.structure import RandomPartition
from structent.structure.partition import parents_of, pooled


@dataclass(frozen=True, eq=False)
class Layout:
    """The partitions that matter, from coarse to fine, and the classes of each of their blocks.

    Attributes
    ----------
    n_classes
        How many classes there are.
    singleton_weight
        The weight of the singletons.
    weights
        The weight of each kept partition, (partitions,), above 0. No two partitions are
        equal; the singletons and the partition into one block are not kept.
    block_of
        The block of each class, numbered through all partitions, (partitions, classes).
    start, members
        The classes of block b are ``members[start[b]:start[b + 1]]``, in ascending order.
    is_range
        Whether the classes of each block are consecutive, (blocks,).
    """

    n_classes: int
    singleton_weight: float
    weights: FloatArray
    block_of: IntArray
    start: IntArray
    members: IntArray
    is_range: NDArray[np.bool_]

    @classmethod
    def of(cls, structure: RandomPartition) -> Layout:
        """Return the layout of a structure."""
        return cls.from_arrays(structure.block_of, structure.weights)

    @classmethod
    def from_arrays(cls, block_of: IntArray, weights: FloatArray) -> Layout:
        """Return the layout of partitions whose blocks are numbered 0, 1, ... in any order."""
        n_classes = block_of.shape[1]
        found = pooled(block_of, weights)
        # The partition into one block has no loss. It comes first.
        first = 1 if len(found.rows) > 0 and found.n_blocks[0] == 1 else 0
        return cls(
            n_classes,
            found.singleton_weight,
            found.weights[first:],
            *_numbered_blocks(block_of, found.rows[first:], found.n_blocks[first:]),
        )

    @property
    def total_weight(self) -> float:
        """The sum W of the weights that were kept, including the singletons'."""
        return self.singleton_weight + float(self.weights.sum())

    @property
    def n_partitions(self) -> int:
        """How many partitions were kept."""
        return len(self.weights)

    @cached_property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, NDArray[np.bool_], FloatArray, float]:
        """What the kernel takes: block_of (flat), start, members, is_range, and the weights."""
        return (
            self.block_of.reshape(-1),
            self.start,
            self.members,
            self.is_range,
            self.weights,
            self.singleton_weight,
        )

    @cached_property
    def local_block_of(self) -> IntArray:
        """The block of each class, numbered from 0 within each partition, (partitions, classes)."""
        first: IntArray = self.block_of.min(axis=1, keepdims=True, initial=2**31 - 1)
        return self.block_of - first

    @cached_property
    def parents(self) -> tuple[IntArray, ...] | None:
        """The tree if each partition refines the one before, else None.

        ``parents[0]`` maps the classes to the blocks of the finest partition, ``parents[1]`` those
        to the blocks of the next coarser one, and so on; blocks are numbered within a partition.
        """
        return parents_of(self.local_block_of[::-1])


@kernel
def _numbered_blocks(
    block_of: IntArray, kept: NDArray[np.int64], n_blocks: NDArray[np.int64]
) -> tuple[IntArray, IntArray, IntArray, NDArray[np.bool_]]:
    """Number the blocks of all kept partitions consecutively, and sort the classes by them.

    Returns block_of, start, members and is_range of the layout.
    """
    n_partitions, n_classes = len(kept), block_of.shape[1]
    total = n_blocks.sum()
    numbered = np.empty((n_partitions, n_classes), dtype=np.int32)
    start = np.zeros(total + 1, dtype=np.int32)
    first = 0
    for t in range(n_partitions):
        for c in range(n_classes):
            numbered[t, c] = first + block_of[kept[t], c]
            start[numbered[t, c] + 1] += 1
        first += n_blocks[t]
    for b in range(total):
        start[b + 1] += start[b]
    members = np.empty(n_partitions * n_classes, dtype=np.int32)
    filled = start.copy()
    for t in range(n_partitions):
        for c in range(n_classes):
            b = numbered[t, c]
            members[filled[b]] = c
            filled[b] += 1
    is_range = np.empty(total, dtype=np.bool_)
    for b in range(total):
        spread = members[start[b + 1] - 1] - members[start[b]]
        is_range[b] = spread == start[b + 1] - start[b] - 1
    return numbered, start, members, is_range
