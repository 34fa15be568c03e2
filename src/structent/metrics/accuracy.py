"""Accuracy at the levels of a structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._typing import FloatArray
from structent.metrics.blocks import (
    at_level,
    mean_of_judged,
    named_blocks,
    predicted_blocks,
    refuse_if_none,
)
from structent.metrics.measure import Measure, ScoredRows, measured
from structent.structure import Partition, RandomPartition


def block_accuracy(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: Partition | RandomPartition,
    *,
    level: str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
    allow_blocks: bool = False,
) -> float:
    """Share of the rows whose most probable block holds the true class.

    A block's probability is the sum over its classes, so the predicted block need not hold the
    predicted class. If blocks are equally probable, the first is predicted.

    Parameters
    ----------
    y_true, proba, sample_weight, classes
        As in :func:`~structent.metrics.structured_log_loss`.
    structure, level
        As in :func:`~structent.metrics.block_log_loss`: the mean over the partitions of a level,
        or plain accuracy of the classes if ``level`` is None.
    allow_blocks
        As in :func:`~structent.metrics.structured_log_loss`. A coarse row counts in the partitions
        that have a block which holds all classes of its set, and is left out of the others.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> block_accuracy(["oak"], [[0.3, 0.3, 0.4]], plants, level="level 1")  # a tree, with .6
    1.0
    >>> block_accuracy(["oak"], [[0.3, 0.3, 0.4]], plants)  # a rose, with .4
    0.0
    """
    scored, named = at_level(structure, level), named_blocks(structure, allow_blocks=allow_blocks)
    measures = [accuracy_measure(scored)]
    values = measured(measures, scored.classes, y_true, proba, sample_weight, classes, named)
    return refuse_if_none(values[0])


def accuracy_measure(structure: RandomPartition) -> Measure:
    """Return the mean over rows and partitions of whether the predicted block is the true one."""

    def hits(rows: ScoredRows, partition: Partition) -> FloatArray:
        return predicted_blocks(rows, partition).is_hit.astype(np.float64)

    return mean_of_judged(structure, hits)
