"""Rows that belong together: whole groups are held back, and share a fold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructuredLogisticRegression, hierarchy
from structent.errors import StructentError
from structent.estimators import weights
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.rows import held_back_groups
from tests.estimators.problems import log_loss, planted_problem

FAST = {"random_state": 0, "n_jobs": 1, "max_depth": 3}


def days(n_days, seed=0):
    """Rows of 20 hours a day that are all but the same, and say little of other days."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n_days)
    weather = 0.4 * np.eye(3, 6)[label] + rng.normal(size=(n_days, 6))
    day = np.repeat(np.arange(n_days), 20)
    features = weather[day] + 0.01 * rng.normal(size=(len(day), 6))
    return features, label[day], day


@given(
    sizes=st.lists(st.integers(1, 30), min_size=2, max_size=40),
    fraction=st.floats(0.05, 0.5),
    seed=st.integers(0, 1000),
)
def test_whole_groups_are_held_back_about_as_many_as_asked(sizes, fraction, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    held = held_back_groups(groups, fraction, np.random.RandomState(seed))
    shares = [held[groups == group].mean() for group in range(len(sizes))]
    assert set(shares) == {0.0, 1.0}
    # A fold may have the rows of its share, and those of one group more.
    most = max(len(groups) / max(2, round(1 / fraction)), len(groups) / len(sizes)) + max(sizes)
    assert held.sum() <= most


@pytest.mark.parametrize(("n_groups", "fraction"), [(1, 0.2), (5, 0.0)])
def test_where_no_group_can_be_held_back_a_sentence_says_so(n_groups, fraction):
    groups = np.arange(20) % n_groups
    with pytest.raises(StructentError, match="leaves no group for validation; give more groups"):
        held_back_groups(groups, fraction, np.random.RandomState(0))


def test_trees_stop_in_time_where_rows_of_a_day_are_alike():
    features, labels, day = days(60)
    test, labels_of_test, _ = days(200, seed=1)
    by_rows = StructuredBoostingClassifier(**FAST).fit(features, labels)
    by_days = StructuredBoostingClassifier(**FAST).fit(features, labels, groups=day)
    assert by_days.best_iteration_ < by_rows.best_iteration_ / 2
    gain = log_loss(by_rows, test, labels_of_test) - log_loss(by_days, test, labels_of_test)
    assert gain > 0.2


def test_names_and_order_of_groups_do_not_matter_but_for_the_draw():
    features, labels, day = days(30)
    numbers = StructuredBoostingClassifier(**FAST).fit(features, labels, groups=day)
    names = np.array([f"day {number:03}" for number in day])
    texts = StructuredBoostingClassifier(**FAST).fit(features, labels, groups=list(names))
    np.testing.assert_array_equal(
        numbers.validation_log_loss_, texts.validation_log_loss_, strict=True
    )


def test_rows_without_weight_are_in_no_group():
    features, labels, day = days(30)
    weight = np.where(day < 20, 1.0, 0.0)
    some = day < 20
    all_rows = StructuredBoostingClassifier(**FAST).fit(features, labels, weight, groups=day)
    kept = StructuredBoostingClassifier(**FAST).fit(
        features[some], labels[some], weight[some], groups=day[some]
    )
    np.testing.assert_array_equal(all_rows.validation_log_loss_, kept.validation_log_loss_)


@pytest.mark.parametrize("chosen", [{"weights": "auto"}, {"prior": "auto", "weights": 1}])
def test_rows_of_one_group_share_a_fold_of_what_is_chosen(monkeypatch, chosen):
    structure, features, labels = planted_problem(120, n_classes=6)
    groups = np.arange(120) // 6
    seen = []
    own = weights.choosing_folds

    def remembered(*arguments):
        folds = own(*arguments)
        seen.extend(folds)
        return folds

    for module in ("weights", "prior"):
        monkeypatch.setattr(f"structent.estimators.{module}.choosing_folds", remembered)
    StructuredLogisticRegression(structure, random_state=0, **chosen).fit(
        features, labels, groups=groups
    )
    assert len(seen) == 3
    for train, held_out in seen:
        assert not set(groups[train]) & set(groups[held_out])


def test_folds_of_trees_pass_the_groups_on(monkeypatch):
    structure, features, labels = planted_problem(120, n_classes=6)
    groups, seen = np.arange(120) // 6, []
    own = StructuredBoostingClassifier.fit

    def remembered(self, X, y, sample_weight=None, eval_set=None, groups=None):
        seen.append(groups)
        return own(self, X, y, sample_weight, eval_set, groups)

    monkeypatch.setattr(StructuredBoostingClassifier, "fit", remembered)
    StructuredBoostingClassifier(structure, weights="auto", n_estimators=3, **FAST).fit(
        features, labels, groups=groups
    )
    assert len(seen) == 13  # four weights in three folds, and the model
    assert all(len(np.unique(of_fold)) < 20 for of_fold in seen[1:])


@pytest.mark.parametrize("model", [StructuredBoostingClassifier, StructuredLogisticRegression])
def test_groups_of_another_length_are_refused(model):
    plants = hierarchy({"oak": ("tree",), "rose": ("flower",)})
    with pytest.raises(StructentError, match="one entry for each of the 4 rows, got shape"):
        model(plants).fit([[0.0], [1.0], [0.1], [0.9]], ["oak", "rose"] * 2, groups=[1, 2])
