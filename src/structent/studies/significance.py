"""What a test of a structure finds: the p-value, the conclusion, and what each partition adds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from structent._notebook import paragraph
from structent._typing import FloatArray
from structent.structure import Partition
from structent.studies.differences import Difference
from structent.studies.orbit import Scrambled
from structent.studies.plan import shown_folds

# Equal losses may differ by rounding if they are summed in another order.
_TIE = 1e-12

TestFinding: TypeAlias = Literal["helps", "no better than none", "no evidence", "cannot tell"]


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
        The level of significance.
    orbit_size
        How many different structures scrambling can give, this one included; None if there are too
        many to be listed.
    losses, losses_without
        The log loss in each fold with the structure, and with none, (folds,).
    null_losses
        The log losses of the copies that were looked at, (copies, folds), in their order.
    against_scrambled
        The difference between the structure and the mean of its copies, paired over the folds:
        below 0 the structure is better.
    against_none
        The difference between the structure and no structure.
    n_folds
        The folds of one repeat of the cross-validation.
    n_rows
        How many rows there were; None if a function gave the losses.
    seconds, seed
        How long it took, and its seed: the same ``random_state`` gives the same test.
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
    n_folds: int
    n_rows: int | None
    seconds: float
    seed: int

    @property
    def p_value(self) -> float:
        """The p-value of the permutation test."""
        return self.p.value

    @property
    def p_value_against_none(self) -> float:
        """The one-sided p-value of the difference to no structure, by the corrected t-test."""
        return self.against_none.p_value

    @property
    def cross_validation(self) -> str:
        """The folds and their repeats in words."""
        if len(self.losses) < self.n_folds:
            return "one loss for all folds"
        return shown_folds(self.n_folds, len(self.losses) // self.n_folds)

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
        """The mean loss of the copies minus the structure's: above 0 the structure is better."""
        return -self.against_scrambled.mean

    @property
    def effect_interval(self) -> tuple[float, float]:
        """The bounds of the effect's 95 % interval over the folds, for the copies drawn."""
        return -self.against_scrambled.high, -self.against_scrambled.low

    @property
    def least_p_value(self) -> float:
        """The least p-value that the copies could have given."""
        return 1 / (1 + self.p.n_drawn)

    def __repr__(self) -> str:
        return f"<StructureTest with {len(self.null_losses):,} copies. {self.sentence}>"

    def _repr_html_(self) -> str:
        more = f"{self.sentence_against_none} For the whole report: to_html(path)."
        return paragraph(self.sentence, bold=True) + paragraph(more)

    @property
    def finding(self) -> TestFinding:
        """The conclusion at the level of significance.

        "helps" needs both: a p-value at the level or below, and a lower loss than without
        structure. A structure that beats its scrambled copies but not "no structure" has a meaning,
        but should not be used.
        """
        if self.p_value <= self.level:
            return "helps" if self.against_none.mean < 0 else "no better than none"
        is_hopeless = self.least_p_value > self.level and not self.p.is_stopped_early
        return "cannot tell" if is_hopeless else "no evidence"

    @property
    def sentence(self) -> str:
        """The conclusion, in one plain sentence."""
        p = f"p = {self.p_value:.3g}; the least that {_counted(self.p.n_drawn)} allow is "
        p += f"{self.least_p_value:.3g}"
        if self.finding == "helps":
            low, high = self.effect_interval
            return (
                "The structure helps more than its scrambled copies: log loss is lower by "
                f"{self.effect:.4f} ({low:.4f} to {high:.4f}), {p}."
            )
        if self.finding == "no better than none":
            none = self.against_none
            return (
                f"The structure does not help: it beats its scrambled copies ({p}), but log loss "
                "is lower without structure, by "
                f"{none.mean:.4f} ({none.low:.4f} to {none.high:.4f})."
            )
        if self.finding == "no evidence":
            return (
                "There is no evidence that the structure helps more than its scrambled copies: "
                f"{p}."
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
                f"There are only {_counted(self.p.n_drawn)} that differ from the structure and "
                "from each other, and all were tried: p is exact."
            )
        if self.p.is_stopped_early:
            notes.append(
                f"The test stopped after {_counted(self.p.n_drawn)}, because {self.p.n_as_good} of "
                f"them were as good as the structure: p = {self.p.n_as_good}/{self.p.n_drawn}."
            )
        if self.finding == "cannot tell":
            notes.append(self._way_out())
        return tuple(notes)

    def to_dict(
        self, *, notes: Sequence[str] = (), gains: Sequence[PartitionGain] = ()
    ) -> dict[str, Any]:
        """Return what was found as plain data, ready for JSON.

        Parameters
        ----------
        notes
            What was done to the table before, one sentence each.
        gains
            What each partition adds, if :func:`~structent.studies.partition_gains` was asked.
        """
        low, high = self.effect_interval
        return {
            "finding": self.finding,
            "sentence": self.sentence,
            "notes": [*notes, *self.notes],
            "p_value": self.p_value,
            "level": self.level,
            "least_p_value": self.least_p_value,
            "scrambled_copies": self.p.n_drawn,
            "as_good": self.p.n_as_good,
            "stopped_early": self.p.is_stopped_early,
            "orbit_size": self.orbit_size,
            "effect": {"mean": self.effect, "low": low, "high": high},
            "loss": self.loss,
            "null_losses": self.null.tolist(),
            "against_none": self.against_none.to_dict() | {"p_value": self.p_value_against_none},
            "partitions": [
                {"left_out": gain.name, "weight": gain.weight} | gain.difference.to_dict()
                for gain in gains
            ],
            "seconds": self.seconds,
            "seed": self.seed,
        }

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        data: str = "table",
        target: str = "label",
        notes: Sequence[str] = (),
        cautions: Sequence[str] = (),
        gains: Sequence[PartitionGain] = (),
    ) -> None:
        """Write the report: one HTML file that needs no other files.

        Parameters
        ----------
        path
            The file to write.
        data, target
            What the report calls the table and its label column.
        notes
            What was done to the table before, one sentence each.
        cautions
            What to show beside the verdict, such as columns that were left out, one line each.
        gains
            What each partition adds, if :func:`~structent.studies.partition_gains` was asked.
        """
        from structent.report import structure_test_page, write_page  # noqa: PLC0415  it needs this

        page = structure_test_page(
            self, data=data, target=target, notes=notes, cautions=cautions, gains=gains
        )
        write_page(path, page)

    def _way_out(self) -> str:
        needed = int(np.ceil(1 / self.level - 1e-9)) - 1
        if self.orbit_size is not None and self.orbit_size <= needed:
            return (
                f"The orbit of the structure is too small for the level {self.level:g}, which "
                f"takes {needed} copies; compare it with no structure instead."
            )
        return f"The level {self.level:g} takes at least {needed} permutations."


@dataclass(frozen=True, eq=False)
class PartitionGain:
    """What a partition, or a whole level, adds to a structure.

    Attributes
    ----------
    level
        Its level.
    partition
        The partition; None for all partitions of the level.
    weight
        Its weight in the structure.
    difference
        The log loss with the partition minus the log loss without it, paired over the folds: below
        0 it helps.
    """

    level: str
    partition: Partition | None
    weight: float
    difference: Difference

    @property
    def name(self) -> str:
        """The level, and what distinguishes the partition within it."""
        if self.partition is None:
            return f"{self.level}: all"
        return f"{self.level}: {', '.join(self.partition.names)}"


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

    if b of m copies are as good or better; copies of equal loss count as good. The structure itself
    is one of the ``1 + m``, and if it had no meaning, every place among them would be equally
    likely. With ``stop_after`` = h the copies are looked at one by one until h of them are as good
    (Besag and Clifford, 1991). If that happens at the l-th copy,

    .. math:: p = \frac{h}{l}

    otherwise p is as above. Both are exact: if the structure has no meaning,
    :math:`P(p \le a) \le a`. For the second formula, p is at most :math:`h / l_0` only if fewer
    than h of the first :math:`l_0 - 1` copies are as good. Then the structure is among the best h
    of :math:`l_0`, and the chance of that is :math:`h / l_0`.

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
    """Return whether each loss is at most the loss of the structure, up to rounding.

    >>> import numpy as np
    >>> as_good_as(np.array([1.9, 2.0, 2.1]), 2.0)
    [True, True, False]
    """
    found: list[bool] = (losses <= loss + _TIE * abs(loss)).tolist()
    return found


def _counted(n_copies: int) -> str:
    return f"{n_copies:,} scrambled {'copy' if n_copies == 1 else 'copies'}"
