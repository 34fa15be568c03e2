"""What a structure compiles to before it meets logits: O(partitions x classes) memory.

Equal partitions are pooled, the partition into one block is dropped (its loss is always 0), and the
singletons are kept as a weight, for they are plain cross-entropy. Weights are never renormalised:
they sum to W <= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._typing import FloatArray, IntArray
from structent.structure import RandomPartition


@dataclass(frozen=True)
class Layout:
    """The partitions that matter, from coarse to fine, and the classes of each of their blocks.

    Attributes
    ----------
    n_classes
        How many classes there are.
    singleton_weight
        The weight of the singletons.
    weights
        The weight of each partition kept, (partitions,): neither singletons nor one block, all
        different, none without weight.
    block_of
        The block of each class, numbered through all partitions, (partitions, classes).
    start, members
        The classes of block b are ``members[start[b]:start[b + 1]]``, in ascending order.
    """

    n_classes: int
    singleton_weight: float
    weights: FloatArray
    block_of: IntArray
    start: IntArray
    members: IntArray

    @classmethod
    def of(cls, structure: RandomPartition) -> Layout:
        """Return the layout of a structure."""
        return cls.from_arrays(structure.block_of, structure.weights)

    @classmethod
    def from_arrays(cls, block_of: IntArray, weights: FloatArray) -> Layout:
        """Return the layout of partitions whose blocks are numbered 0, 1, ... in any order."""
        n_classes = block_of.shape[1]
        n_blocks = block_of.max(axis=1) + 1
        singleton_weight = float(weights[n_blocks == n_classes].sum())
        weight_of: dict[bytes, float] = {}
        row_of: dict[bytes, int] = {}
        for t in np.argsort(n_blocks, kind="stable").tolist():
            if weights[t] > 0 and 1 < n_blocks[t] < n_classes:
                key = block_of[t].tobytes()
                row_of.setdefault(key, t)
                weight_of[key] = weight_of.get(key, 0.0) + float(weights[t])
        kept = list(row_of.values())
        first = np.zeros(len(kept) + 1, dtype=np.int32)
        np.cumsum(n_blocks[kept], out=first[1:])
        numbered = np.ascontiguousarray(block_of[kept] + first[:-1, None], dtype=np.int32)
        start, members = _classes_of_blocks(numbered, int(first[-1]))
        return cls(
            n_classes=n_classes,
            singleton_weight=singleton_weight,
            weights=np.array(list(weight_of.values()), dtype=np.float64),
            block_of=numbered,
            start=start,
            members=members,
        )

    @property
    def total_weight(self) -> float:
        """The sum W of the weights that were kept, the singletons' with them."""
        return self.singleton_weight + float(self.weights.sum())

    @property
    def n_partitions(self) -> int:
        """How many partitions were kept."""
        return len(self.weights)

    @cached_property
    def is_range(self) -> NDArray[np.bool_]:
        """Whether the classes of each block are consecutive, (blocks,)."""
        spread = self.members[self.start[1:] - 1] - self.members[self.start[:-1]]
        return np.asarray(spread + 1 == np.diff(self.start))

    @cached_property
    def parents(self) -> tuple[IntArray, ...] | None:
        """The tree, where each partition refines the one before: None where there is none.

        ``parents[0]`` maps the classes to the blocks of the finest partition, ``parents[1]`` those
        to the blocks of the next coarser one, and so on; blocks are numbered within a partition.
        """
        local = self.block_of - self.block_of.min(axis=1, keepdims=True, initial=2**31 - 1)
        fine_to_coarse = list(local[::-1])
        parents = fine_to_coarse[:1]
        for finer, coarser in pairwise(fine_to_coarse):
            n_finer = int(finer.max()) + 1
            parent = np.zeros(n_finer, dtype=np.int32)
            parent[finer] = coarser
            if not np.array_equal(parent[finer], coarser):
                return None
            parents.append(parent)
        return tuple(parents)


@kernel
def _classes_of_blocks(block_of: IntArray, n_blocks: int) -> tuple[IntArray, IntArray]:
    """Sort the classes of every partition by their block: a counting sort."""
    n_partitions, n_classes = block_of.shape
    start = np.zeros(n_blocks + 1, dtype=np.int32)
    for t in range(n_partitions):
        for c in range(n_classes):
            start[block_of[t, c] + 1] += 1
    for b in range(n_blocks):
        start[b + 1] += start[b]
    members = np.empty(n_partitions * n_classes, dtype=np.int32)
    filled = start.copy()
    for t in range(n_partitions):
        for c in range(n_classes):
            b = block_of[t, c]
            members[filled[b]] = c
            filled[b] += 1
    return start, members
