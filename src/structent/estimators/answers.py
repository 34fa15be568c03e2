"""Answers of any granularity: for each row the smallest set of its chain that can be trusted.

The mathematics is that of :mod:`structent.decisions`. Here it meets the model: its probabilities,
the order of its classes, its structure, and the scores that held-out rows left behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from structent._typing import FloatArray
from structent.decisions import HedgedPredictions, block_scores, calibrated_hedge, hedge
from structent.errors import LabelError, StructureError
from structent.estimators.classes import Structure
from structent.structure import RandomPartition


def calibration_scores(
    y: Any, proba: NDArray[Any], classes: NDArray[Any], structure: Structure | None
) -> FloatArray:
    """Return the scores of held-out rows, sorted, which serve every confidence.

    Parameters
    ----------
    y
        The true class of each row, (n,).
    proba
        The probabilities that a model gives them, (n, classes).
    classes
        The class of each column.
    structure
        The structure of the model; it must be fixed.
    """
    fixed = _fixed(structure, "calibrate_blocks")
    if y is None:
        raise LabelError("calibrate_blocks needs the label of every row, got None for y")
    check_consistent_length(proba, y)
    return np.sort(block_scores(y, proba, fixed, classes=classes))


def block_answers(
    proba: NDArray[Any],
    classes: NDArray[Any],
    structure: Structure | None,
    scores: FloatArray | None,
    confidence: float,
) -> HedgedPredictions:
    """Return the answer for each row: with a guarantee where there are scores.

    Parameters
    ----------
    proba, classes, structure
        As in :func:`calibration_scores`.
    scores
        The scores of held-out rows; None for a model that was not calibrated, whose own
        probabilities are then believed.
    confidence
        The coverage that the answers are to have.
    """
    fixed = _fixed(structure, "predict_blocks")
    if scores is None:
        return hedge(proba, fixed, confidence, classes=classes)
    return calibrated_hedge(proba, fixed, confidence, scores, classes=classes)


def _fixed(structure: Structure | None, method: str) -> RandomPartition:
    if structure is None:
        raise StructureError(
            f"{method} needs a model with a structure, got structure=None; "
            "predict gives the classes"
        )
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"{method} needs a model whose blocks stay the same, got {type(structure).__name__}, "
            "which draws new ones in every round; train with a fixed structure, such as its "
            "sample(0), or give that to structent.decisions.hedge with predict_proba"
        )
    return structure
