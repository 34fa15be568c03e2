"""The weights of the rows, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from structent import LabelError, StructentError
from structent.estimators.classes import Classes
from structent.estimators.rows import row_weights

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
        ([1, 1, 1, 1, 1, -1], None, "[Nn]egative values"),
        ([1, 1, 1], None, "sample_weight"),
        (None, {"ash": -1.0}, "must not be negative nor all be 0, got weights from -1 to 1"),
        (None, {"ash": 0.0, "oak": 0.0}, "got weights from 0 to 0"),
        (None, "equal", "class_weight must be a dict, 'balanced' or None, got 'equal'"),
        (None, 3, "class_weight must be a dict, 'balanced' or None, got 3"),
    ],
)
def test_wrong_weights_are_refused(sample_weight, class_weight, message):
    with pytest.raises(ValueError, match=message) as error:
        row_weights(sample_weight, class_weight, LABELS, CLASSES)
    assert sample_weight is not None or isinstance(error.value, StructentError)
