"""A structure as arrays: which class is in which block, and what each block counts.

Every quantity of the paper's section 3 is a sum over the blocks of all partitions, in which a block
counts with the weight of its partition:

    H(Y_Z) = sum over blocks B of  w_B * entr(P(B)),        entr(x) = -x log x
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array

from structent._typing import FloatArray
from structent.structure import RandomPartition


@dataclass(frozen=True)
class Blocks:
    """The blocks of all partitions with positive weight, equal partitions taken together.

    Attributes
    ----------
    indicator
        1 where a class is in a block, (classes, blocks), sparse: one entry a class and partition.
    weights
        The weight of each block's partition, (blocks,).
    """

    indicator: csr_array
    weights: FloatArray

    @classmethod
    def of(cls, structure: RandomPartition) -> Blocks:
        """Return the blocks of a structure.

        Partitions without weight are left out: where they say infinity, 0 times it would be NaN.
        """
        weight_of: dict[bytes, float] = {}
        rows = {}
        for ids, weight in zip(structure.block_of, structure.weights.tolist(), strict=True):
            if weight > 0:
                rows[ids.tobytes()] = ids
                weight_of[ids.tobytes()] = weight_of.get(ids.tobytes(), 0.0) + weight
        n_blocks = [int(ids.max()) + 1 for ids in rows.values()]
        first_block = np.cumsum([0, *n_blocks[:-1]])
        block_of = np.stack(list(rows.values()), axis=1) + first_block  # (classes, partitions)
        ones = np.ones(block_of.size)
        row_ends = np.arange(structure.n_classes + 1) * len(rows)
        shape = (structure.n_classes, sum(n_blocks))
        indicator = csr_array((ones, block_of.ravel(), row_ends), shape)
        return cls(indicator, np.repeat(list(weight_of.values()), n_blocks))

    @classmethod
    def singletons(cls, n_classes: int) -> Blocks:
        """Return the blocks of the trivial structure."""
        return cls(csr_array(eye_array(n_classes)), np.ones(n_classes))

    def coarsened(self, p: FloatArray, *, axis: int = -1) -> FloatArray:
        """Return the probability of each block, in place of that of each class along an axis."""
        moved = np.moveaxis(p, axis, -1)
        coarse: FloatArray = moved.reshape(-1, moved.shape[-1]) @ self.indicator
        return np.moveaxis(coarse.reshape(*moved.shape[:-1], len(self.weights)), -1, axis)
