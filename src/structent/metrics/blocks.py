"""Blocks of rows: their probabilities, the true one and the predicted one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.entropy.blocks import Blocks
from structent.errors import StructureError
from structent.metrics.rows import Rows
from structent.structure import Partition, RandomPartition, trivial
from structent.structure.partition_sampler import checked_fixed


class PredictedBlocks(NamedTuple):
    """The most probable block of each row in one partition, of equal ones the first.

    Attributes
    ----------
    confidence
        Its probability, (n,).
    is_hit
        Whether it holds the true class, or all that it may be, (n,).
    """

    confidence: FloatArray
    is_hit: NDArray[np.bool_]


def block_probabilities(proba: FloatArray, partition: Partition) -> FloatArray:
    """Return the probability of each block, (n, blocks)."""
    if partition.is_singletons:
        return proba
    return Blocks.of(RandomPartition([partition])).coarsened(proba)


def true_blocks(rows: Rows, partition: Partition) -> IndexArray:
    """Return the block that holds the true class, or all that it may be; -1 where none does."""
    of_sets = [
        blocks[0] if (blocks == blocks[0]).all() else -1
        for blocks in (partition.block_of[list(members)] for members in rows.sets)
    ]
    of_codes: IndexArray = np.array([*partition.block_of, *of_sets], dtype=np.int64)
    return of_codes[rows.codes]


def probability_of_true_block(rows: Rows, partition: Partition) -> FloatArray:
    """Return the probability of the block that holds the true class, (n,).

    Where a row is known to be in a set of classes that no block holds, it is that of the set.
    """
    coarse = block_probabilities(rows.proba, partition)
    blocks = true_blocks(rows, partition)
    true: FloatArray = coarse[np.arange(len(coarse)), blocks]
    n_classes = rows.proba.shape[1]
    for code in np.unique(rows.codes[blocks < 0]):
        of_set, members = rows.codes == code, list(rows.sets[code - n_classes])
        # All classes have probability 1, whatever the sum of a row was rounded to.
        is_all = len(members) == n_classes
        true[of_set] = 1.0 if is_all else rows.proba[np.ix_(of_set, members)].sum(axis=1)
    return true


def predicted_blocks(rows: Rows, partition: Partition) -> PredictedBlocks:
    """Return the predicted block of each row."""
    coarse = block_probabilities(rows.proba, partition)
    predicted = coarse.argmax(axis=1)
    is_hit = predicted == true_blocks(rows, partition)
    return PredictedBlocks(coarse[np.arange(len(coarse)), predicted], is_hit)


def weighted_partitions(structure: RandomPartition) -> Iterator[tuple[float, Partition]]:
    """Yield the partitions that count, each with its weight."""
    for weight, partition in zip(structure.weights.tolist(), structure.partitions, strict=True):
        if weight > 0:
            yield weight, partition


def at_level(structure: Partition | RandomPartition, level: str | None) -> RandomPartition:
    """Return what a per-level metric averages over: a partition, a level, or the singletons."""
    if isinstance(structure, Partition):
        if level is not None:
            raise StructureError(
                f"a level must be of a RandomPartition, got {level!r} with a Partition, "
                "which is a level of its own; leave it out"
            )
        return RandomPartition([structure])
    structure = checked_fixed(structure)
    return trivial(structure.classes) if level is None else structure.level(level)


def named_blocks(
    structure: Partition | RandomPartition, *, allow_blocks: bool
) -> RandomPartition | None:
    """Return the structure whose blocks labels may name, None where they must be classes."""
    if not allow_blocks:
        return None
    return RandomPartition([structure]) if isinstance(structure, Partition) else structure
