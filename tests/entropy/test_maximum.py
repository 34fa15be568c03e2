"""The distribution of largest structured entropy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from structent import (
    Partition,
    RandomPartition,
    circular,
    hierarchy,
    maximum_entropy_distribution,
    ordinal,
    structured_cross_entropy,
    structured_entropy,
)
from structent.structure import catalog
from tests.strategies import random_partitions


@given(st.floats(0.0, 1.0))
def test_the_hospital_example_has_largest_entropy_where_the_paper_says(weight):
    hospital = hierarchy({1: ("sick",), 2: ("sick",), 3: ("well",)}, weights=[1 - weight, weight])
    sick = 1 / (2 * (1 + 2**-weight))
    found = maximum_entropy_distribution(hospital)
    np.testing.assert_allclose(
        found, [sick, sick, 1 - 2 * sick], atol=1e-8 if weight < 1e-6 else 1e-12
    )


@given(random_partitions(max_partitions=3), st.integers(0, 2**32))
def test_no_distribution_has_more_entropy_than_the_maximum(structure, seed):
    best = maximum_entropy_distribution(structure)
    rivals = np.random.default_rng(seed).dirichlet(np.ones(structure.n_classes), size=200)
    towards_rivals = 0.99 * best + 0.01 * rivals
    largest = structured_entropy(best, structure)
    assert structured_entropy(rivals, structure).max() <= largest + 1e-7
    assert structured_entropy(towards_rivals, structure).max() <= largest + 1e-7


@pytest.mark.parametrize(
    "structure",
    [catalog.cifar100(), catalog.months(), ordinal(range(6)), circular(range(7), 3)],
    ids=["cifar100", "months", "ordinal", "circular"],
)
def test_at_the_maximum_every_class_is_equally_surprising(structure):
    # The condition of Karush, Kuhn and Tucker: sum_t w_t log P(B_t(j)) is the same for every j.
    p = maximum_entropy_distribution(structure)
    surprise = [
        structured_cross_entropy(one_hot, p, structure) for one_hot in np.eye(structure.n_classes)
    ]
    np.testing.assert_allclose(surprise, structured_entropy(p, structure), rtol=1e-12)


def test_among_several_maxima_the_one_of_largest_shannon_entropy_is_chosen():
    groups = Partition.from_blocks([["a", "b", "c"], ["d"]])
    found = maximum_entropy_distribution(RandomPartition([groups]))
    np.testing.assert_allclose(found, [1 / 6, 1 / 6, 1 / 6, 1 / 2], atol=1e-8)


def test_a_class_may_have_probability_zero_at_the_maximum():
    # Each of b, c, d alone against the rest would like probability 1/2; a pays for it.
    others = [[label for label in "abcd" if label != alone] for alone in "bcd"]
    pairs = zip("bcd", others, strict=True)
    structure = RandomPartition([Partition.from_blocks([[x], rest]) for x, rest in pairs])
    found = maximum_entropy_distribution(structure)
    expected = [0 if label == "a" else 1 / 3 for label in structure.classes]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_maximum_agrees_with_a_general_constrained_solver():
    structure = circular(range(5), width=2, singleton_weight=0.2).reweight(
        [0.3, 0.05, 0.2, 0.15, 0.1, 0.2]
    )
    rival = minimize(
        lambda p: -structured_entropy(p / p.sum(), structure),
        np.full(5, 0.2),
        bounds=[(1e-9, 1)] * 5,
        tol=1e-14,
    )
    found = maximum_entropy_distribution(structure)
    np.testing.assert_allclose(found, rival.x / rival.x.sum(), atol=1e-5)
