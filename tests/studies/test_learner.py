"""The meta-estimator: scikit-learn's own checks, and that it is the estimator with a structure."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from structent import (
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureLearner,
    learn_structure,
)
from tests.studies.planted import Planted

FEW = {"cv": 3, "n_levels": (1,), "singleton_weights": (0.4,)}
FAILS = {"check_estimators_nan_inf": "its labels are floats, which no structure can hold"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [StructureLearner(StructuredLogisticRegression(), **FEW)],
    expected_failed_checks=lambda _: FAILS,
)
def test_the_learner_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X, codes = Planted.of((3, 2), (1.5, 0.3), rng, n_dimensions=8).rows(12, rng)
    return X, np.array(list("uvwxyz"))[codes]


def test_it_is_the_estimator_with_the_learned_structure(planted):
    X, y = planted
    linear = StructuredLogisticRegression()
    model = StructureLearner(linear, cv=3, random_state=0).fit(X, y)
    structure = learn_structure(linear, X, y, cv=3, random_state=0)
    assert model.structure_ == structure
    assert model.structure_.levels["level 1"][0].blocks == (("u", "v"), ("w", "x"), ("y", "z"))
    alone = StructuredLogisticRegression(structure).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert linear.structure is None


def test_it_works_within_pipelines_searches_and_around_a_pipeline(planted):
    X, y = planted
    around = StructureLearner(
        make_pipeline(StandardScaler(), StructuredLogisticRegression()), **FEW, random_state=0
    )
    search = GridSearchCV(
        around, {"estimator__structuredlogisticregression__C": [0.1, 1.0]}, cv=2
    ).fit(X, y)
    assert search.best_estimator_.structure_.n_classes == 6
    within = make_pipeline(StandardScaler(), clone(around))
    assert cross_val_score(within, X, y, cv=2, scoring="neg_log_loss").mean() > -np.log(6)


@pytest.mark.requires("xgboost")
def test_boosted_trees_take_a_table_and_keep_its_names(planted):
    X, y = planted
    table = pd.DataFrame(X, columns=[f"feature {i}" for i in range(8)])
    trees = StructuredBoostingClassifier(
        n_estimators=10, learning_rate=0.3, random_state=0, n_jobs=1
    )
    model = StructureLearner(trees, **FEW, random_state=0).fit(table, y)
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert model.predict(table).shape == (72,)


def test_before_it_is_fitted_it_says_so(planted):
    model = StructureLearner(StructuredLogisticRegression())
    with pytest.raises(NotFittedError):
        model.predict(planted[0])
    with pytest.raises(NotFittedError):
        model.predict_proba(planted[0])
    assert not hasattr(model, "n_features_in_")
