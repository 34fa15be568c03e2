"""Scikit-learn's own models on the same splits: is the model of a comparison any good?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from structent.estimators.columns import CodedTable
from structent.estimators.design import Design
from structent.studies.fitting import Rows

TREES, LINEAR = "HistGradientBoostingClassifier", "LogisticRegression"
_MOST_CATEGORIES = 255  # that scikit-learn's trees can take
_LEAST = np.finfo(np.float64).eps  # scikit-learn's own floor of probabilities in its log loss


def reference_losses(train: Rows, test: Rows) -> dict[str, float]:
    """Return the test log loss of scikit-learn's models with their defaults.

    Only rows of known class count. Tables that are not coded have none.
    """
    if not isinstance(train.features, CodedTable):
        return {}
    train, test = (rows.take(np.flatnonzero(rows.has_class)) for rows in (train, test))
    trees = HistGradientBoostingClassifier(
        categorical_features=_categorical(train.features), random_state=0
    )
    design = Design.of(train.features, np.ones(len(train)))
    matrices = (design.matrix(design.columns.codes(rows.features)) for rows in (train, test))
    return {
        TREES: _loss_of(trees, train.features.codes, train, test.features.codes, test),
        LINEAR: _loss_of(LogisticRegression(), next(matrices), train, next(matrices), test),
    }


def _categorical(table: CodedTable) -> NDArray[np.bool_]:
    """Return which columns are categories that scikit-learn's trees accept."""
    return np.array(
        [
            categories is not None and len(categories) <= _MOST_CATEGORIES
            for categories in table.columns.categories
        ]
    )


def _loss_of(model: Any, features: Any, train: Rows, test_features: Any, test: Rows) -> float:
    """Return the mean log loss of the test rows; a class without training rows gets the floor."""
    # Splits run in parallel: in each of their threads, scikit-learn must use one thread only.
    with threadpool_limits(1, user_api="openmp"):
        model.fit(features, train.coded.codes)
    proba = np.zeros((len(test), len(test.coded.classes)))
    proba[:, model.classes_] = model.predict_proba(test_features)
    of_label = proba[np.arange(len(test)), test.coded.codes]
    return float(-np.log(np.maximum(of_label, _LEAST)).mean())
