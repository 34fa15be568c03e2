"""Which rows are held back for validation, and where boosting starts from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structent.estimators.classes import Classes
from structent.estimators.rows import TrainingRows, held_back, log_prior


@given(
    st.lists(st.integers(0, 5), min_size=12, max_size=200), st.floats(0.05, 0.5), st.integers(0, 9)
)
def test_the_fraction_is_held_back_of_every_class_alike(labels, fraction, seed):
    labels = np.array([*labels, 0, 0])
    held = held_back(labels, fraction, np.random.RandomState(seed))
    spare = len(labels) - len(set(labels.tolist()))
    assert held.sum() == min(max(1, round(fraction * len(labels))), spare)
    for label in set(labels.tolist()):
        of_class = labels == label
        assert not held[of_class].all()
        # As many as fall to its spare rows, give or take one.
        wanted = (of_class.sum() - 1) * held.sum() / spare
        assert abs(held[of_class].sum() - wanted) <= 1


def test_other_seeds_hold_back_other_rows():
    labels = np.arange(100) % 4
    first, again, other = (held_back(labels, 0.2, np.random.RandomState(s)) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_start_is_the_smoothed_and_weighted_prior():
    rows = TrainingRows(np.zeros((3, 1), np.float32), np.array([0, 0, 2]), np.array([1.0, 2, 5]))
    found = np.exp(log_prior(rows, Classes.of(None, np.arange(3))))
    np.testing.assert_allclose(found, [3.5 / 9.5, 0.5 / 9.5, 5.5 / 9.5])
