"""Which rows can be judged: a row known by a set of classes, only where one block holds the set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructureError
from structent.metrics.blocks import true_blocks, weighted_partitions
from structent.metrics.measure import Measure
from structent.metrics.rows import Rows
from structent.structure import Partition, RandomPartition


def judged_rows(rows: Rows, partition: Partition) -> Rows:
    """Return the rows whose true block is known."""
    return rows.take(true_blocks(rows, partition) >= 0) if rows.sets else rows


def mean_of_judged(
    structure: RandomPartition, values: Callable[[Rows, Partition], FloatArray]
) -> Measure:
    """Return the weighted mean over partitions, and the rows that each of them can judge.

    NaN where there is no such row.
    """

    def of_rows(rows: Rows) -> FloatArray:
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


def of_known_classes(measure: Measure) -> Measure:
    """Return a measure of the rows whose class is known, NaN where there is none."""

    def of_rows(rows: Rows) -> Any:
        known = rows.take(rows.codes < rows.proba.shape[1]) if rows.sets else rows
        return measure.of_rows(known) if len(known.codes) else None

    def of_parts(parts: Sequence[Any]) -> float:
        filled = [part for part in parts if part is not None]
        return measure.of_parts(filled) if filled else np.nan

    return Measure(of_rows, of_parts)


def number_of_judged(structure: RandomPartition) -> Measure:
    """Return how many rows at least one partition can judge."""

    def of_rows(rows: Rows) -> int:
        blocks = [true_blocks(rows, partition) for _, partition in weighted_partitions(structure)]
        return int((np.max(blocks, axis=0) >= 0).sum())

    return Measure(of_rows, sum)


def refuse_if_none(score: float) -> float:
    """Return a score if any row was judged."""
    if np.isnan(score):
        raise StructureError(
            "there must be a row whose label lies within one block of those scored, got none; "
            "score a coarser level"
        )
    return score
