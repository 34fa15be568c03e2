"""What is left out where time is short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.studies.compare import FEWEST_ROWS, affordable, seconds_needed, seconds_of_rows
from structent.studies.comparison import Plan

WHOLE = Plan(5, 2, 2, (0.1, 0.4, 0.7), ())


def planned(budget, *, n_rows=4000, seconds=1.0):
    return affordable(WHOLE, n_rows, budget, probed_rows=4000, probed_seconds=seconds, n_jobs=2)


def test_with_time_enough_nothing_is_cut():
    assert planned(1e9) == (WHOLE, 4000)


@given(st.floats(0.01, 1000), st.floats(0.01, 60), st.integers(1000, 10**6))
def test_the_plan_fits_into_the_budget_or_is_the_least_there_is(budget, seconds, n_rows):
    plan, rows = planned(budget, n_rows=n_rows, seconds=seconds)
    fit = seconds_of_rows(rows, probed_rows=4000, probed_seconds=seconds)
    is_least = (plan.n_folds, plan.n_repeats, plan.n_copies, len(plan.singleton_weights)) == (
        3, 1, 1, 1
    )  # fmt: skip
    assert seconds_needed(plan, fit, 2) <= budget or (is_least and rows == FEWEST_ROWS)
    assert rows == n_rows or is_least
    assert bool(plan.cuts) == (plan != WHOLE)


def test_everything_that_is_cut_is_said():
    plan, rows = planned(1.0, n_rows=100_000)
    assert plan.cuts == (
        "1 repeat of the cross-validation instead of 2",
        "1 scrambled copy in each fold instead of 2",
        "1 candidate for the weight of the singletons, 0.4, instead of 3",
        "3 folds instead of 5",
        f"{rows:,} rows, drawn at random, instead of 100,000",
    )
    assert plan.singleton_weights == (0.4,)


def test_time_is_counted_by_fits():
    plan = Plan(5, 1, 2, (0.4,), ())
    # In each of 5 folds a fit without structure, and 3 with one, at 1.4 times its time; then the
    # model to keep.
    assert seconds_needed(plan, 2.0, n_jobs=1) == pytest.approx(5 * 2.0 * (1 + 3 * 1.4) + 2.8)
