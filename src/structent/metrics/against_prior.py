"""Skill: how much of the loss of the class prior a model saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_distribution
from structent._typing import FloatArray
from structent.entropy import structured_cross_entropy
from structent.errors import StructureError
from structent.metrics.log_loss import structured_losses
from structent.metrics.measure import Measure, measured
from structent.metrics.rows import Rows, checked_columns
from structent.structure import RandomPartition
from structent.structure.partition_sampler import checked_fixed

# Frequencies whose sum was rounded have an entropy of this size where the true one is 0.
_ROUNDING = 1e-12


def skill(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    prior: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
) -> float:
    """Share of the prior's structured log loss that a model saves: 1 - its loss / the prior's.

    1 is perfect: every true class has probability 1. 0 is no better than giving every row the
    frequencies of the classes, and below 0 is worse than that. Unlike the loss, it may be compared
    between structures and between their levels (``structure.level(name)``). Where the prior is
    perfect, because all rows are of one class, the skill is 0 for a perfect model and minus
    infinity for any other.

    Parameters
    ----------
    y_true, proba, structure, sample_weight, classes
        As in :func:`~structent.metrics.structured_log_loss`.
    prior
        The probability of each class, in the order of the columns of ``proba``: e.g. the
        frequencies among the training rows. If None, the (weighted) frequencies in ``y_true``,
        which no constant prediction can beat.

    Examples
    --------
    The prior loses 1 bit a row. One row loses nothing and one loses 1 bit: half of it is saved.

    >>> from structent import trivial
    >>> skill(["heads", "tails"], [[1.0, 0.0], [0.5, 0.5]], trivial(["heads", "tails"]))
    0.5
    """
    structure = checked_fixed(structure)
    if prior is not None:
        prior = checked_prior(prior, structure, classes)
    measure = skill_measure(structure, prior)
    return measured([measure], structure.classes, y_true, proba, sample_weight, classes)[0]


def skill_measure(structure: RandomPartition, prior: FloatArray | None) -> Measure:
    """Return the skill against a prior, or against the frequencies of the rows."""

    def of_rows(rows: Rows) -> tuple[float, FloatArray]:
        loss = rows.weights @ structured_losses(rows, structure)
        counts = np.zeros(structure.n_classes)
        np.add.at(counts, rows.codes, rows.weights)
        return float(loss), counts

    def of_parts(parts: Sequence[tuple[float, FloatArray]]) -> float:
        counts = np.sum([counts for _, counts in parts], axis=0)
        loss = sum(loss for loss, _ in parts) / counts.sum()
        return _skill(loss, _loss_of_prior(structure, counts / counts.sum(), prior))

    return Measure(of_rows, of_parts)


def checked_prior(prior: ArrayLike, structure: RandomPartition, classes: Any) -> FloatArray:
    """Return the probability of each class, in the structure's order."""
    checked = checked_distribution(prior, "prior", n_classes=[structure.n_classes])
    if checked.ndim != 1:
        raise StructureError(f"prior must have one axis, got shape {checked.shape}")
    columns = checked_columns(classes, structure.classes)
    return checked if columns is None else checked[columns]


def _skill(loss: float, loss_of_prior: float) -> float:
    if loss_of_prior <= _ROUNDING:
        return 0.0 if loss <= _ROUNDING else -np.inf
    return float(1.0 - loss / loss_of_prior)


def _loss_of_prior(
    structure: RandomPartition, frequencies: FloatArray, prior: FloatArray | None
) -> float:
    """Return the mean loss of rows with these frequencies that are all given the prior."""
    if prior is None:
        return float(structured_cross_entropy(frequencies, frequencies, structure))
    loss = float(structured_cross_entropy(frequencies, prior, structure))
    if np.isinf(loss):
        impossible = int(np.argmax((frequencies > 0) & (prior == 0)))
        raise StructureError(
            f"prior must allow every class in y_true, got 0 for {structure.classes[impossible]!r}, "
            "an infinite loss that any model would save; (count + 1/2) / (n + classes / 2) does"
        )
    return loss
