"""Which rows are held back for validation, and where boosting starts from."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_sample_weight

from structent import LabelError, StructentError
from structent.estimators.classes import Classes
from structent.estimators.rows import TrainingRows, held_back, log_prior, row_weights


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


CLASSES = Classes.of(None, np.array(["ash", "oak", "rose"]))
LABELS = np.array([0, 0, 1, 1, 1, 1])
NAMES = CLASSES.values[LABELS]


@pytest.mark.parametrize("class_weight", [None, "balanced", {"ash": 2.0, "oak": 0.5}])
def test_the_weights_are_those_of_scikit_learn(class_weight):
    found = row_weights(None, class_weight, LABELS, CLASSES)
    expected = np.ones(6) if class_weight is None else compute_sample_weight(class_weight, NAMES)
    np.testing.assert_allclose(found, expected)


def test_balanced_classes_have_the_same_total_weight_whatever_their_rows_weigh():
    given = np.array([1.0, 2.0, 1.0, 0.0, 4.0, 1.0])
    balanced = row_weights(given, "balanced", LABELS, CLASSES)
    assert balanced[:2].sum() == pytest.approx(given.sum() / 2)
    assert balanced[2:].sum() == pytest.approx(given.sum() / 2)
    np.testing.assert_allclose(balanced[1] / balanced[0], 2.0)


def test_a_class_without_rows_may_have_a_weight_and_others_none():
    found = row_weights(None, {"rose": 9.0, "oak": 2.0}, LABELS, CLASSES)
    assert found.tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_more_classes_may_be_named_where_all_are():
    weights = {"ash": 1.0, "oak": 2.0, "rose": 3.0, "elm": 4.0}
    assert row_weights(None, weights, LABELS, CLASSES).tolist() == [1, 1, 2, 2, 2, 2]


def test_a_misspelt_class_is_named():
    with pytest.raises(LabelError, match="'aok' is not a class of the structure; did you mean"):
        row_weights(None, {"aok": 2.0}, LABELS, CLASSES)


@pytest.mark.parametrize(
    ("sample_weight", "class_weight", "message"),
    [
        ([1, 1, 1, 1, 1, -1], None, "sample_weight must be finite and not negative, got -1"),
        ([1, 1, 1, 1, 1, np.inf], None, "sample_weight must be finite and not negative, got inf"),
        ([1, 1, 1], None, r"one number for each of the 6 rows, got shape \(3,\)"),
        (np.ones((6, 1)), None, r"one number for each of the 6 rows, got shape \(6, 1\)"),
        (["heavy"] * 6, None, "sample_weight must hold numbers, got list of other values"),
        (np.zeros(6), None, "got weights from 0 to 0"),
        (None, {"ash": -1.0}, "not be negative nor all be zero, got weights from -1 to 1"),
        (None, {"ash": np.inf}, "must be finite, .*, got weights from 1 to inf"),
        (None, {"ash": np.nan}, "must be finite, .*, got weights from nan to nan"),
        ([1e300] * 6, {"ash": 1e300}, "must be finite, .*, got weights from 1e[+]300 to inf"),
        (None, {"ash": 0.0, "oak": 0.0}, "got weights from 0 to 0"),
        (None, "equal", "class_weight must be a dict, 'balanced' or None, got 'equal'"),
        (None, 3, "class_weight must be a dict, 'balanced' or None, got 3"),
    ],
)
def test_wrong_weights_are_refused(sample_weight, class_weight, message):
    with pytest.raises(StructentError, match=message):
        row_weights(sample_weight, class_weight, LABELS, CLASSES)


@pytest.mark.parametrize("weight", [1e-300, 1e300, 1e308])
def test_balanced_weights_of_any_size_are_in_the_same_proportion(weight):
    plain = row_weights(None, "balanced", LABELS, CLASSES)
    found = row_weights(np.full(6, weight), "balanced", LABELS, CLASSES)
    np.testing.assert_allclose(found / weight, plain)


@pytest.mark.parametrize("weight", [1e-300, 1e300, 1e308, 5e-324])
def test_the_start_is_that_of_the_formula_for_weights_of_any_size(weight):
    rows = TrainingRows(np.zeros((20, 1), np.float32), np.arange(20) % 4 // 3, np.full(20, weight))
    totals = [15 * Fraction(weight), 5 * Fraction(weight)]
    half = Fraction(1, 2)
    exact = [float((total + half) / (sum(totals) + 2 * half)) for total in totals]
    found = np.exp(log_prior(rows, Classes.of(None, np.arange(2))))
    np.testing.assert_allclose(found, exact, rtol=1e-12)
