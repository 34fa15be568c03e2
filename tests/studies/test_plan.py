"""The plan follows from the size of the task, and from nothing else."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.studies.models import MODELS
from structent.studies.plan import NONE, Candidate, Size, plan_for, work_of

SIZES = st.builds(Size, st.integers(20, 10**7), st.integers(1, 2000), st.integers(2, 1000))


@given(SIZES, st.sampled_from(MODELS))
def test_every_task_has_six_splits_or_more(size, model):
    plan = plan_for(size, model)
    assert plan.n_splits >= 6
    assert plan.n_copies >= 1
    assert NONE not in plan.candidates
    tried = {candidate.mechanism for candidate in plan.candidates}
    assert tried == ({"both"} if len(plan.candidates) == 1 else {"loss", "parameters", "both"})
    assert plan.n_left_out == 6 - len(plan.candidates)


def test_only_the_largest_tables_try_one_setting():
    assert len(plan_for(Size(50_000, 20, 50), "boosting").candidates) == 3
    assert len(plan_for(Size(100_000, 20, 50), "boosting").candidates) == 1


@given(SIZES, SIZES, st.sampled_from(MODELS))
def test_a_larger_task_never_gets_more(one, other, model):
    small, large = sorted((one, other), key=lambda size: work_of(size, model))
    before, after = plan_for(small, model), plan_for(large, model)
    assert after.n_splits <= before.n_splits
    assert len(after.candidates) <= len(before.candidates)


@given(SIZES, st.sampled_from(MODELS))
def test_only_what_takes_long_is_capped_and_with_room_to_spare(size, model):
    plan = plan_for(size, model)
    if plan.cap is None:
        assert plan.minutes <= 10
    else:
        assert plan.cap >= 2 * plan.minutes


def test_a_structure_that_is_learned_is_validated_by_rows_that_it_has_not_seen():
    for n_rows in (100, 10**5):
        assert not plan_for(Size(n_rows, 5, 10), "boosting", n_learning=5).chooses_on_all


@pytest.mark.parametrize(
    ("candidate", "mechanism"),
    [
        (Candidate(), "none"),
        (Candidate(loss=0.4), "loss"),
        (Candidate(sharing=0.3), "parameters"),
        (Candidate(0.4, 0.6), "both"),
    ],
)
def test_a_mechanism_is_where_the_structure_acts(candidate, mechanism):
    assert candidate.mechanism == mechanism


def test_time_grows_with_the_task():
    minutes = [plan_for(Size(n, 20, 50), "boosting").minutes for n in (10**5, 10**6, 10**7)]
    assert all(before < after for before, after in pairwise(minutes))
