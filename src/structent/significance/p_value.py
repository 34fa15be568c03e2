"""The p-value of a permutation test: over all copies, or stopped early (Besag and Clifford)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from structent._typing import FloatArray

# Losses that are equal may differ by rounding, where they are summed in another order.
_TIE = 1e-12


class PValue(NamedTuple):
    """A p-value, and what it was counted from.

    Attributes
    ----------
    value
        The p-value.
    n_as_good
        The copies that are as good as the structure, or better.
    n_drawn
        The copies that were looked at.
    is_stopped_early
        Whether no more were looked at because the answer was clear.
    """

    value: float
    n_as_good: int
    n_drawn: int
    is_stopped_early: bool


def p_value_of(as_good: Iterable[bool], *, stop_after: int | None = None) -> PValue:
    r"""Return the p-value of copies that are as good as the structure or not, in their order.

    .. math:: p = \frac{1 + b}{1 + m}

    for b of m copies as good or better, those of equal loss among them: the structure itself is one
    of the ``1 + m`` among which it would stand anywhere by chance. With ``stop_after`` = h the
    copies are looked at one by one until h of them are as good (Besag and Clifford, 1991). If that
    happens at the l-th copy,

    .. math:: p = \frac{h}{l}

    else p is as above. Both are exact: with no meaning in the structure :math:`P(p \le a) \le a`.
    Here p is at most :math:`h / l_0` where fewer than h of the first :math:`l_0 - 1` copies are as
    good, so that the structure is among the best h of :math:`l_0`, for which the chance is
    :math:`h / l_0`.

    Parameters
    ----------
    as_good
        Whether each copy is as good as the structure, or better.
    stop_after
        The number h, or None to look at all.

    Examples
    --------
    >>> p_value_of([False, True, False]).value
    0.5
    >>> p_value_of([False, True, False, True, True], stop_after=2)
    PValue(value=0.5, n_as_good=2, n_drawn=4, is_stopped_early=True)
    """
    n_as_good = n_drawn = 0
    for is_as_good in as_good:
        n_drawn += 1
        n_as_good += bool(is_as_good)
        if n_as_good == stop_after:
            return PValue(n_as_good / n_drawn, n_as_good, n_drawn, True)
    return PValue((1 + n_as_good) / (1 + n_drawn), n_as_good, n_drawn, False)


def as_good_as(losses: FloatArray, loss: float) -> list[bool]:
    """Return whether each loss is as low as the one of the structure, or lower.

    >>> import numpy as np
    >>> as_good_as(np.array([1.9, 2.0, 2.1]), 2.0)
    [True, True, False]
    """
    found: list[bool] = (losses <= loss + _TIE * abs(loss)).tolist()
    return found
