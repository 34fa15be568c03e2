"""Calibration error at the levels of a structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_integer
from structent._typing import FloatArray
from structent.metrics.blocks import (
    PredictedBlocks,
    at_level,
    judged_rows,
    named_blocks,
    predicted_blocks,
    refuse_if_none,
    weighted_partitions,
)
from structent.metrics.measure import Measure, ScoredRows, measured
from structent.structure import Partition, RandomPartition

N_BINS = 15


def calibration_error(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: Partition | RandomPartition,
    *,
    level: str | None = None,
    n_bins: int = N_BINS,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
    allow_blocks: bool = False,
) -> float:
    """How far the confidence in the predicted block is from how often it is right.

    The rows are sorted by the probability of their most probable block and cut into bins of equal
    numbers of rows (give or take one). The error is the mean over the bins of the distance between
    mean confidence and share of hits. It is above 0 by chance, too, and more so with fewer rows:
    compare it between models on the same rows.

    Parameters
    ----------
    y_true, proba, classes
        As in :func:`~structent.metrics.structured_log_loss`. For a Dask array, one confidence and
        one hit per row and partition are collected, because they must be sorted, but never the
        whole table.
    structure, level
        As in :func:`~structent.metrics.block_log_loss`.
    n_bins
        How many bins there are; as many as rows if there are fewer rows.
    sample_weight
        The weight of each row in the means, (n,). The bins still hold equal numbers of rows, so an
        integer weight is not quite the same as a repeated row here.
    allow_blocks
        As in :func:`~structent.metrics.block_accuracy`.

    Examples
    --------
    Three of four are right: with a confidence of .75 each there is no error, with 1 it is .25.

    >>> from structent import trivial
    >>> y_true, sides = ["heads", "heads", "heads", "tails"], trivial(["heads", "tails"])
    >>> calibration_error(y_true, [[0.75, 0.25]] * 4, sides, n_bins=1)
    0.0
    >>> calibration_error(y_true, [[1.0, 0.0]] * 4, sides, n_bins=1)
    0.25
    """
    scored, named = at_level(structure, level), named_blocks(structure, allow_blocks=allow_blocks)
    n_bins = checked_integer(n_bins, "n_bins", at_least=1, at_most=2**31)
    measures = [calibration_measure(scored, n_bins)]
    values = measured(measures, scored.classes, y_true, proba, sample_weight, classes, named)
    return refuse_if_none(values[0])


def calibration_measure(structure: RandomPartition, n_bins: int) -> Measure:
    """Return the mean over partitions of the calibration error of their predicted blocks."""
    counted = list(weighted_partitions(structure))

    def of_rows(rows: ScoredRows) -> list[tuple[FloatArray, PredictedBlocks]]:
        judged = [(judged_rows(rows, partition), partition) for _, partition in counted]
        return [(own.weights, predicted_blocks(own, partition)) for own, partition in judged]

    def of_parts(parts: Sequence[list[tuple[FloatArray, PredictedBlocks]]]) -> float:
        error = total = 0.0
        for (weight, _), *chunks in zip(counted, *parts, strict=True):
            sample_weight = np.concatenate([weights for weights, _ in chunks])
            confidence = np.concatenate([blocks.confidence for _, blocks in chunks])
            is_hit = np.concatenate([blocks.is_hit for _, blocks in chunks])
            if len(is_hit):  # a partition that can judge no row does not count
                excess = confidence - is_hit
                error += weight * _error_of_bins(excess, confidence, sample_weight, n_bins)
                total += weight
        return error / total if total > 0 else np.nan

    return Measure(of_rows, of_parts)


def _error_of_bins(
    excess: FloatArray, confidence: FloatArray, sample_weight: FloatArray, n_bins: int
) -> float:
    """Return the weighted mean over bins of the absolute mean excess of confidence over hits."""
    ascending = np.argsort(confidence, kind="stable")  # equal ones in the order of the rows
    bins = np.array_split(ascending, min(n_bins, len(ascending)))
    # A bin's weight times its mean is its sum.
    sums = [abs(sample_weight[rows] @ excess[rows]) for rows in bins]
    return float(sum(sums) / sample_weight.sum())
