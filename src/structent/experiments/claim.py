"""A claim of the paper, and whether it holds here."""

from __future__ import annotations

from typing import NamedTuple

from structent.experiments.markdown import table


class Claim(NamedTuple):
    """What the paper says, whether the results bear it out, and the numbers that say so.

    ``holds`` is "yes", "no", "in part", or "not run" where the runs it needs are missing.
    """

    says: str
    holds: str
    numbers: str


def claims_table(claims: list[Claim]) -> str:
    """Return claims as a Markdown table.

    >>> print(claims_table([Claim("water is wet", "yes", "3 of 3 trials")]))
    | the paper says | holds here | the numbers |
    |---|---|---|
    | water is wet | yes | 3 of 3 trials |
    """
    header = ["the paper says", "holds here", "the numbers"]
    return table(header, [list(claim) for claim in claims], n_left=3)
