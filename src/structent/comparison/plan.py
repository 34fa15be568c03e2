"""How much of a comparison can be done in the time allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from structent.comparison.result import Plan

# A model with a structure takes more rounds than one without: measured on the weather data.
_LONGER = 1.4
# Time grows a little faster than the rows: more of them want more rounds, too.
_GROWTH = 1.2
FEWEST_FOLDS = 3
FEWEST_ROWS = 1000


def seconds_needed(plan: Plan, seconds_a_fit: float, n_jobs: int) -> float:
    """Return how long a plan takes, given how long a model without structure does."""
    n_structured = len(plan.singleton_weights) * (1 + plan.n_copies)
    a_fold = (1.0 + plan.n_learning + _LONGER * n_structured) * seconds_a_fit
    the_model_to_keep = _LONGER * seconds_a_fit
    return a_fold * plan.n_folds * plan.n_repeats / n_jobs + the_model_to_keep


def seconds_of_rows(n_rows: int, *, probed_rows: int, probed_seconds: float) -> float:
    """Return how long a fit takes on so many rows, given how long it took on fewer."""
    return float(probed_seconds * (n_rows / probed_rows) ** _GROWTH)


def affordable(
    plan: Plan, n_rows: int, budget: float, *, probed_rows: int, probed_seconds: float, n_jobs: int
) -> tuple[Plan, int]:
    """Return the plan that fits into the budget, in seconds, and how many rows it uses.

    Repeats go first, then scrambled copies, candidates and folds; rows go last.

    Examples
    --------
    >>> plan = Plan(5, 2, 2, (0.1, 0.4, 0.7), ())
    >>> cut, n_rows = affordable(
    ...     plan, 1000, 100.0, probed_rows=1000, probed_seconds=1.0, n_jobs=1
    ... )
    >>> cut.n_repeats, cut.n_copies, cut.cuts
    (1, 2, ('1 repeat of the cross-validation instead of 2',))
    """

    def needed(candidate: Plan, rows: int) -> float:
        fit = seconds_of_rows(rows, probed_rows=probed_rows, probed_seconds=probed_seconds)
        return seconds_needed(candidate, fit, n_jobs)

    for shorter in _shorter(plan):
        if needed(plan, n_rows) <= budget:
            return plan, n_rows
        plan = shorter(plan)
    rows = n_rows
    while needed(plan, rows) > budget and rows > FEWEST_ROWS:
        rows = max(FEWEST_ROWS, int(0.9 * rows))
    if rows < n_rows:
        plan = _with_cut(plan, f"{rows:,} rows, drawn at random, instead of {n_rows:,}")
    return plan, rows


def _shorter(plan: Plan) -> list[Callable[[Plan], Plan]]:
    """Return the steps by which a plan gets shorter, those that change it."""
    steps: list[Callable[[Plan], Plan]] = []
    if plan.n_repeats > 1:
        cut = f"1 repeat of the cross-validation instead of {plan.n_repeats}"
        steps.append(lambda p: _with_cut(replace(p, n_repeats=1), cut))
    if plan.n_copies > 1:
        copies = f"1 scrambled copy in each fold instead of {plan.n_copies}"
        steps.append(lambda p: _with_cut(replace(p, n_copies=1), copies))
    if len(plan.singleton_weights) > 1:
        middle = plan.singleton_weights[len(plan.singleton_weights) // 2]
        weights = (
            f"1 candidate for the weight of the singletons, {middle:g}, instead of "
            f"{len(plan.singleton_weights)}"
        )
        steps.append(lambda p: _with_cut(replace(p, singleton_weights=(middle,)), weights))
    if plan.n_folds > FEWEST_FOLDS:
        folds = f"{FEWEST_FOLDS} folds instead of {plan.n_folds}"
        steps.append(lambda p: _with_cut(replace(p, n_folds=FEWEST_FOLDS), folds))
    return steps


def _with_cut(plan: Plan, cut: str) -> Plan:
    return replace(plan, cuts=(*plan.cuts, cut))
