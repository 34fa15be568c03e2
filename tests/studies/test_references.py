"""Scikit-learn's own models beside ours: fitted to the same rows, scored as scikit-learn scores."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from structent import StructuredBoostingClassifier, StructuredLogisticRegression, trivial
from structent.studies.fitting import checked_rows
from structent.studies.references import LINEAR, TREES, reference_losses

RNG = np.random.default_rng(0)
Y = np.array(["ash", "oak", "yew"])[RNG.integers(3, size=150)]
X = RNG.normal(size=(150, 2)) + (Y == "oak")[:, None]
ABOUT = {"estimator": StructuredBoostingClassifier(), "groups": None}


def test_the_losses_are_those_of_scikit_learn():
    rows = checked_rows(X, Y, trivial(["ash", "oak", "yew"]), **ABOUT)
    train, test = rows.take(np.arange(100)), rows.take(np.arange(100, 150))
    found = reference_losses(train, test)
    trees = HistGradientBoostingClassifier(random_state=0).fit(X[:100].astype("f4"), Y[:100])
    expected = log_loss(Y[100:], trees.predict_proba(X[100:].astype("f4")))
    assert found[TREES] == pytest.approx(expected, rel=1e-6)
    scaler = StandardScaler().fit(X[:100])
    linear = LogisticRegression().fit(scaler.transform(X[:100]), Y[:100])
    expected = log_loss(Y[100:], linear.predict_proba(scaler.transform(X[100:])))
    assert found[LINEAR] == pytest.approx(expected, rel=1e-3)


def test_categories_and_missing_values_are_taken():
    table = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    table.loc[::7, "x"] = np.nan
    rows = checked_rows(table, Y, trivial(["ash", "oak", "yew"]), **ABOUT)
    found = reference_losses(rows.take(np.arange(100)), rows.take(np.arange(100, 150)))
    assert all(0 < loss < 3 for loss in found.values())


def test_a_class_without_training_rows_gets_scikit_learns_least_probability():
    rows = checked_rows(X, Y, trivial(["ash", "oak", "yew"]), **ABOUT)
    train = rows.take(np.flatnonzero(Y != "yew"))
    found = reference_losses(train, rows.take(np.flatnonzero(Y == "yew")))
    assert found[LINEAR] == pytest.approx(-np.log(np.finfo(float).eps))


def test_features_that_are_not_coded_have_none():
    model = StructuredLogisticRegression()
    rows = checked_rows(X, Y, trivial(["ash", "oak", "yew"]), estimator=model, groups=None)
    assert reference_losses(rows, rows) == {}
