"""Results as Markdown: tables, and numbers with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from structent.experiments.paired import Mean


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_left: int = 1) -> str:
    """Return a Markdown table; the first columns, of words, are left-aligned, the others right.

    >>> print(table(["size", "loss"], [["500", "2.14"]]))
    | size | loss |
    |---|---:|
    | 500 | 2.14 |
    """
    lines = [header, ["---"] * n_left + ["---:"] * (len(header) - n_left), *rows]
    head, rule, *body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([head, rule.replace(" ", ""), *body])


def with_error(mean: Mean, digits: int = 4) -> str:
    """Return a mean with its standard error.

    >>> with_error(Mean(2.14123, 0.00345, 5))
    '2.1412 ± 0.0034'
    >>> with_error(Mean(2.14123, float("nan"), 1))
    '2.1412'
    """
    return f"{mean.value:.{digits}f}{_error(mean, digits)}"


def signed(mean: Mean, digits: int = 4) -> str:
    """Return a difference with its sign and its standard error.

    >>> signed(Mean(-0.0123, 0.003, 5))
    '-0.0123 ± 0.0030'
    """
    return f"{mean.value:+.{digits}f}{_error(mean, digits)}"


def _error(mean: Mean, digits: int) -> str:
    return "" if math.isnan(mean.error) else f" ± {mean.error:.{digits}f}"
