"""Folds that spread classes evenly, or keep groups together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structent.estimators.folds import dealt_folds, grouped_folds

LABELS = st.lists(st.integers(0, 4), min_size=3, max_size=60).map(np.array)


@given(LABELS, st.integers(2, 6), st.integers(0, 5))
def test_every_class_and_the_whole_are_spread_evenly(labels, n_folds, seed):
    folds = dealt_folds(labels, n_folds, np.random.RandomState(seed))
    for part in [folds, *(folds[labels == label] for label in set(labels.tolist()))]:
        sizes = np.bincount(part, minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


@given(LABELS, st.integers(2, 6), st.integers(0, 5))
def test_a_group_is_never_split_and_folds_differ_by_one_group_at_most(groups, n_folds, seed):
    folds = grouped_folds(groups, n_folds, np.random.RandomState(seed))
    for group in set(groups.tolist()):
        assert len(set(folds[groups == group].tolist())) == 1
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


def test_another_seed_deals_other_folds():
    labels = np.arange(40) % 4
    first, again, other = (dealt_folds(labels, 4, np.random.RandomState(s)) for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
