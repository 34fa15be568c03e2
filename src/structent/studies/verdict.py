"""The conclusion of a comparison: use the structure, do not use it, or undecided."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Literal, TypeAlias

from structent.studies.differences import Difference

# A gain below these does not matter: a share of the log loss without structure, and of the rows.
_SMALL_LOSS, _SMALL_ACCURACY = 0.005, 0.005

Finding: TypeAlias = Literal["use it", "do not use it", "undecided"]
Reason: TypeAlias = Literal["helps", "harms", "hardly any gain", "regularisation", "too few rows"]


@dataclass(frozen=True)
class Verdict:
    """The conclusion of a comparison.

    Attributes
    ----------
    finding
        What to do.
    reason
        Why.
    sentence
        Both in words.
    smallest_gain
        The smallest gain that this comparison would have found four times out of five.
    """

    finding: Finding
    reason: Reason
    sentence: str
    smallest_gain: float


def verdict(
    against_none: Difference,
    against_scrambled: Difference,
    scrambled_against_none: Difference,
    *,
    metric: str,
    without: float,
    n_plain: int,
) -> Verdict:
    """Return the conclusion from the differences.

    Parameters
    ----------
    against_none, against_scrambled, scrambled_against_none
        The structure minus no structure, the structure minus its copies, and the copies minus no
        structure.
    metric
        "log loss" or "accuracy".
    without
        The score without structure, by which a gain is called small.
    n_plain
        In how many splits validation rows chose no structure.

    Examples
    --------
    >>> import numpy as np
    >>> better = Difference(np.zeros(10), -0.012, -0.015, -0.009)
    >>> same = Difference(np.zeros(10), -0.001, -0.003, 0.001)
    >>> given = {"metric": "log loss", "without": 2.0, "n_plain": 0}
    >>> verdict(better, better, same, **given).sentence
    'Use it: the structure lowers log loss by 0.012 ± 0.003 (95 %).'
    >>> verdict(better, same, better, **given).reason
    'regularisation'
    >>> print(verdict(same, better, same, **given).sentence)
    Do not use it: log loss changes by -0.001 ± 0.002 (95 %), so a gain above 0.003 is ruled out.
    """
    n_splits = len(against_none.per_split)
    gain = f"{_with_interval(against_none, abs(against_none.mean))} (95 %)"
    acts = "raises accuracy" if metric == "accuracy" else f"lowers {metric}"
    smallest = against_none.smallest_found

    def found(finding: Finding, reason: Reason, why: str) -> Verdict:
        return Verdict(finding, reason, f"{finding.capitalize()}: {why}.", smallest)

    if against_none.is_lower and against_scrambled.is_lower:
        return found("use it", "helps", f"the structure {acts} by {gain}")
    if against_none.is_lower and scrambled_against_none.is_lower:
        why = f"the structure {acts} by {gain}, but scrambled copies of it do as much. The gain is"
        return found("do not use it", "regularisation", f"{why} just regularisation")
    if against_none.is_higher:
        better = "accuracy is higher" if metric == "accuracy" else f"{metric} is lower"
        return found("do not use it", "harms", f"{better} without the structure, by {gain}")
    change = -against_none.mean if metric == "accuracy" else against_none.mean
    changes = f"{metric} changes by {_with_interval(against_none, change, sign='+')} (95 %)"
    if n_plain == n_splits:
        why = f"validation rows chose no structure in all {n_splits} splits"
        return found("do not use it", "hardly any gain", why)
    largest = -against_none.low
    if largest <= (_SMALL_ACCURACY if metric == "accuracy" else _SMALL_LOSS * without):
        why = f"{changes}, so a gain above {_digits(max(largest, 0.0))} is ruled out"
        return found("do not use it", "hardly any gain", why)
    if against_none.is_lower:
        changes = (
            f"the structure {acts} by {gain}, but whether by more than scrambled copies of it is "
            f"not clear ({_with_interval(against_scrambled, against_scrambled.mean, sign='+')})"
        )
    why = f"{changes}. A gain of {_digits(smallest)} would have been found"
    return found("undecided", "too few rows", why)


def _digits(value: float) -> str:
    """Return a number with three decimals, or more if it would be rounded to 0.

    Examples
    --------
    >>> _digits(0.0123), _digits(0.00012), _digits(0.0)
    ('0.012', '0.00012', '0.000')
    """
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.2g}"


def _with_interval(difference: Difference, value: float, *, sign: str = "") -> str:
    """Return a value and the half width of its interval, with the same number of decimals.

    Examples
    --------
    >>> import numpy as np
    >>> _with_interval(Difference(np.zeros(10), -0.0001, -0.0161, 0.0159), -0.0001, sign="+")
    '-0.000 ± 0.016'
    """
    half = difference.half_width
    decimals = 3 if not 0 < half < 0.0005 else 1 - floor(log10(half))
    return f"{value:{sign}.{decimals}f} ± {half:.{decimals}f}"
