"""The readable formulas, against slow float64 loops and finite differences."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import structured_cross_entropy, trivial
from structent.kernels import reference
from tests.kernels.problems import problems


def slow_loss(row, label, structure):
    """The definition, class by class."""
    q = [exp(z - max(row)) for z in row]
    q = [value / sum(q) for value in q]
    total = 0.0
    for partition, weight in zip(structure.partitions, structure.weights, strict=True):
        block = partition.blocks[partition.block_of[label]]
        total -= weight * log(sum(q[structure.classes.index(c)] for c in block))
    return total


def differences(function, row, step):
    """Central finite differences of a function by each entry of a row."""
    shifts = step * np.eye(len(row))
    return np.array([(function(row + s) - function(row - s)) / (2 * step) for s in shifts])


def arguments(structure):
    return structure.block_of, structure.weights


@given(problems())
def test_the_loss_is_the_definition(problem):
    structure, logits, labels = problem
    found = reference.structured_cross_entropy_from_logits(
        logits, labels, *arguments(structure), xp=np
    )
    expected = [slow_loss(row, y, structure) for row, y in zip(logits, labels, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@given(problems())
def test_the_loss_is_the_structured_cross_entropy_of_the_softmax(problem):
    structure, logits, labels = problem
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = structured_cross_entropy(np.eye(structure.n_classes)[labels], q, structure)
    found = reference.structured_cross_entropy_from_logits(
        logits, labels, *arguments(structure), xp=np
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@given(problems(), st.data())
def test_the_loss_of_a_distribution_is_the_mean_of_the_losses_of_its_classes(problem, data):
    structure, logits, _ = problem
    distributions = data.draw(arrays(np.float64, logits.shape, elements=st.floats(0, 2)))
    expected = [
        sum(p * slow_loss(row, y, structure) for y, p in enumerate(target))
        for row, target in zip(logits, distributions, strict=True)
    ]
    found = reference.structured_cross_entropy_of_distributions(
        logits, distributions, *arguments(structure), xp=np
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@given(problems())
def test_the_gradient_is_that_of_finite_differences(problem):
    structure, logits, labels = problem
    found = reference.gradient_from_logits(logits, labels, *arguments(structure), xp=np)
    for row, y, gradient in zip(logits, labels, found, strict=True):
        expected = differences(lambda z, y=y: slow_loss(z, y, structure), row, 1e-5)
        np.testing.assert_allclose(gradient, expected, atol=1e-7)


@given(problems())
def test_the_exact_curvature_is_that_of_finite_differences(problem):
    structure, logits, labels = problem
    found = reference.exact_curvature(logits, labels, *arguments(structure), xp=np)
    for row, y, curvature in zip(logits, labels, found, strict=True):

        def gradient(z, y=y):
            return reference.gradient_from_logits(
                z[None], np.array([y]), *arguments(structure), xp=np
            )[0]

        expected = np.diag(differences(gradient, row, 1e-5))
        np.testing.assert_allclose(curvature, expected, atol=1e-7)


@given(problems())
def test_the_bound_is_above_the_exact_curvature_and_not_negative(problem):
    structure, logits, labels = problem
    bound = reference.bound_curvature(logits, structure.weights, xp=np)
    exact = reference.exact_curvature(logits, labels, *arguments(structure), xp=np)
    assert (bound >= exact - 1e-12).all()
    assert (bound >= 0).all()


@given(problems())
def test_fisher_is_the_mean_of_the_exact_curvature_over_labels_drawn_from_q(problem):
    structure, logits, _ = problem
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = sum(
        q[:, [y]]
        * reference.exact_curvature(logits, np.full(len(logits), y), *arguments(structure), xp=np)
        for y in range(structure.n_classes)
    )
    found = reference.fisher_curvature(logits, *arguments(structure), xp=np)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert (found >= -1e-12).all()


@given(problems())
def test_the_gradient_magnitude_is_at_most_one(problem):
    structure, logits, labels = problem
    found = reference.gradient_magnitude(logits, labels, *arguments(structure), xp=np)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


@given(problems())
def test_the_gradient_of_a_row_sums_to_zero(problem):
    structure, logits, labels = problem
    found = reference.gradient_from_logits(logits, labels, *arguments(structure), xp=np)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)


@given(problems(), st.floats(-1e4, 1e4))
def test_a_constant_added_to_the_logits_changes_nothing(problem, shift):
    structure, logits, labels = problem
    before, after = (
        reference.structured_cross_entropy_from_logits(z, labels, *arguments(structure), xp=np)
        for z in (logits, logits + shift)
    )
    np.testing.assert_allclose(before, after, atol=1e-9)


def test_extreme_logits_stay_exact():
    structure = trivial(range(3))
    logits = np.array([[1e4, -1e4, 0.0], [300.0, 0.0, 0.0], [0.0, 0.0, -inf]])
    found = reference.structured_cross_entropy_from_logits(
        logits, np.array([1, 1, 0]), *arguments(structure), xp=np
    )
    np.testing.assert_allclose(found, [2e4, 300.0, log(2)], rtol=1e-12)


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_weights_that_sum_to_less_than_one_are_not_renormalised(weight):
    logits = np.array([[0.3, -1.0, 2.0]])
    block_of, weights = np.array([[0, 1, 2]]), np.array([weight])
    loss = reference.structured_cross_entropy_from_logits(
        logits, np.array([0]), block_of, weights, xp=np
    )
    full = reference.structured_cross_entropy_from_logits(
        logits, np.array([0]), block_of, np.ones(1), xp=np
    )
    np.testing.assert_allclose(loss, weight * full)
