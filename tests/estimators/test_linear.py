"""Logistic regression under the structured loss, against scikit-learn's and the definition."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from structent import (
    LabelError,
    StructentError,
    StructureError,
    trivial,
)
from structent.estimators import linear_objective
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure.catalog import months
from tests.estimators.problems import PLANTS, planted_problem, rows_of

TIGHT = {"tol": 1e-8, "max_iter": 5000}
# As of scikit-learn's LogisticRegressionCV: a row of weight two is in one fold, two rows in two.
BY_FOLDS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "folds are dealt row by row"
    for kind in ("dense", "sparse")
}


# scikit-learn's own checks. They allow five iterations, of which the model warns.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [StructuredLogisticRegression(), StructuredLogisticRegression(prior="auto", random_state=0)],
    expected_failed_checks=lambda model: BY_FOLDS if model.prior == "auto" else {},
)
def test_the_model_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# Without structure


@pytest.mark.parametrize("n_classes", [3, 7])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.3, 1: 2.0}])
def test_without_structure_the_coefficients_are_those_of_scikit_learn(n_classes, class_weight):
    features, labels = rows_of(range(n_classes), n=200)
    sample_weight = np.random.default_rng(1).uniform(0.1, 2.0, size=200)
    arguments = {"C": 0.7, "class_weight": class_weight, **TIGHT}
    peer = LogisticRegression(**arguments).fit(features, labels, sample_weight)
    for structure in (None, trivial(range(n_classes)), trivial(range(n_classes)[::-1])):
        model = StructuredLogisticRegression(structure, **arguments)
        model.fit(features, labels, sample_weight)
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)
        np.testing.assert_array_equal(model.classes_, peer.classes_)


@pytest.mark.parametrize("structure", [None, trivial(["yes", "no"])])
def test_with_two_classes_the_difference_of_coefficients_is_scikit_learns(structure):
    features, labels = rows_of(["yes", "no"], n=200)
    peer = LogisticRegression(C=0.3, **TIGHT).fit(features, labels)
    model = StructuredLogisticRegression(structure, C=0.3, **TIGHT).fit(features, labels)
    assert model.coef_.shape == (2, 4)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], peer.coef_[0], atol=1e-5)
    np.testing.assert_allclose(
        model.decision_function(features), peer.decision_function(features), atol=1e-5
    )
    np.testing.assert_allclose(
        model.predict_proba(features), peer.predict_proba(features), atol=1e-6
    )


def test_an_infinite_c_means_no_penalty():
    features, labels = rows_of(range(3), n=200)
    peer = LogisticRegression(C=np.inf, **TIGHT).fit(features, labels)
    model = StructuredLogisticRegression(C=np.inf, **TIGHT).fit(features, labels)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


def test_tol_means_what_it_means_in_scikit_learn(monkeypatch):
    features, labels = rows_of(range(5), n=300)
    monkeypatch.setattr(linear_objective, "_FEW_NUMBERS", 0)  # both use SciPy's L-BFGS
    for tol in (1e-2, 1e-4, 1e-6):
        peer = LogisticRegression(tol=tol).fit(features, labels)
        assert StructuredLogisticRegression(tol=tol).fit(features, labels).n_iter_ == peer.n_iter_


# With a structure


def objective_by_definition(structure, c, features, labels, sample_weight, parameters):
    """The formula of the docstring, row by row; parameters are in the order of the structure."""
    k, d = structure.n_classes, features.shape[1]
    coef, intercept = parameters[: k * d].reshape(k, d), parameters[k * d :]
    total = 0.5 * (coef**2).sum()
    for x, label, weight_of_row in zip(features, labels, sample_weight, strict=True):
        y, q = structure.classes.index(label), np.exp(coef @ x + intercept)
        q /= q.sum()
        for block_of, weight in zip(structure.block_of, structure.weights, strict=True):
            total -= c * weight_of_row * weight * np.log(q[block_of == block_of[y]].sum())
    return total


@pytest.mark.parametrize("c", [0.2, 3.0])
def test_the_fit_is_a_stationary_point_of_the_definition_and_below_where_it_started(c):
    features, labels = rows_of(PLANTS.classes, n=50)
    sample_weight = np.random.default_rng(1).uniform(0.5, 2.0, size=50)
    model = StructuredLogisticRegression(PLANTS, C=c, **TIGHT)
    model.fit(features, labels.tolist(), sample_weight)

    def objective(parameters):
        return objective_by_definition(
            PLANTS, c, features, labels.tolist(), sample_weight, parameters
        )

    places = [model.classes_.tolist().index(label) for label in PLANTS.classes]
    fitted = np.concatenate([model.coef_[places].ravel(), model.intercept_[places]])
    slopes = approx_fprime(fitted, objective, 1e-6)
    np.testing.assert_allclose(slopes, 0.0, atol=1e-3)
    assert objective(fitted) < objective(np.zeros_like(fitted))


@given(st.permutations(range(1, 13)), st.integers(0, 5))
@settings(max_examples=10)
def test_the_order_of_the_structures_classes_does_not_matter(order, seed):
    features, labels = rows_of(range(1, 13), seed=seed)
    model = StructuredLogisticRegression(months(), **TIGHT).fit(features, labels)
    other = StructuredLogisticRegression(months().restrict(order), **TIGHT).fit(features, labels)
    assert other.classes_.tolist() == list(range(1, 13))
    np.testing.assert_allclose(
        model.predict_proba(features), other.predict_proba(features), rtol=0, atol=1e-7
    )


def test_a_row_of_weight_two_counts_as_two_rows():
    features, labels = rows_of(PLANTS.classes)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = StructuredLogisticRegression(PLANTS, **TIGHT).fit(features, labels, weights)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    repeated = StructuredLogisticRegression(PLANTS, **TIGHT).fit(features[twice], labels[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


def test_a_class_weight_is_a_weight_of_the_rows_of_the_class():
    features, labels = rows_of(PLANTS.classes)
    by_class = StructuredLogisticRegression(PLANTS, class_weight={"oak": 3.0}, **TIGHT)
    by_row = StructuredLogisticRegression(PLANTS, **TIGHT)
    by_class.fit(features, labels)
    by_row.fit(features, labels, np.where(labels == "oak", 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-6)


def test_two_fits_give_the_same_bits():
    structure, features, labels = planted_problem(80)
    first, second = (
        StructuredLogisticRegression(structure).fit(features, labels) for _ in range(2)
    )
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.intercept_, second.intercept_)


def test_the_weights_used_are_reported():
    features, labels = rows_of(PLANTS.classes)
    assert StructuredLogisticRegression().fit(features, labels).weights_.tolist() == [1.0]
    own = StructuredLogisticRegression(PLANTS).fit(features, labels)
    assert own.weights_.tolist() == [0.4, 0.6]
    given = StructuredLogisticRegression(PLANTS, weights=[0.1, 0.9]).fit(features, labels)
    assert given.weights_.tolist() == [0.1, 0.9]
    assert not np.allclose(own.coef_, given.coef_, atol=1e-3)


def test_a_class_without_rows_has_a_column_and_little_probability():
    features, labels = rows_of(["rose", "oak"])
    model = StructuredLogisticRegression(PLANTS).fit(features, labels)
    assert model.classes_.tolist() == ["ash", "oak", "rose"]
    assert model.coef_.shape == (3, 4)
    assert model.predict_proba(features)[:, 0].max() < 0.05
    assert set(model.predict(features)) == {"rose", "oak"}


# What comes out


def test_probabilities_logarithms_logits_and_classes_agree():
    features, labels = rows_of(range(1, 13))
    model = StructuredLogisticRegression(months()).fit(features, labels)
    logits = features @ model.coef_.T + model.intercept_
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.decision_function(features), logits)
    np.testing.assert_allclose(model.predict_proba(features), proba)
    np.testing.assert_allclose(model.predict_log_proba(features), np.log(proba))
    assert model.predict(features).tolist() == [model.classes_[row.argmax()] for row in proba]


def test_logarithms_are_exact_where_probabilities_underflow():
    model = StructuredLogisticRegression().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    far = model.predict_log_proba([[1e6]])[0]
    slopes = (model.coef_ - model.coef_[2])[:, 0]
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far[:2], 1e6 * slopes[:2], rtol=1e-5)


def test_a_level_is_predicted_by_the_sum_of_its_classes():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS).fit(features, labels)
    proba = dict(zip(model.classes_.tolist(), model.predict_proba(features).T, strict=True))
    trees_win = proba["oak"] + proba["ash"] > proba["rose"]
    expected = np.where(trees_win, "tree", "flower")
    assert 0 < trees_win.sum() < 60
    assert model.predict_level(features, "kind").tolist() == expected.tolist()
    assert model.predict_level(features, "class").tolist() == model.predict(features).tolist()


def test_levels_that_are_not_there_are_refused():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS).fit(features, labels)
    with pytest.raises(LabelError, match="'kinds' is not a level of the structure"):
        model.predict_level(features, "kinds")
    plain = StructuredLogisticRegression().fit(features, labels)
    with pytest.raises(StructureError, match="predict_level needs a model with a structure"):
        plain.predict_level(features, "class")


# The optimiser


def test_too_few_iterations_are_warned_of():
    structure, features, labels = planted_problem(80)
    model = StructuredLogisticRegression(structure, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"did not converge to tol=0\.0001 in 2 iterations"):
        model.fit(features, labels)
    assert model.n_iter_ == 2


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    structure, features, labels = planted_problem(80)
    cold = StructuredLogisticRegression(structure).fit(features, labels)
    warm = StructuredLogisticRegression(structure, warm_start=True).fit(features, labels)
    coef = warm.coef_
    assert warm.n_iter_ == cold.n_iter_ > 3
    warm.fit(features, labels)
    assert warm.n_iter_ <= 1
    np.testing.assert_allclose(warm.coef_, coef, atol=1e-3)


def test_a_warm_start_with_other_features_or_classes_is_refused():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(warm_start=True).fit(features, labels)
    with pytest.raises(StructentError, match="its 4 features, got others; set warm_start=False"):
        model.fit(features[:, :2], labels)
    with pytest.raises(StructentError, match="warm_start needs the classes of the last fit"):
        model.fit(features, np.where(labels == "oak", "elm", labels))


# With the rest of scikit-learn


def test_a_fitted_model_survives_pickling_and_a_clone_is_unfitted():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS, C=0.5).fit(features, labels)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    assert np.array_equal(again.predict_proba(features), model.predict_proba(features))
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "coef_")


def test_it_works_in_pipelines_searches_and_calibration():
    structure, features, labels = planted_problem(120, n_classes=6)
    pipeline = make_pipeline(StandardScaler(), StructuredLogisticRegression(structure))
    grid = {"structuredlogisticregression__C": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_log_loss").fit(features, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(cross_val_predict(pipeline, features, labels, cv=2)) <= set(structure.classes)
    calibrated = CalibratedClassifierCV(StructuredLogisticRegression(structure), cv=2)
    assert calibrated.fit(features, labels).score(features, labels) > 0.4


def test_probabilities_can_be_cross_validated_where_classes_are_numbered_from_0():
    # For probabilities scikit-learn hands the places of the labels, not the labels, to the model.
    structure, features, labels = planted_problem(120, n_classes=6)
    numbered = structure.relabel({label: i for i, label in enumerate(structure.classes)})
    model = StructuredLogisticRegression(numbered)
    codes = structure.encode(labels)
    proba = cross_val_predict(model, features, codes, cv=2, method="predict_proba")
    assert (proba.argmax(axis=1) == codes).mean() > 0.4
