"""What a test of a structure finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from structent._typing import FloatArray
from structent.comparison.result import Difference
from structent.significance.identity import Scrambled
from structent.significance.p_value import PValue

TestFinding: TypeAlias = Literal["helps", "no evidence", "cannot tell"]


@dataclass(frozen=True, eq=False)
class StructureTest:
    """Whether a structure helps more than the same structure with its classes scrambled.

    Attributes
    ----------
    structure
        The structure that was asked about.
    p
        The p-value, and how many copies it was counted from.
    level
        The level of significance that was asked for.
    orbit_size
        How many different structures scrambling can give, this one among them; None if there are
        too many to be listed.
    losses, losses_without
        The log loss in each fold with the structure, and with none, (folds,).
    null_losses
        The log losses of the copies that were looked at, (copies, folds), in their order.
    against_scrambled
        The difference between the structure and the mean of its copies, paired over the folds:
        below 0 the structure is better.
    against_none
        The difference between the structure and no structure.
    p_value_against_none
        The one-sided p-value of that difference, by the corrected t-test of Nadeau and Bengio; NaN
        for a single fold.
    seconds, seed
        How long it took, and the seed of all that was drawn.
    """

    structure: Scrambled
    p: PValue
    level: float
    orbit_size: int | None
    losses: FloatArray
    losses_without: FloatArray
    null_losses: FloatArray
    against_scrambled: Difference
    against_none: Difference
    p_value_against_none: float
    seconds: float
    seed: int

    @property
    def p_value(self) -> float:
        """The p-value of the permutation test."""
        return self.p.value

    @property
    def loss(self) -> float:
        """The mean log loss with the structure: the statistic of the test."""
        return float(self.losses.mean())

    @property
    def null(self) -> FloatArray:
        """The null distribution: the mean log loss of each copy, (copies,)."""
        means: FloatArray = self.null_losses.mean(axis=1)
        return means

    @property
    def effect(self) -> float:
        """The mean loss of the copies minus that of the structure: above 0 it is better."""
        return -self.against_scrambled.mean

    @property
    def effect_interval(self) -> tuple[float, float]:
        """The bounds of the effect's 95 % interval over the folds, for the copies drawn."""
        return -self.against_scrambled.high, -self.against_scrambled.low

    @property
    def least_p_value(self) -> float:
        """The least p-value that the copies could have given."""
        return 1 / (1 + self.p.n_drawn)

    @property
    def finding(self) -> TestFinding:
        """What follows at the level asked for."""
        if self.p_value <= self.level:
            return "helps"
        is_hopeless = self.least_p_value > self.level and not self.p.is_stopped_early
        return "cannot tell" if is_hopeless else "no evidence"

    @property
    def sentence(self) -> str:
        """What follows, in one plain sentence."""
        if self.finding == "helps":
            low, high = self.effect_interval
            return (
                "The structure helps more than its scrambled copies: log loss is lower by "
                f"{self.effect:.4f} ({low:.4f} to {high:.4f}), p = {self.p_value:.3g}."
            )
        if self.finding == "no evidence":
            return (
                "There is no evidence that the structure helps more than its scrambled copies: "
                f"p = {self.p_value:.3g}."
            )
        return (
            f"Whether the structure helps cannot be told at the level {self.level:g}: with "
            f"{_counted(self.p.n_drawn)} p can be no lower than {self.least_p_value:.3g}."
        )

    @property
    def sentence_against_none(self) -> str:
        """The answer to the direct question, in one plain sentence."""
        found = self.against_none
        return (
            f"Against no structure log loss changes by {found.mean:+.4f} ({found.low:+.4f} to "
            f"{found.high:+.4f}), p = {self.p_value_against_none:.3g}."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the p-value should know, one sentence each."""
        notes = []
        if self.orbit_size is not None and self.p.n_drawn == self.orbit_size - 1:
            notes.append(
                f"Scrambling can give {_counted(self.p.n_drawn)} that differ from the structure "
                "and from each other, and all were tried: p is exact."
            )
        if self.p.is_stopped_early:
            notes.append(
                f"It was stopped after {_counted(self.p.n_drawn)}, when {self.p.n_as_good} were as "
                f"good as the structure: p = {self.p.n_as_good}/{self.p.n_drawn}."
            )
        if self.finding == "cannot tell":
            notes.append(self._way_out())
        return tuple(notes)

    def _way_out(self) -> str:
        needed = int(np.ceil(1 / self.level - 1e-9)) - 1
        if self.orbit_size is not None and self.orbit_size <= needed:
            return (
                f"The orbit of the structure is too small for the level {self.level:g}, which "
                f"takes {needed} copies; compare it with no structure instead."
            )
        return f"The level {self.level:g} takes at least {needed} permutations."


def _counted(n_copies: int) -> str:
    return f"{n_copies:,} scrambled {'copy' if n_copies == 1 else 'copies'}"
