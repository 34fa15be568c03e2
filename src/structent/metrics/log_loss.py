"""Log loss under a structure and at one of its levels, and skill: the share of it that is saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_distribution
from structent._typing import FloatArray
from structent.entropy import structured_cross_entropy
from structent.errors import StructureError
from structent.metrics.blocks import (
    at_level,
    named_blocks,
    probability_of_true_block,
    weighted_partitions,
)
from structent.metrics.measure import Measure, ScoredRows, columns_of, mean_of, measured
from structent.structure import Partition, RandomPartition
from structent.structure.samplers import checked_fixed

# Rounded frequencies can have an entropy of this size if the true entropy is 0.
_ROUNDING = 1e-12


def structured_log_loss(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
    allow_blocks: bool = False,
) -> float:
    r"""Mean structured cross-entropy of the true labels, in nats.

    .. math:: \frac{1}{n} \sum_i \sum_t w_t \, \bigl( -\log Q_i(B_t(y_i)) \bigr)

    :math:`B_t(y)` is the block of partition t that holds y, and :math:`Q_i` sums the probabilities
    of row i. Nothing is clipped: a true block to which a row gives probability 0 makes the loss
    infinite.

    Parameters
    ----------
    y_true
        The label of each row, (n,), by name.
    proba
        The probabilities of the classes, (n, classes), each row summing to 1. The chunks of a Dask
        array are visited where they are, and only a few sums of each come back; ``y_true`` and
        ``sample_weight`` may then be a Dask array or series, too.
    structure
        The random partition; its weights are :math:`w_t`.
    sample_weight
        The weight of each row in the mean, (n,); equal if None.
    classes
        The class of each column of ``proba``: ``classes_`` of the estimator that gave it, or
        ``structure.classes`` if the columns are in the structure's order, as those of a network
        are. It may be left out if ``proba`` is a data frame whose columns are named by class, or if
        the classes of the structure are sorted, so that both orders are the same.
    allow_blocks
        Whether a label may also be the name of a block, or a set of classes, if no more is known
        of a row: then :math:`B_t(y)` is the block that holds the whole set, or the set itself if
        none does.

    Examples
    --------
    Of the two partitions the first gives the true block .25 + .25, the second .25.

    >>> from math import log
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> loss = structured_log_loss(["oak"], [[0.25, 0.25, 0.5]], plants)
    >>> round(loss / log(2), 6)  # in bits: (1 + 2) / 2
    1.5
    """
    measures = [log_loss_measure(checked_fixed(structure))]
    named = named_blocks(structure, allow_blocks=allow_blocks)
    return measured(measures, structure.classes, y_true, proba, sample_weight, classes, named)[0]


def block_log_loss(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: Partition | RandomPartition,
    *,
    level: str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
    allow_blocks: bool = False,
) -> float:
    """Log loss of the blocks of a partition, or of a level of a structure, in nats.

    The loss of a level is the mean over its partitions, in proportion to their weights.

    Parameters
    ----------
    y_true, proba, sample_weight, classes
        As in :func:`structured_log_loss`; an impossible true block makes the loss infinite here,
        too.
    structure
        A partition, or a random partition of which ``level`` is scored.
    level
        The name of a level of the structure, see ``structure.levels``. If None, the classes
        themselves are scored, which is plain log loss.
    allow_blocks
        As in :func:`structured_log_loss`. Every row counts: a coarse one by the probability of its
        set if no block holds it. In plain log loss this is the case for every coarse row.

    Examples
    --------
    >>> from math import log
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.25, 0.25, 0.5]]
    >>> round(block_log_loss(["oak"], proba, plants, level="level 1") / log(2), 6)
    1.0
    >>> round(block_log_loss(["oak"], proba, plants) / log(2), 6)
    2.0
    """
    scored, named = at_level(structure, level), named_blocks(structure, allow_blocks=allow_blocks)
    measures = [log_loss_measure(scored)]
    return measured(measures, scored.classes, y_true, proba, sample_weight, classes, named)[0]


def skill(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    *,
    prior: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
) -> float:
    """Share of the prior's structured log loss that a model saves: 1 - loss / prior's loss.

    1 is perfect: every true class has probability 1. 0 is no better than giving every row the
    frequencies of the classes, and below 0 is worse than that. Unlike the loss, it may be compared
    between structures and between their levels (``structure.level(name)``). If the prior is
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
    The prior loses 1 bit per row. One row loses nothing and one loses 1 bit: half of it is saved.

    >>> from structent import trivial
    >>> skill(["heads", "tails"], [[1.0, 0.0], [0.5, 0.5]], trivial(["heads", "tails"]))
    0.5
    """
    structure = checked_fixed(structure)
    if prior is not None:
        prior = checked_prior(prior, structure, proba, classes)
    measure = skill_measure(structure, prior)
    return measured([measure], structure.classes, y_true, proba, sample_weight, classes)[0]


def log_loss_measure(structure: RandomPartition) -> Measure:
    """Return the mean over rows of the structured cross-entropy."""

    def losses(rows: ScoredRows) -> FloatArray:
        return structured_losses(rows, structure)

    return mean_of(losses)


def structured_losses(rows: ScoredRows, structure: RandomPartition) -> FloatArray:
    """Return the structured cross-entropy of each row, (n,)."""
    losses = np.zeros(len(rows.codes))
    for weight, partition in weighted_partitions(structure):
        losses += weight * block_losses(rows, partition)
    return losses


def block_losses(rows: ScoredRows, partition: Partition) -> FloatArray:
    """Return minus the logarithm of the probability of each row's true block, (n,)."""
    # One block of all classes has probability 1, even if the sum of a row is rounded.
    if partition.n_blocks == 1:
        return np.zeros(len(rows.codes))
    with np.errstate(divide="ignore"):  # -log 0 is infinite, and so is the loss
        return -np.log(probability_of_true_block(rows, partition))


def checked_prior(
    prior: ArrayLike, structure: RandomPartition, proba: ArrayLike, classes: Any
) -> FloatArray:
    """Return the prior in the structure's order; it is given in the order of ``proba``."""
    checked = checked_distribution(prior, "prior", n_classes=[structure.n_classes])
    if checked.ndim != 1:
        raise StructureError(f"prior must have one axis, got shape {checked.shape}")
    columns = columns_of(structure.classes, proba, classes)
    return checked if columns is None else checked[columns]


def skill_measure(structure: RandomPartition, prior: FloatArray | None) -> Measure:
    """Return the skill against a prior, or against the frequencies of the rows."""

    def of_rows(rows: ScoredRows) -> tuple[float, FloatArray]:
        loss = rows.weights @ structured_losses(rows, structure)
        counts = np.zeros(structure.n_classes)
        np.add.at(counts, rows.codes, rows.weights)
        return float(loss), counts

    def of_parts(parts: Sequence[tuple[float, FloatArray]]) -> float:
        counts = np.sum([counts for _, counts in parts], axis=0)
        loss = sum(loss for loss, _ in parts) / counts.sum()
        return _skill(loss, _loss_of_prior(structure, counts / counts.sum(), prior))

    return Measure(of_rows, of_parts)


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
            f"prior must be above 0 for every class in y_true, got 0 for "
            f"{structure.classes[impossible]!r}; use e.g. (count + 1/2) / (n + classes / 2)"
        )
    return loss
