"""Paired differences over the folds of repeated cross-validation, with honest intervals."""

from __future__ import annotations

import numpy as np
from scipy.stats import t

from structent._typing import FloatArray
from structent.comparison.result import Difference, Verdict

CONFIDENCE = 0.95


def paired_difference(per_fold: FloatArray, n_folds: int) -> Difference:
    """Return the mean of differences and its interval, corrected as by Nadeau and Bengio (2003).

    Training sets of different folds share most of their rows, so that the differences are not
    independent; their variance over J folds is (1/J + test rows / training rows) s^2, and not
    s^2 / J.

    Parameters
    ----------
    per_fold
        The difference in each fold of each repeat.
    n_folds
        The folds of one repeat.
    """
    n_differences = len(per_fold)
    mean = float(per_fold.mean())
    test_share = 1.0 / (n_folds - 1)
    error = float(np.sqrt((1.0 / n_differences + test_share) * per_fold.var(ddof=1)))
    half = float(t.ppf(0.5 + CONFIDENCE / 2, n_differences - 1)) * error
    return Difference(per_fold, mean, mean - half, mean + half)


def verdict(against_none: Difference, against_scrambled: Difference, metric: str) -> Verdict:
    """Return what follows from the two differences, in one sentence.

    Examples
    --------
    >>> better = Difference(np.zeros(0), -0.012, -0.015, -0.009)
    >>> same = Difference(np.zeros(0), -0.001, -0.003, 0.001)
    >>> verdict(better, better, "log loss").sentence
    'The structure lowers log loss by 0.012 +- 0.003 (95 %).'
    >>> verdict(better, same, "log loss").finding
    'regularisation'
    >>> verdict(same, better, "log loss").sentence
    'There is no evidence that the structure helps: log loss changes by -0.001 +- 0.002 (95 %).'
    """
    gain = f"{abs(against_none.mean):.3f} +- {against_none.half_width:.3f} (95 %)"
    acts = "raises accuracy" if metric == "accuracy" else f"lowers {metric}"
    if against_none.is_lower and against_scrambled.is_lower:
        return Verdict("helps", f"The structure {acts} by {gain}.")
    if against_none.is_lower:
        return Verdict(
            "regularisation",
            f"The structure helps (it {acts} by {gain}), but a scrambled structure helps as much: "
            "regularisation, not meaning.",
        )
    change = -against_none.mean if metric == "accuracy" else against_none.mean
    return Verdict(
        "no evidence",
        f"There is no evidence that the structure helps: {metric} changes by "
        f"{change:+.3f} +- {against_none.half_width:.3f} (95 %).",
    )
