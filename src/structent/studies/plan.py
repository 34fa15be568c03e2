"""How much a comparison does: it follows from the size of the task, never from a clock.

So the same question has the same answer on every machine. Time can only end a comparison early, and
then it says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

FEWEST_FOLDS = 3


class Candidate(NamedTuple):
    """How much structure a model has, and where.

    Attributes
    ----------
    loss
        The weight of the singletons in the loss; 1 is the plain loss.
    sharing
        How much the parameters of a class share with those of its relatives, from 0 to below 1: the
        ``leaf_smoothing`` of boosted trees, or 1 minus the ``prior`` of a linear model.
    """

    loss: float = 1.0
    sharing: float = 0.0

    @property
    def mechanism(self) -> str:
        """Where the structure acts.

        Examples
        --------
        >>> Candidate(0.4, 0.6).mechanism, Candidate().mechanism
        ('both', 'none')
        """
        if self.loss < 1:
            return "both" if self.sharing > 0 else "loss"
        return "parameters" if self.sharing > 0 else "none"


NONE = Candidate()
# Chosen from the settings that won most often in docs/results/prior.md.
_MANY = (
    Candidate(loss=0.4), Candidate(loss=0.1), Candidate(sharing=0.3), Candidate(sharing=0.6),
    Candidate(0.4, 0.6), Candidate(0.1, 0.8),
)  # fmt: skip
_FEW = (Candidate(loss=0.4), Candidate(sharing=0.3), Candidate(0.4, 0.6))
_ONE = (Candidate(0.4, 0.6),)  # a fit of the largest tables takes a minute


@dataclass(frozen=True)
class Plan:
    """How much is done.

    Attributes
    ----------
    n_folds, n_repeats
        Cross-validation, repeated with other folds: together the splits into training and test
        rows.
    n_copies
        The scrambled copies of the structure in each split.
    n_parts
        How many parts the training rows of a split are divided into. If ``chooses_on_all``, each
        part validates models of the others, otherwise only the first one does.
    chooses_on_all
        Whether every training row validates.
    candidates
        What is tried beside "no structure".
    n_references
        In how many splits scikit-learn's own models are fitted, for comparison.
    minutes
        The rough time on two cores.
    n_learning
        The models trained in each split to learn the structure; none if it is given.
    """

    n_folds: int
    n_repeats: int
    n_copies: int
    n_parts: int
    chooses_on_all: bool
    candidates: tuple[Candidate, ...]
    n_references: int
    minutes: float = 0.0
    n_learning: int = 0

    @property
    def cap(self) -> float | None:
        """The minutes after which a comparison ends if no budget is given; None for no limit.

        Examples
        --------
        >>> plan_for(Size(1000, 4, 12), "boosting").cap is None
        True
        """
        if self.minutes <= _MINUTES_WITHOUT_CAP:
            return None
        return _MINUTES_OF_A_STEP * ceil(_CAP_FACTOR * self.minutes / _MINUTES_OF_A_STEP)

    @property
    def n_left_out(self) -> int:
        """How many settings of the structure are not tried, because the task is large."""
        return len(_MANY) - len(self.candidates)

    @property
    def n_splits(self) -> int:
        """The splits into training and test rows."""
        return self.n_folds * self.n_repeats

    @property
    def cross_validation(self) -> str:
        """The folds and their repeats in words."""
        return shown_folds(self.n_folds, self.n_repeats)


def shown_folds(n_folds: int, n_repeats: int) -> str:
    """Return folds and repeats in the words of every report.

    Examples
    --------
    >>> shown_folds(5, 2), shown_folds(3, 1)
    ('5 folds x 2 repeats', '3 folds')
    """
    return f"{n_folds} folds" if n_repeats == 1 else f"{n_folds} folds x {n_repeats} repeats"


class Size(NamedTuple):
    """The size of a task: its rows, their columns as the model sees them, and the classes."""

    n_rows: int
    n_columns: int
    n_classes: int


class _Tier(NamedTuple):
    """What is done for tasks whose work is at most ``most``."""

    most: float
    n_folds: int
    n_repeats: int
    n_parts: int
    chooses_on_all: bool
    candidates: tuple[Candidate, ...]
    n_references: int


# Work is the count of numbers visited in one round of boosting, or in one step of a linear fit.
_OF_TREES = (
    _Tier(5e3, 5, 4, 3, True, _MANY, 2),  # a seventh of so few rows could not choose
    _Tier(4e4, 5, 3, 7, False, _MANY, 1),
    _Tier(2e6, 5, 2, 7, False, _MANY, 1),
    _Tier(5e6, 6, 1, 7, False, _FEW, 1),
    _Tier(float("inf"), 6, 1, 7, False, _ONE, 1),
)
_OF_LINEAR = (
    _Tier(2e4, 5, 4, 3, True, _MANY, 2),
    _Tier(5e5, 5, 4, 7, False, _MANY, 1),
    _Tier(3e7, 5, 2, 7, False, _MANY, 1),
    _Tier(float("inf"), 6, 1, 7, False, _FEW, 1),
)
TIERS = {"boosting": _OF_TREES, "linear": _OF_LINEAR}
# Seconds of one fit on one core: a constant, and a time per number visited. Boosted trees take from
# a third of this to twice as long, because the number of rounds depends on the data.
_FIT_SECONDS = {"boosting": (0.02, 4e-6), "linear": (0.02, 3e-8)}
_CORES = 2
_PARTS_OF_ONE = 7
# A longer comparison ends after twice its expected time, rounded up.
_MINUTES_WITHOUT_CAP, _CAP_FACTOR, _MINUTES_OF_A_STEP = 10.0, 2.0, 5.0


def work_of(size: Size, model: str) -> float:
    """Return how much there is to do in one round or step."""
    if model == "linear":
        return float(size.n_rows) * size.n_columns * size.n_classes
    return float(size.n_rows) * (size.n_columns + size.n_classes)


def plan_for(size: Size, model: str, *, n_learning: int = 0) -> Plan:
    """Return what is done for a task of this size with boosted trees or a linear model.

    Examples
    --------
    >>> plan_for(Size(1000, 4, 12), "boosting").cross_validation
    '5 folds x 3 repeats'
    >>> plan_for(Size(100_000, 20, 50), "boosting").cross_validation
    '6 folds'
    """
    work = work_of(size, model)
    tier = next(tier for tier in TIERS[model] if work <= tier.most)
    # A structure that is learned must be validated by rows that it has not seen: one part of them.
    n_parts, on_all = (_PARTS_OF_ONE, False) if n_learning else (tier.n_parts, tier.chooses_on_all)
    plan = Plan(
        tier.n_folds, tier.n_repeats, 1, n_parts, on_all, tier.candidates, tier.n_references,
        n_learning=n_learning,
    )  # fmt: skip
    return with_minutes(plan, size, model)


def with_minutes(plan: Plan, size: Size, model: str) -> Plan:
    """Return the plan with the time that it takes on two cores, roughly."""
    constant, per_number = _FIT_SECONDS[model]
    a_fit = constant + per_number * work_of(size, model)
    n_validations = plan.n_parts if plan.chooses_on_all else 1
    arms = 1 + plan.n_copies
    in_a_split = n_validations * (3 + arms * len(plan.candidates)) + 1 + arms + plan.n_learning
    return replace(plan, minutes=in_a_split * plan.n_splits * a_fit / _CORES / 60)
