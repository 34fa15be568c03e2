"""The out-of-fold confusion, against scikit-learn's cross_val_predict."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structent import LabelError, StructentError, StructuredLogisticRegression, StructureError
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.studies import out_of_fold_confusion
from tests.estimators.problems import PLANTS, rows_of

MODEL = StructuredLogisticRegression(tol=1e-8, max_iter=2000)


def by_scikit_learn(X, y, folds, model=None):
    split = PredefinedSplit(folds)
    model = model or LogisticRegression(tol=1e-8, max_iter=2000)
    proba = cross_val_predict(model, X, y, cv=split, method="predict_proba")
    return np.array([proba[y == label].sum(axis=0) for label in np.unique(y)])


def test_the_confusion_is_that_of_scikit_learns_out_of_fold_probabilities():
    X, y = rows_of(["b", "a", "c"], n=90)
    found = out_of_fold_confusion(MODEL, X, y, cv=4, random_state=7)
    codes = np.unique(y, return_inverse=True)[1]
    folds = dealt_folds(codes, 4, np.random.RandomState(7))
    np.testing.assert_allclose(found, by_scikit_learn(X, y, folds), atol=1e-4)


def test_rows_of_a_group_share_a_fold():
    X, y = rows_of(["a", "b", "c"], n=90)
    groups = np.arange(90) // 3
    found = out_of_fold_confusion(MODEL, X, y, cv=3, groups=groups, random_state=1)
    folds = grouped_folds(groups, 3, np.random.RandomState(1))
    np.testing.assert_allclose(found, by_scikit_learn(X, y, folds), atol=1e-4)


def test_a_pipeline_and_a_sparse_matrix_are_taken_too():
    X, y = rows_of(["a", "b", "c"], n=60)
    pipeline = make_pipeline(StandardScaler(with_mean=False), MODEL)
    dense = out_of_fold_confusion(pipeline, X, y, cv=3, random_state=0)
    sparse = out_of_fold_confusion(pipeline, sp.coo_array(X), y, cv=3, random_state=0)
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_a_class_of_one_row_is_predicted_by_models_that_do_not_know_it():
    X, y = rows_of(["a", "b", "c"], n=60)
    y[y == "c"] = "b"
    y[0] = "c"
    found = out_of_fold_confusion(MODEL, X, y, cv=3, random_state=0)
    np.testing.assert_allclose(found.sum(axis=1), [(y == label).sum() for label in "abc"])
    assert found[2, 2] < 0.05


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"cv": 2}, StructureError, "cv must be between 3 and 30, got 2"),
        ({"groups": [1, 2]}, StructentError, r"each of the 30 rows, got shape \(2,\)"),
        ({"y": ["a"] * 30}, LabelError, "two classes or more"),
        ({"estimator": LogisticRegression()}, StructentError, "with one parameter structure"),
        ({"estimator": StructuredLogisticRegression(PLANTS)}, StructentError, "structure=None"),
        (
            {"estimator": StructuredLogisticRegression(weights="auto")},
            StructentError,
            "weights='auto'",
        ),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    X, y = rows_of(["a", "b", "c"], n=30)
    given = {"estimator": MODEL, "X": X, "y": y, **arguments}
    with pytest.raises(error, match=message):
        out_of_fold_confusion(**given)
