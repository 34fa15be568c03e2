"""Blocks of the classes in each row: their probabilities, the true one and the predicted one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._typing import FloatArray, IndexArray
from structent.entropy.quantities import Blocks
from structent.errors import StructureError
from structent.metrics.measure import Measure, ScoredRows, checked_proba, columns_of
from structent.structure import Partition, RandomPartition, trivial
from structent.structure.samplers import checked_fixed


def block_proba(proba: ArrayLike, partition: Partition, *, classes: Any = None) -> FloatArray:
    """The probability of each block of a partition: the sum over its classes, (n, blocks).

    If the classes are pairs, the partition by one part gives the marginal probabilities of that
    part.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    partition
        The partition; the columns of the result are its blocks, called ``partition.names``.
    classes
        The class of each column of ``proba``, as in
        :func:`~structent.metrics.structured_log_loss`.

    Examples
    --------
    >>> from structent import trivial
    >>> pairs = trivial(["cold", "hot"]).product(trivial(["dry", "wet"]))
    >>> heat = Partition.from_mapping({pair: pair[0] for pair in pairs.classes})
    >>> heat.names
    ('cold', 'hot')
    >>> block_proba([[0.5, 0.25, 0.125, 0.125]], heat).tolist()
    [[0.75, 0.25]]
    """
    if not isinstance(partition, Partition):
        raise StructureError(
            f"partition must be a Partition, got {type(partition).__name__}; "
            "structure.levels has those of each level"
        )
    columns = columns_of(partition.classes, proba, classes)
    checked = checked_proba(proba, len(partition.classes), columns)
    return block_probabilities(checked, partition)


def at_level(structure: Partition | RandomPartition, level: str | None) -> RandomPartition:
    """Return what a metric of one level averages over: a partition, a level, or the singletons."""
    if isinstance(structure, Partition):
        if level is not None:
            raise StructureError(
                f"level must be None for a Partition, which is itself one level, got {level!r}"
            )
        return RandomPartition([structure])
    structure = checked_fixed(structure)
    return trivial(structure.classes) if level is None else structure.level(level)


def named_blocks(
    structure: Partition | RandomPartition, *, allow_blocks: bool
) -> RandomPartition | None:
    """Return the structure whose blocks labels may name, None if labels must be classes."""
    if not allow_blocks:
        return None
    return RandomPartition([structure]) if isinstance(structure, Partition) else structure


def weighted_partitions(structure: RandomPartition) -> Iterator[tuple[float, Partition]]:
    """Yield the partitions that count, each with its weight."""
    for weight, partition in zip(structure.weights.tolist(), structure.partitions, strict=True):
        if weight > 0:
            yield weight, partition


def block_probabilities(proba: FloatArray, partition: Partition) -> FloatArray:
    """Return the probability of each block, (n, blocks)."""
    if partition.is_singletons:
        return proba
    return Blocks.of(RandomPartition([partition])).coarsened(proba)


def probability_of_true_block(rows: ScoredRows, partition: Partition) -> FloatArray:
    """Return the probability of the block that holds the true class, (n,).

    If a row is known to be in a set of classes that no block contains, it is the probability of the
    set.
    """
    coarse = block_probabilities(rows.proba, partition)
    blocks = _true_blocks(rows, partition)
    true: FloatArray = coarse[np.arange(len(coarse)), blocks]
    n_classes = rows.proba.shape[1]
    for code in np.unique(rows.codes[blocks < 0]):
        of_set, members = rows.codes == code, list(rows.sets[code - n_classes])
        # All classes together have probability 1, even if the sum of a row is rounded.
        is_all = len(members) == n_classes
        true[of_set] = 1.0 if is_all else rows.proba[np.ix_(of_set, members)].sum(axis=1)
    return true


class PredictedBlocks(NamedTuple):
    """The most probable block of each row in one partition, the first of equally probable ones.

    Attributes
    ----------
    confidence
        Its probability, (n,).
    is_hit
        Whether it holds the true class, or all classes of the row's set, (n,).
    """

    confidence: FloatArray
    is_hit: NDArray[np.bool_]


def predicted_blocks(rows: ScoredRows, partition: Partition) -> PredictedBlocks:
    """Return the predicted block of each row."""
    coarse = block_probabilities(rows.proba, partition)
    predicted = coarse.argmax(axis=1)
    is_hit = predicted == _true_blocks(rows, partition)
    return PredictedBlocks(coarse[np.arange(len(coarse)), predicted], is_hit)


def judged_rows(rows: ScoredRows, partition: Partition) -> ScoredRows:
    """Return the rows whose true block is known."""
    return rows.take(_true_blocks(rows, partition) >= 0) if rows.sets else rows


def mean_of_judged(
    structure: RandomPartition, values: Callable[[ScoredRows, Partition], FloatArray]
) -> Measure:
    """Return the weighted mean over partitions and over the rows that each of them can judge.

    It is NaN if no row can be judged.
    """

    def of_rows(rows: ScoredRows) -> FloatArray:
        sums = np.zeros(2)
        for weight, partition in weighted_partitions(structure):
            judged = judged_rows(rows, partition)
            total = judged.weights @ values(judged, partition)
            sums += weight * np.array([total, judged.weights.sum()])
        return sums

    def of_parts(parts: Sequence[FloatArray]) -> float:
        total, weight = np.sum(parts, axis=0)
        return float(total / weight) if weight > 0 else np.nan

    return Measure(of_rows, of_parts)


def number_of_judged(structure: RandomPartition) -> Measure:
    """Return how many rows at least one partition can judge."""

    def of_rows(rows: ScoredRows) -> int:
        blocks = [_true_blocks(rows, partition) for _, partition in weighted_partitions(structure)]
        return int((np.max(blocks, axis=0) >= 0).sum())

    return Measure(of_rows, sum)


def of_known_classes(measure: Measure) -> Measure:
    """Return the same measure of the rows whose class is known, NaN if there are none."""

    def of_rows(rows: ScoredRows) -> Any:
        known = rows.take(rows.codes < rows.proba.shape[1]) if rows.sets else rows
        return measure.of_rows(known) if len(known.codes) else None

    def of_parts(parts: Sequence[Any]) -> float:
        filled = [part for part in parts if part is not None]
        return measure.of_parts(filled) if filled else np.nan

    return Measure(of_rows, of_parts)


def refuse_if_none(score: float) -> float:
    """Return a score if any row was judged."""
    if np.isnan(score):
        raise StructureError(
            "there must be a row whose label is within one of the scored blocks, got none; "
            "score a coarser level"
        )
    return score


def _true_blocks(rows: ScoredRows, partition: Partition) -> IndexArray:
    """Return the block that holds the true class, or the whole set of a row; -1 if none does."""
    of_sets = [
        blocks[0] if (blocks == blocks[0]).all() else -1
        for blocks in (partition.block_of[list(members)] for members in rows.sets)
    ]
    of_codes: IndexArray = np.array([*partition.block_of, *of_sets], dtype=np.int64)
    return of_codes[rows.codes]
