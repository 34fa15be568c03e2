"""Blocks of rows: their probabilities, the true one and the predicted one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray
from structent.entropy.blocks import Blocks
from structent.errors import StructureError
from structent.metrics.rows import Rows, checked_structure
from structent.structure import Partition, RandomPartition, trivial


class PredictedBlocks(NamedTuple):
    """The most probable block of each row in one partition, of equal ones the first.

    Attributes
    ----------
    confidence
        Its probability, (n,).
    is_hit
        Whether it holds the true class, (n,).
    """

    confidence: FloatArray
    is_hit: NDArray[np.bool_]


def block_probabilities(proba: FloatArray, partition: Partition) -> FloatArray:
    """Return the probability of each block, (n, blocks)."""
    if partition.is_singletons:
        return proba
    return Blocks.of(RandomPartition([partition])).coarsened(proba)


def probability_of_true_block(rows: Rows, partition: Partition) -> FloatArray:
    """Return the probability of the block that holds the true class, (n,)."""
    coarse = block_probabilities(rows.proba, partition)
    true: FloatArray = coarse[np.arange(len(coarse)), partition.block_of[rows.codes]]
    return true


def predicted_blocks(rows: Rows, partition: Partition) -> PredictedBlocks:
    """Return the predicted block of each row."""
    coarse = block_probabilities(rows.proba, partition)
    predicted = coarse.argmax(axis=1)
    is_hit = predicted == partition.block_of[rows.codes]
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
    structure = checked_structure(structure)
    return trivial(structure.classes) if level is None else structure.level(level)
