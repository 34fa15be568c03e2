"""Paired differences between two arms over splits that share training rows, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

from structent._typing import FloatArray

CONFIDENCE = 0.95
_POWER = 0.8  # the power at which a gain counts as one that would have been found


@dataclass(frozen=True, eq=False)
class Difference:
    """A paired difference of the classes' log loss, or of their errors: below 0 is better.

    Attributes
    ----------
    per_split
        The difference in every split.
    mean, low, high
        Its mean, and the bounds of its confidence interval, corrected for the rows that the
        training sets of the splits share.
    """

    per_split: FloatArray
    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def is_lower(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def is_higher(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    @property
    def standard_error(self) -> float:
        """The corrected standard error of the mean; NaN for one split."""
        freedom = len(self.per_split) - 1
        if freedom < 1:
            return float("nan")
        return float(self.half_width / t.ppf(0.5 + CONFIDENCE / 2, freedom))

    @property
    def smallest_found(self) -> float:
        """The smallest gain that would have been found four times out of five."""
        freedom = len(self.per_split) - 1
        if freedom < 1:
            return float("inf")
        needed = t.ppf(0.5 + CONFIDENCE / 2, freedom) + t.ppf(_POWER, freedom)
        return float(needed * self.standard_error)

    @property
    def p_value(self) -> float:
        """The chance of a difference as low if there were none, by the corrected t-test.

        It is below .025 exactly where the whole 95 % interval is below 0, and NaN for one split.

        Examples
        --------
        >>> per_split = np.array([-0.03, -0.01, -0.02, 0.0, -0.04])
        >>> round(paired_difference(per_split, 5).p_value, 4)
        0.0662
        """
        freedom, error = len(self.per_split) - 1, self.standard_error
        if freedom < 1:
            return float("nan")
        if error == 0:  # all splits alike: no spread to compare the mean with
            return float(np.heaviside(self.mean, 0.5))
        return float(t.cdf(self.mean / error, freedom))

    def to_dict(self) -> dict[str, Any]:
        """Return the mean, the bounds of its interval, and the difference in each split."""
        bounds = {"mean": self.mean, "low": self.low, "high": self.high}
        return {**bounds, "per_split": self.per_split.tolist()}


def paired_difference(per_split: FloatArray, n_folds: int) -> Difference:
    """Return the mean of differences and its interval, corrected as by Nadeau and Bengio (2003).

    Training sets of different splits share most of their rows, so that the differences are not
    independent; their variance over J splits is (1/J + test rows / training rows) s^2, and not
    s^2 / J. A single difference has an interval without bounds.

    Parameters
    ----------
    per_split
        The difference in each fold of each repeat.
    n_folds
        The folds of one repeat.
    """
    n_differences = len(per_split)
    mean = float(per_split.mean())
    if n_differences == 1:
        return Difference(per_split, mean, -np.inf, np.inf)
    test_share = 1.0 / (n_folds - 1)
    error = float(np.sqrt((1.0 / n_differences + test_share) * per_split.var(ddof=1)))
    half = float(t.ppf(0.5 + CONFIDENCE / 2, n_differences - 1)) * error
    return Difference(per_split, mean, mean - half, mean + half)
