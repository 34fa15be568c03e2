"""Compiled L-BFGS, against the objective in NumPy and SciPy's L-BFGS."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from structent import StructuredLogisticRegression, hierarchy, ordinal, trivial
from structent.estimators import lbfgs, linear_objective
from structent.estimators.linear_objective import LinearObjective, gaussian_prior, minimum_of
from structent.kernels import cpu
from structent.kernels.layout import Layout
from structent.structure.catalog import months
from tests.strategies import random_partitions


@st.composite
def objectives(draw, structures, dtype=np.float64):
    structure = draw(structures)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.integers(2, 40)), draw(st.integers(1, 4)), structure.n_classes
    related = ordinal(range(k), singleton_weight=0.3) if k > 1 else trivial(range(k))
    prior = draw(st.sampled_from([None, trivial(range(k)), related]))
    return LinearObjective(
        rng.normal(size=(n, d)).astype(dtype), rng.integers(k, size=n),
        rng.uniform(0.1, 3.0, size=n), Layout.of(structure),
        penalty=draw(st.sampled_from([0.01, 0.5, 20.0])),
        prior=None if prior is None else gaussian_prior(prior),
    ), rng  # fmt: skip


def gradient_at(objective, x):
    gradient = np.empty(len(x))
    lbfgs.minimise(objective.small, objective.shape[0], x.copy(), gradient, 0.0, 0.0, 0)
    return gradient


@given(objectives(random_partitions()))
def test_the_gradient_is_that_of_the_objective(problem):
    objective, rng = problem
    x = rng.normal(size=objective.n_parameters)
    expected = objective(x)[1]
    np.testing.assert_allclose(gradient_at(objective, x), expected, rtol=1e-10, atol=1e-11)


@given(objectives(random_partitions(), np.float32))
def test_float32_gives_the_gradient_to_single_precision(problem):
    objective, rng = problem
    x = rng.normal(size=objective.n_parameters)
    np.testing.assert_allclose(gradient_at(objective, x), objective(x)[1], rtol=1e-4, atol=1e-5)


@settings(deadline=None)
@given(objectives(st.integers(2, 6).map(lambda k: trivial(range(k)))))
def test_the_minimum_of_a_convex_problem_is_as_low_as_the_one_that_scipy_finds(problem):
    objective, rng = problem
    start = rng.normal(size=objective.n_parameters)
    found = minimum_of(objective, start, tol=1e-8, max_iter=2000)
    assert found.failure is None
    precise = {"gtol": 1e-9, "ftol": 1e-16, "maxiter": 5000, "maxfun": 10**6}
    expected = minimize(objective, start, jac=True, method="L-BFGS-B", options=precise)
    # Of a class without rows the intercept goes to minus infinity, and the value falls for ever.
    assert objective(found.parameters)[0] <= expected.fun + 1e-7


@settings(deadline=None)
@given(objectives(random_partitions()))
def test_it_ends_lower_where_the_gradient_vanishes(problem):
    objective, rng = problem
    start = rng.normal(size=objective.n_parameters)
    found = minimum_of(objective, start, tol=1e-5, max_iter=2000)
    value, gradient = objective(found.parameters)
    assert found.failure is None
    assert value <= objective(start)[0]
    # Or a step gained no more than rounding.
    assert abs(gradient).max() < 1e-4


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_it_ends_as_soon_as_no_entry_of_the_gradient_exceeds_tol(tol):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)), rng.integers(5, size=300), np.ones(300)
    objective = LinearObjective(*rows, Layout.of(trivial(range(5))), penalty=1e-3)
    found = minimum_of(objective, np.zeros(25), tol=tol, max_iter=500)
    before = minimum_of(objective, np.zeros(25), tol=tol, max_iter=found.n_iter - 1)
    assert abs(objective(found.parameters)[1]).max() <= tol
    assert abs(objective(before.parameters)[1]).max() > tol


def test_a_start_at_the_minimum_stays_there():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2)), rng.integers(3, size=50), np.ones(50)
    objective = LinearObjective(*rows, Layout.of(trivial(range(3))), penalty=0.1)
    found = minimum_of(objective, np.zeros(9), tol=1e-7, max_iter=500)
    again = minimum_of(objective, found.parameters, tol=1e-6, max_iter=500)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.parameters, found.parameters)


@pytest.mark.parametrize("structure", [months(), hierarchy({m: (m % 3,) for m in range(12)})])
@pytest.mark.parametrize("prior", [1.0, 0.4])
def test_a_model_is_the_same_whether_it_is_small_or_not(monkeypatch, structure, prior):
    rng = np.random.default_rng(0)
    codes = rng.integers(12, size=300)
    X = np.column_stack([np.cos(codes), np.sin(codes), codes]) + rng.normal(size=(300, 3))
    y = np.array(structure.classes)[codes]
    model = StructuredLogisticRegression(structure, prior=prior, tol=1e-7, max_iter=3000)
    small = model.fit(X, y).predict_proba(X)
    monkeypatch.setattr(linear_objective, "_FEW_NUMBERS", 0)
    np.testing.assert_allclose(small, model.fit(X, y).predict_proba(X), atol=2e-5)


def test_sparse_rows_and_many_numbers_are_not_small():
    rng = np.random.default_rng(0)
    layout = Layout.of(trivial(range(10)))
    for X, is_small in (
        (rng.normal(size=(100, 5)), True),
        (csr_array(rng.normal(size=(100, 5))), False),
        (rng.normal(size=(1000, 50)), False),
    ):
        n = X.shape[0]
        objective = LinearObjective(X, np.arange(n) % 10, np.ones(n), layout, penalty=1.0)
        assert (objective.small is not None) == is_small


def test_too_few_iterations_are_told():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2)), rng.integers(3, size=50), np.ones(50)
    objective = LinearObjective(*rows, Layout.of(trivial(range(3))), penalty=1e-3)
    found = minimum_of(objective, np.zeros(9), tol=1e-9, max_iter=2)
    assert (found.n_iter, found.failure) == (2, "too many iterations")


def test_the_digest_that_renews_the_cache_is_that_of_the_file():
    digest = hashlib.sha256(Path(cpu.__file__).read_bytes()).hexdigest()[:16]
    assert digest == lbfgs.DIGEST_OF_CPU
