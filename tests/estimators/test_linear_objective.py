"""The function that the linear model minimises, against its definition and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array, csr_matrix

from structent import hierarchy, mix, ordinal, trivial
from structent.estimators.linear_objective import (
    LinearObjective,
    PriorOnBlocks,
    gaussian_prior,
    minimum_of,
)
from structent.kernels.layout import Layout
from structent.structure.catalog import months
from structent.structure.similarity import SimilarityFactor
from tests.strategies import random_partitions


@st.composite
def problems(draw):
    structure = draw(random_partitions())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d, k = draw(st.integers(1, 6)), draw(st.integers(1, 4)), structure.n_classes
    features, labels = rng.normal(size=(n, d)), rng.integers(k, size=n)
    return structure, features, labels, rng.uniform(0.1, 3.0, size=n), rng.normal(size=k * (d + 1))


def by_definition(structure, features, labels, row_weights, penalty, parameters):
    k, d = structure.n_classes, features.shape[1]
    coef, intercept = parameters[: k * d].reshape(k, d), parameters[k * d :]
    total = 0.0
    for x, y, row_weight in zip(features, labels, row_weights, strict=True):
        q = np.exp(coef @ x + intercept)
        q /= q.sum()
        for block_of, weight in zip(structure.block_of, structure.weights, strict=True):
            total -= row_weight * weight * np.log(q[block_of == block_of[y]].sum())
    return total / row_weights.sum() + penalty / 2 * (coef**2).sum()


@given(problems(), st.sampled_from([0.0, 0.3]))
def test_the_value_is_that_of_the_definition(problem, penalty):
    structure, *rows, parameters = problem
    objective = LinearObjective(*rows, Layout.of(structure), penalty=penalty)
    value, _ = objective(parameters)
    expected = by_definition(structure, *rows, penalty, parameters)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("prior", [None, gaussian_prior(months())])
@pytest.mark.parametrize("of_rows", [np.asarray, csr_array])
def test_rows_in_many_parts_and_threads_give_the_same(monkeypatch, of_rows, prior):
    rng = np.random.default_rng(0)
    rows = of_rows(rng.normal(size=(203, 3))), rng.integers(12, size=203), rng.uniform(size=203)
    whole = LinearObjective(*rows, Layout.of(months()), penalty=0.3, prior=prior)
    parameters = rng.normal(size=whole.n_parameters)
    value, gradient = whole(parameters)
    monkeypatch.setattr("structent.estimators.linear_objective._MOST_LOGITS", 12 * 7)
    parts = LinearObjective(*rows, Layout.of(months()), penalty=0.3, prior=prior)
    found = []
    for parts.n_threads in (1, 3):
        found.append(parts(parameters))
        assert found[-1][0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(found[-1][1], gradient, rtol=1e-11, atol=1e-15)
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


@given(problems(), st.sampled_from([0.0, 0.3, 5.0]))
def test_the_coefficients_of_parameters_are_those_of_the_definition(problem, penalty):
    structure, *rows, parameters = problem
    objective = LinearObjective(*rows, Layout.of(structure), penalty=penalty)
    found = np.concatenate([part.ravel() for part in objective.split(parameters)])
    value, _ = objective(parameters)
    expected = by_definition(structure, *rows, penalty, found)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-12)
    again = objective.joined(*objective.split(parameters))
    np.testing.assert_allclose(again, parameters, rtol=1e-13)


@given(problems(), st.sampled_from([0.0, 0.3, 5.0]))
def test_the_gradient_is_that_of_finite_differences(problem, penalty):
    structure, *rows, parameters = problem
    objective = LinearObjective(*rows, Layout.of(structure), penalty=penalty)
    _, gradient = objective(parameters)
    slopes = approx_fprime(parameters, lambda p: objective(p)[0], 1e-7)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_features_give_what_dense_ones_give(kind, dtype):
    rng = np.random.default_rng(0)
    features = np.where(rng.random((40, 7)) < 0.3, rng.normal(size=(40, 7)), 0.0).astype(dtype)
    rows = rng.integers(12, size=40), rng.uniform(size=40)
    layout, parameters = Layout.of(months()), rng.normal(size=12 * 8)
    dense = LinearObjective(features, *rows, layout, penalty=0.1)(parameters)
    sparse = LinearObjective(kind(features), *rows, layout, penalty=0.1)(parameters)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for found, expected in zip(sparse, dense, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_float32_features_give_the_float64_value_and_gradient_to_single_precision():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(50, 9)).astype(np.float32), rng.integers(12, size=50)
    layout, parameters = Layout.of(months()), rng.normal(size=12 * 10)
    single = LinearObjective(features, labels, np.ones(50), layout, penalty=0.1)(parameters)
    double = LinearObjective(features.astype(float), labels, np.ones(50), layout, penalty=0.1)(
        parameters
    )
    assert single[1].dtype == np.float64
    np.testing.assert_allclose(single[0], double[0], rtol=1e-6)
    np.testing.assert_allclose(single[1], double[1], rtol=1e-5, atol=1e-6)


def test_a_block_whose_probability_underflows_keeps_its_loss_and_gradient():
    # Logits (0, log 3, 2000) for the class "a": the block {a, b} has probability 4 exp(-2000).
    structure = hierarchy({"a": ("x",), "b": ("x",), "c": ("y",)}, weights=[1.0, 0.0])
    objective = LinearObjective(
        np.ones((1, 1)), np.array([0]), np.ones(1), Layout.of(structure), penalty=0.0
    )
    value, gradient = objective(np.array([0.0, np.log(3.0), 2000.0, 0.0, 0.0, 0.0]))
    assert value == pytest.approx(2000.0 - np.log(4.0))
    np.testing.assert_allclose(gradient, 2 * [-0.25, -0.75, 1.0], atol=1e-12)


# With a prior


def priors_of(structure):
    """The prior in both kinds of coordinates, whatever the number of classes."""
    return gaussian_prior(structure), PriorOnBlocks(SimilarityFactor.of(structure))


@given(problems(), st.sampled_from([0.01, 0.3]))
def test_with_a_prior_the_penalty_is_that_of_the_inverse_similarity(problem, penalty):
    structure, *rows, parameters = problem
    structure = mix([structure, trivial(structure.classes)], [0.6, 0.4])
    k, d = structure.n_classes, rows[0].shape[1]
    coef, intercept = parameters[: k * d].reshape(k, d), parameters[k * d :]
    expected = by_definition(structure, *rows, 0.0, parameters)
    inverse = np.linalg.inv(structure.similarity())
    expected += penalty / 2 * np.trace(coef.T @ inverse @ coef)
    for prior in priors_of(structure):
        objective = LinearObjective(*rows, Layout.of(structure), penalty=penalty, prior=prior)
        at = objective.joined(coef, intercept)
        assert at.shape == (objective.n_parameters,)
        assert objective(at)[0] == pytest.approx(expected, rel=1e-9)
        for found, given_part in zip(objective.split(at), (coef, intercept), strict=True):
            np.testing.assert_allclose(found, given_part, atol=1e-9)


@given(problems(), st.sampled_from([0.0, 0.3]), st.integers(0, 9))
def test_with_a_prior_the_gradient_is_that_of_finite_differences(problem, penalty, seed):
    structure, *rows, _ = problem
    for prior in priors_of(structure):
        objective = LinearObjective(*rows, Layout.of(structure), penalty=penalty, prior=prior)
        at = np.random.default_rng(seed).normal(size=objective.n_parameters)
        slopes = approx_fprime(at, lambda p, f=objective: f(p)[0], 1e-7)
        np.testing.assert_allclose(objective(at)[1], slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("singleton_weight", [0.0, 0.3])
def test_eigenvectors_and_blocks_have_the_same_minimum(singleton_weight):
    # Without singletons the similarity is singular: both stay within its range.
    rng = np.random.default_rng(0)
    structure = ordinal(range(6), singleton_weight)
    rows = rng.normal(size=(50, 3)), rng.integers(6, size=50), np.ones(50)
    found = []
    for prior in priors_of(structure):
        objective = LinearObjective(*rows, Layout.of(trivial(range(6))), penalty=0.05, prior=prior)
        start = np.zeros(objective.n_parameters)
        minimum = minimum_of(objective, start, tol=1e-9, max_iter=5000)
        found.append(np.column_stack(objective.split(minimum.parameters)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_the_prior_of_singletons_leaves_the_parameters_as_they_are():
    coordinates = gaussian_prior(trivial(range(4))).coordinates(0.3, 2.0)
    np.testing.assert_allclose(np.abs(coordinates.matrix), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(coordinates.penalties, 1.0)
