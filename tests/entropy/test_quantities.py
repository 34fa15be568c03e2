"""The paper's section 3: each definition, remark and theorem as a test.

The references are slow loops written from the definitions, and SciPy for Shannon's quantities.
"""

from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from structent import (
    LabelGraph,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    conditional_structured_entropy,
    hierarchy,
    joint_structured_entropy,
    maximum_entropy_distribution,
    structured_cross_entropy,
    structured_entropy,
    structured_mutual_information,
    structured_mutual_information_from_labels,
    structured_relative_entropy,
    trivial,
)
from structent.structure import catalog
from tests.strategies import (
    distributions,
    structured_pairs,
    structured_variables,
)

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def coarsened(p, partition):
    """P(S(Y) = B) for each block B, from Definition 3."""
    return [sum(p[partition.classes.index(label)] for label in block) for block in partition.blocks]


def slow_entropy(p, structure):
    """Definition 8, term by term."""
    total = 0.0
    for partition, weight in zip(structure.partitions, structure.weights, strict=True):
        for probability in coarsened(p, partition):
            if probability > 0:
                total -= weight * probability * log(probability)
    return total


def slow_conditional_entropy(p_xy, structure_x, structure_y):
    """Definition 13, term by term."""
    total = 0.0
    for (r, weight_r), (s, weight_s) in product(
        zip(structure_x.partitions, structure_x.weights, strict=True),
        zip(structure_y.partitions, structure_y.weights, strict=True),
    ):
        for block_x in r.blocks:
            rows = [structure_x.classes.index(label) for label in block_x]
            given_x = p_xy[rows].sum()
            for block_y in s.blocks:
                columns = [structure_y.classes.index(label) for label in block_y]
                both = p_xy[np.ix_(rows, columns)].sum()
                if both > 0:
                    total -= weight_r * weight_s * both * log(both / given_x)
    return total


@given(structured_variables())
def test_definition_8_structured_entropy(variable):
    structure, p = variable
    np.testing.assert_allclose(
        structured_entropy(p, structure), slow_entropy(p, structure), **CLOSE
    )


@given(structured_variables())
def test_definition_8_is_the_mean_of_the_entropies_of_the_coarsened_variables(variable):
    structure, p = variable
    entropies = [scipy_entropy(coarsened(p, partition)) for partition in structure.partitions]
    np.testing.assert_allclose(
        structured_entropy(p, structure), np.dot(structure.weights, entropies), **CLOSE
    )


@given(structured_variables())
def test_remark_4_coarsening_never_raises_entropy(variable):
    structure, p = variable
    for partition in structure.partitions:
        assert structured_entropy(p, RandomPartition([partition])) <= scipy_entropy(p) + 1e-12


@given(structured_variables())
def test_remark_10_structured_entropy_is_the_entropy_of_the_random_block_given_the_partition(
    variable,
):
    structure, p = variable
    # H(Z(Y) | Z) = H(Z(Y), Z) - H(Z), from the joint distribution of block and partition.
    joint = np.concatenate(
        [
            weight * np.array(coarsened(p, partition))
            for partition, weight in zip(structure.partitions, structure.weights, strict=True)
        ]
    )
    expected = scipy_entropy(joint) - scipy_entropy(structure.weights)
    np.testing.assert_allclose(structured_entropy(p, structure), expected, rtol=1e-9, atol=1e-11)


@given(st.integers(1, 9).flatmap(distributions))
def test_remark_12_the_trivial_structure_gives_shannon_entropy(p):
    found = structured_entropy(p, trivial(range(len(p))))
    np.testing.assert_allclose(found, scipy_entropy(p), **CLOSE)


@given(structured_variables())
def test_structured_entropy_lies_between_zero_and_shannon_entropy(variable):
    structure, p = variable
    found = structured_entropy(p, structure)
    assert -1e-12 <= found <= scipy_entropy(p) + 1e-12


@given(structured_pairs())
def test_definition_13_conditional_structured_entropy(pair):
    structure_x, structure_y, p_xy = pair
    expected = slow_conditional_entropy(p_xy, structure_x, structure_y)
    found = conditional_structured_entropy(p_xy, structure_x, structure_y)
    np.testing.assert_allclose(found, expected, **CLOSE)


@given(structured_pairs())
def test_theorem_14_conditioning_never_raises_structured_entropy(pair):
    structure_x, structure_y, p_xy = pair
    conditional = conditional_structured_entropy(p_xy, structure_x, structure_y)
    assert conditional <= structured_entropy(p_xy.sum(axis=0), structure_y) + 1e-12


@given(structured_variables(n_distributions=2))
def test_definition_15_structured_relative_entropy(variable):
    structure, p, q = variable
    expected = sum(
        weight * scipy_entropy(coarsened(p, partition), coarsened(q, partition))
        for partition, weight in zip(structure.partitions, structure.weights, strict=True)
        if weight > 0
    )
    found = structured_relative_entropy(p, q, structure)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@given(structured_variables(n_distributions=2))
def test_relative_entropy_is_zero_only_where_the_coarsened_distributions_agree(variable):
    structure, p, q = variable
    divergence = structured_relative_entropy(p, q, structure)
    assert divergence >= -1e-12
    furthest = max(
        weight * np.abs(np.subtract(coarsened(p, partition), coarsened(q, partition))).sum() ** 2
        for partition, weight in zip(structure.partitions, structure.weights, strict=True)
    )
    # Pinsker's inequality: D >= |P - Q|^2 / 2 for each partition, so no difference goes unseen.
    assert divergence >= furthest / 2 - 1e-12
    if furthest == 0:
        assert abs(divergence) <= 1e-12


@given(structured_variables(n_distributions=2))
def test_cross_entropy_is_entropy_plus_relative_entropy(variable):
    structure, p, q = variable
    expected = structured_entropy(p, structure) + structured_relative_entropy(p, q, structure)
    np.testing.assert_allclose(structured_cross_entropy(p, q, structure), expected, **CLOSE)


@given(structured_variables())
def test_the_empirical_loss_of_section_3_3_is_the_cross_entropy_of_one_hot_targets(variable):
    structure, q = variable
    for label in structure.classes:
        inside = [
            probability
            for partition in structure.partitions
            for block, probability in zip(partition.blocks, coarsened(q, partition), strict=True)
            if label in block
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(structure.weights > 0, structure.weights * -np.log(inside), 0.0)
        one_hot = np.array([float(label == other) for other in structure.classes])
        found = structured_cross_entropy(one_hot, q, structure)
        np.testing.assert_allclose(found, terms.sum(), **CLOSE)


@given(structured_pairs())
def test_definition_16_mutual_information_is_the_entropy_that_conditioning_removes(pair):
    structure_x, structure_y, p_xy = pair
    expected = slow_entropy(p_xy.sum(axis=0), structure_y) - slow_conditional_entropy(
        p_xy, structure_x, structure_y
    )
    found = structured_mutual_information(p_xy, structure_x, structure_y)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@given(structured_pairs())
def test_theorem_17_mutual_information_is_symmetric(pair):
    structure_x, structure_y, p_xy = pair
    np.testing.assert_allclose(
        structured_mutual_information(p_xy, structure_x, structure_y),
        structured_mutual_information(p_xy.T, structure_y, structure_x),
        **CLOSE,
    )


@given(structured_pairs())
def test_mutual_information_is_never_negative(pair):
    structure_x, structure_y, p_xy = pair
    assert structured_mutual_information(p_xy, structure_x, structure_y) >= -1e-12


@given(structured_variables(), structured_variables())
def test_mutual_information_of_independent_variables_is_zero(x, y):
    structure_x, p_x = x
    structure_y, p_y = y
    found = structured_mutual_information(np.outer(p_x, p_y), structure_x, structure_y)
    np.testing.assert_allclose(found, 0.0, atol=1e-11)


@given(structured_pairs())
def test_definition_22_joint_entropy_is_that_of_the_product_structure(pair):
    structure_x, structure_y, p_xy = pair
    expected = slow_entropy(p_xy.ravel(), structure_x.product(structure_y))
    found = joint_structured_entropy(p_xy, structure_x, structure_y)
    np.testing.assert_allclose(found, expected, **CLOSE)


@given(structured_pairs())
def test_theorem_23_chain_rule(pair):
    structure_x, structure_y, p_xy = pair
    joint = joint_structured_entropy(p_xy, structure_x, structure_y)
    first = structured_entropy(p_xy.sum(axis=1), structure_x)
    second = conditional_structured_entropy(p_xy, structure_x, structure_y)
    np.testing.assert_allclose(joint, first + second, **CLOSE)


@given(structured_pairs(), st.integers(1, 3))
def test_leading_axes_are_a_batch(pair, n_rows):
    structure_x, structure_y, p_xy = pair
    batch = np.broadcast_to(p_xy, (n_rows, 2, *p_xy.shape))
    one_by_one = np.full((n_rows, 2), 1.0)
    for quantity in (
        joint_structured_entropy,
        conditional_structured_entropy,
        structured_mutual_information,
    ):
        found = quantity(batch, structure_x, structure_y)
        expected = one_by_one * quantity(p_xy, structure_x, structure_y)
        np.testing.assert_allclose(found, expected, **CLOSE)


@given(structured_variables(n_distributions=2), st.sampled_from([2, 10, 0.5]))
def test_the_base_of_the_logarithm_is_a_factor(variable, base):
    structure, p, q = variable
    p_joint = np.outer(p, q)
    for in_nats, in_base in (
        (structured_entropy(p, structure), structured_entropy(p, structure, base=base)),
        (
            structured_relative_entropy(p, q, structure),
            structured_relative_entropy(p, q, structure, base=base),
        ),
        (
            joint_structured_entropy(p_joint, structure, structure),
            joint_structured_entropy(p_joint, structure, structure, base=base),
        ),
    ):
        np.testing.assert_allclose(in_base, in_nats / log(base), **CLOSE)


def test_cross_entropy_broadcasts_one_truth_against_many_predictions():
    structure = catalog.months()
    q = np.random.default_rng(0).dirichlet(np.ones(12), size=5)
    found = structured_cross_entropy(q[0], q, structure)
    expected = [structured_cross_entropy(q[0], row, structure) for row in q]
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_cross_entropy_is_infinite_where_a_possible_block_is_ruled_out():
    structure = hierarchy({"a": ("g",), "b": ("g",), "c": ("h",)}, weights=[0.5, 0.5])
    assert structured_cross_entropy([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], structure) == np.inf
    only_groups = structure.reweight([1.0, 0.0])
    assert structured_cross_entropy([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], only_groups) == 0.0


def test_the_hospital_example_of_section_3_1():
    p = np.array([0.1, 0.2, 0.7])
    weight = 0.6
    hospital = hierarchy({1: ("sick",), 2: ("sick",), 3: ("well",)}, weights=[1 - weight, weight])
    binary = -0.3 * log(0.3) - 0.7 * log(0.7)
    shannon = -0.1 * log(0.1) - 0.2 * log(0.2) - 0.7 * log(0.7)
    expected = weight * shannon + (1 - weight) * binary
    np.testing.assert_allclose(structured_entropy(p, hospital), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.6, -0.1], "p must hold probabilities, got -0.1 below 0"),
        ([0.5, np.nan, 0.5], "p must hold probabilities, got NaN"),
        ([0.5, 0.2, 0.2], r"p must sum to 1 over its last axis, got a sum of 0.9; divide"),
        ([[0.2, 0.3, 0.5], [0.2, 0.3, 0.6]], "got a sum of 1.1"),
        ([0.5, 0.5], "structure covers 3 classes but axis -1 of p has 2 entries"),
        (["a", "b", "c"], "p must hold probabilities, got an array of <U1"),
        (1.0, r"p must have 1 axes or more, got shape \(\)"),
        ([0.5, 0.5, np.inf], "p must sum to 1"),
        ([[0.5, 0.5], [1.0]], "p must be an array, got rows of different length"),
    ],
)
def test_what_is_no_distribution_is_refused(p, message):
    with pytest.raises(StructureError, match=message):
        structured_entropy(p, trivial(["a", "b", "c"]))
    with pytest.raises(StructureError):
        structured_cross_entropy([1.0, 0.0, 0.0], p, trivial(["a", "b", "c"]))
    with pytest.raises(StructureError):
        structured_relative_entropy(p, [1.0, 0.0, 0.0], trivial(["a", "b", "c"]))


def test_joint_distributions_are_checked_on_both_axes():
    with pytest.raises(StructureError, match="axis -2 of p_xy has 2 entries"):
        joint_structured_entropy(np.full((2, 2), 0.25), trivial([1, 2, 3]))
    with pytest.raises(StructureError, match="axis -1 of p_xy has 2 entries"):
        conditional_structured_entropy(np.full((2, 2), 0.25), None, trivial([1, 2, 3]))
    with pytest.raises(StructureError, match="sum to 1 over its last 2 axes, got a sum of 2"):
        structured_mutual_information(np.full((2, 2), 0.5))
    with pytest.raises(StructureError, match="2 axes or more"):
        structured_mutual_information([0.5, 0.5])


@pytest.mark.parametrize("base", [0, 1, -2, np.inf, np.nan])
def test_a_base_that_is_none_is_refused(base):
    with pytest.raises(StructureError, match="base must be a positive number other than 1"):
        structured_entropy([1.0], trivial(["a"]), base=base)


def test_probabilities_of_a_float32_softmax_are_accepted():
    logits = np.random.default_rng(0).normal(size=(50, 1000)).astype(np.float32)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = structured_entropy(p, trivial(range(1000)))
    np.testing.assert_allclose(found, scipy_entropy(p.astype(np.float64), axis=1), rtol=1e-5)


def test_no_rows_give_no_entropies():
    assert structured_entropy(np.empty((0, 3)), trivial(["a", "b", "c"])).shape == (0,)


SAMPLER = SpanningTreePartitions(LabelGraph([("a", "b")]), 2, 0.5)
HALVES = np.array([0.5, 0.5])
ASKED = {
    "entropy": lambda s: structured_entropy(HALVES, s),
    "cross-entropy": lambda s: structured_cross_entropy(HALVES, HALVES, s),
    "relative entropy": lambda s: structured_relative_entropy(HALVES, HALVES, s),
    "joint entropy": lambda s: joint_structured_entropy(np.eye(2) / 2, None, s),
    "information": lambda s: structured_mutual_information_from_labels([1, 2], ["a", "b"], s),
    "largest entropy": maximum_entropy_distribution,
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_a_sampler_is_refused_with_the_way_out(asked):
    with pytest.raises(StructureError, match=r"must be a RandomPartition, got .* draws one from"):
        asked(SAMPLER)
