"""Sets of classes with a guarantee: split conformal calibration of the chains of hedge."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import as_array, checked_fraction
from structent._typing import FloatArray, IndexArray
from structent.decisions.hedging import BoolArray, HedgedPredictions, chains_and_proba, predictions
from structent.errors import StructureError
from structent.structure import RandomPartition
from structent.structure.labels import class_indices


def block_scores(
    y_true: ArrayLike, proba: ArrayLike, structure: RandomPartition, *, classes: Any = None
) -> FloatArray:
    """How probable a wrong set is: the probability of the largest set of a row's chain without y.

    :func:`~structent.decisions.hedge` defines the chain. The score is 0 if no set misses the true
    class, which then is the most probable one. :func:`calibrated_hedge` needs the scores of rows
    that the model was not trained on.

    Parameters
    ----------
    y_true
        The true class of each row, (n,).
    proba, structure, classes
        As in :func:`~structent.decisions.hedge`.

    Returns
    -------
    The score of each row, (n,).

    Examples
    --------
    The first row is right. In the second, "maple" (.5) misses an oak, but "tree" holds it. In the
    third, both miss a rose, and only the set of all classes holds it.

    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.5, 0.375, 0.125]] * 3
    >>> block_scores(["maple", "oak", "rose"], proba, plants).tolist()
    [0.0, 0.5, 0.875]
    """
    chains, table = chains_and_proba(proba, structure, classes)
    codes = class_indices(y_true, structure.classes)
    if len(codes) != len(table):
        raise StructureError(f"y_true has {len(codes)} rows but proba has {len(table)}")

    def miss(rows: IndexArray, sets: IndexArray, _probability: FloatArray) -> BoolArray:
        return ~chains.hold(sets, codes[rows])

    return chains.climb(table, miss).before


def calibrated_quantile(scores: ArrayLike, confidence: float) -> float:
    r"""The :math:`\lceil (n + 1) \, confidence \rceil`-th smallest of n scores.

    If a new row is exchangeable with the n rows, its score is at most this quantile with a
    probability of at least the confidence, and at most 1 / (n + 1) above the confidence if no two
    scores are equal. The quantile is infinite if n is below confidence / (1 - confidence), because
    so few rows can guarantee nothing. It is 0, the least possible score, if the confidence is 0.

    Parameters
    ----------
    scores
        The scores of held-out rows, (n,), in any order.
    confidence
        A probability. It is taken as the decimal number that it prints as: 0.9 is nine tenths.

    Examples
    --------
    >>> nineteen = [i / 20 for i in range(19)]
    >>> calibrated_quantile(nineteen, 0.9)  # the 18th smallest
    0.85
    >>> calibrated_quantile(nineteen, 0.96)
    inf
    """
    checked = _checked_scores(scores)
    # In floats (99 + 1) * 0.55 is a little above 55, and would ask for the 56th score.
    share = Fraction(str(checked_fraction(confidence, "confidence")))
    rank = math.ceil((len(checked) + 1) * share)
    if rank > len(checked):
        return math.inf
    return float(np.sort(checked)[rank - 1]) if rank > 0 else 0.0


def calibrated_hedge(
    proba: ArrayLike,
    structure: RandomPartition,
    confidence: float,
    scores: ArrayLike,
    *,
    classes: Any = None,
) -> HedgedPredictions:
    """The most precise set for each row that still has the requested coverage.

    The answer is the first set of the row's chain (see :func:`~structent.decisions.hedge`) whose
    probability exceeds the :func:`calibrated_quantile` of the scores, or all classes if none does.
    It holds the true class exactly if the row's score is at most the quantile. This has a
    probability of at least the confidence, over new rows and held-out rows together, if they are
    exchangeable (drawn in the same way, in an order that does not matter). The guarantee is an
    average: it does not hold for each class, nor for rows that are drawn in another way.

    If the model is right more often than the confidence asks, the quantile is 0 and the set is the
    most probable class. If there are fewer scores than confidence / (1 - confidence), 9 for 0.9,
    every set is all classes, because nothing smaller can be guaranteed.

    Parameters
    ----------
    proba, structure, confidence, classes
        As in :func:`~structent.decisions.hedge`; the confidence is the coverage.
    scores
        The result of :func:`block_scores` for held-out rows, with the same structure. The same
        scores serve any confidence.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> held_out = block_scores(["maple", "oak", "maple"], [[0.5, 0.375, 0.125]] * 3, plants)
    >>> calibrated_hedge([[0.5, 0.375, 0.125]], plants, 0.5, held_out).names
    ('maple',)
    >>> calibrated_hedge([[0.5, 0.375, 0.125]], plants, 0.75, held_out).names
    ('tree',)
    """
    quantile = calibrated_quantile(scores, confidence)
    chains, table = chains_and_proba(proba, structure, classes)
    climbed = chains.climb(table, lambda _rows, _sets, probability: probability <= quantile)
    return predictions(climbed, chains, structure.classes)


def _checked_scores(scores: ArrayLike) -> FloatArray:
    given = as_array(scores, "scores")
    if given.ndim != 1 or (given.size and given.dtype.kind not in "fiu"):
        raise StructureError(
            "scores must be one number for each held-out row, as block_scores gives them, "
            f"got {given.dtype} of shape {given.shape}"
        )
    checked = given.astype(np.float64)
    wrong = ~(np.isfinite(checked) & (checked >= 0))
    if wrong.any():
        raise StructureError(
            "scores must be finite and not negative, as block_scores gives them, "
            f"got {checked[wrong][0]:g}"
        )
    return checked
