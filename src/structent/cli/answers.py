"""What ``train --calibrate`` holds back, and what ``--confidence`` answers and promises."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structent._checks import checked_fraction
from structent.decisions import HedgedPredictions, calibrated_quantile
from structent.errors import LabelError, StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import Structure
from structent.structure import RandomPartition

if TYPE_CHECKING:
    import polars as pl


def held_back(
    share: float | None, structure: Structure, labels: NDArray[Any], seed: int
) -> NDArray[np.bool_]:
    """Return which rows are held back for calibration: a share of all, drawn alike; none if None.

    Not class by class: rows to come are not drawn so either.
    """
    n_rows = len(labels)
    is_held_back = np.zeros(n_rows, dtype=np.bool_)
    if share is None:
        return is_held_back
    if not isinstance(structure, RandomPartition):
        raise StructentError(
            "--calibrate needs a structure that is fixed, got one that changes with every round; "
            "leave it out, or give a hierarchy, circular or ordinal structure"
        )
    try:
        structure.encode(labels)
    except LabelError as error:
        raise StructentError(
            f"--calibrate needs the class of every row, not a block: {error}"
        ) from None
    count = round(checked_fraction(share, "--calibrate") * n_rows)
    if not 0 < count < n_rows:
        raise StructentError(
            f"--calibrate must leave rows to train on and to calibrate on, got {share:g}, "
            f"which is {count:,} of {n_rows:,} rows"
        )
    is_held_back[np.random.default_rng(seed).choice(n_rows, size=count, replace=False)] = True
    return is_held_back


def calibrated_on(is_held_back: NDArray[np.bool_]) -> str:
    """Return what to add to the result of training."""
    count = int(is_held_back.sum())
    if not count:
        return ""
    return f"; answers calibrated on {count:,} of {len(is_held_back):,} rows, held back for that"


def answers_of(
    model: StructuredBoostingClassifier, features: pl.DataFrame, confidence: float
) -> HedgedPredictions:
    """Return the answers of a model, or say that it has no blocks to answer with."""
    if not isinstance(model.structure_, RandomPartition):
        raise StructentError(
            "--confidence needs a model whose structure is fixed, got one that changes with every "
            "round; leave it out"
        )
    checked_fraction(confidence, "--confidence")
    return model.predict_blocks(features, confidence=confidence)


def trust_of(model: StructuredBoostingClassifier, confidence: float) -> str:
    """Return a sentence on what the answers can be trusted for."""
    scores = model.block_scores_
    if scores is None:
        return (
            "Answers believe the model's own probabilities; structent train --calibrate 0.2 makes "
            "a model whose answers come with a guarantee."
        )
    if math.isinf(calibrated_quantile(scores, confidence)):
        return (
            f"Every answer is all classes: {len(scores):,} rows of calibration are too few for a "
            f"confidence of {confidence:g}; hold back more, or ask for less."
        )
    return (
        f"Answers hold the true label of at least {confidence:.4g} of the rows, on average, where "
        f"rows are like the {len(scores):,} that were held back."
    )
