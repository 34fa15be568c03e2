"""P-values, against the definitions of the permutation test and of Besag and Clifford."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.studies.significance import as_good_as, p_value_of

ANSWERS = st.lists(st.booleans(), min_size=1, max_size=60)


@given(ANSWERS)
def test_without_stopping_it_is_one_more_than_those_as_good_over_one_more_than_all(as_good):
    found = p_value_of(as_good)
    assert found.value == pytest.approx((1 + as_good.count(True)) / (1 + len(as_good)))
    assert (found.n_drawn, found.is_stopped_early) == (len(as_good), False)


@given(ANSWERS, st.integers(1, 10))
def test_with_stopping_it_is_besag_and_cliffords(as_good, h):
    """G = h at draw l gives h / l, else (g + 1) / n where n - 1 were drawn: their equation 3."""
    found = p_value_of(as_good, stop_after=h)
    reached = [l for l in range(1, len(as_good) + 1) if as_good[:l].count(True) == h]  # noqa: E741
    if reached:
        assert found.value == pytest.approx(h / reached[0])
        assert (found.n_drawn, found.is_stopped_early) == (reached[0], True)
    else:
        assert found.value == pytest.approx((as_good.count(True) + 1) / (len(as_good) + 1))
        assert not found.is_stopped_early


@given(ANSWERS, st.integers(1, 10), st.lists(st.booleans(), max_size=20))
def test_what_comes_after_the_stop_does_not_matter(as_good, h, more):
    found = p_value_of(as_good, stop_after=h)
    if found.is_stopped_early:
        assert p_value_of([*as_good, *more], stop_after=h) == found


@pytest.mark.parametrize("stop_after", [None, 3])
def test_by_chance_alone_p_is_as_low_as_a_in_a_share_of_a(stop_after):
    """All 20 ranks of the structure among 19 copies, in 200 random orders each."""
    rng = np.random.default_rng(0)
    values = []
    for n_better in range(20):
        for _ in range(200):
            as_good = rng.permutation(np.arange(19) < n_better)
            values.append(p_value_of(as_good.tolist(), stop_after=stop_after).value)
    for level in (0.05, 0.1, 0.2, 0.5):
        error = np.sqrt(level * (1 - level) / len(values))
        assert np.mean(np.array(values) <= level + 1e-12) <= level + 3 * error


def test_ties_count_against_the_structure_up_to_rounding():
    assert as_good_as(np.array([0.3, 0.1 + 0.2, 0.31]), 0.3) == [True, True, False]
    assert as_good_as(np.array([0.3]), 0.1 + 0.2) == [True]
