"""Log loss under a structure and at its levels."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from structent import Partition, RandomPartition, StructureError, circular, hierarchy, trivial
from structent.metrics import block_log_loss, skill, structured_log_loss
from tests.metrics.problems import (
    block_with,
    mean_over_level,
    probability,
    random_rows,
    scored_rows,
)
from tests.strategies import distributions


def slow_log_loss(y_true, proba, partition):
    losses = []
    for label, row in zip(y_true, proba, strict=True):
        q = probability(block_with(label, partition), row, partition.classes)
        losses.append(np.inf if q == 0 else -np.log(q))
    return np.mean(losses)


@given(scored_rows())
def test_the_structured_loss_is_that_of_the_definition(problem):
    structure, y_true, proba = problem
    expected = sum(
        weight * slow_log_loss(y_true, proba, partition)
        for weight, partition in zip(structure.weights, structure.partitions, strict=True)
        if weight > 0
    )
    found = structured_log_loss(y_true, proba, structure, classes=structure.classes)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(scored_rows(), st.data())
def test_the_loss_of_a_level_is_the_mean_over_its_partitions(problem, data):
    structure, y_true, proba = problem
    level = data.draw(st.sampled_from(list(structure.levels)))
    expected = mean_over_level(structure, level, lambda p: slow_log_loss(y_true, proba, p))
    found = block_log_loss(y_true, proba, structure, level=level, classes=structure.classes)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(scored_rows())
def test_the_loss_of_a_partition_is_that_of_its_blocks(problem):
    structure, y_true, proba = problem
    partition = structure.partitions[0]
    found = block_log_loss(y_true, proba, partition, classes=structure.classes)
    expected = slow_log_loss(y_true, proba, partition)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_structure_it_is_the_log_loss_of_scikit_learn(weighted):
    structure = trivial(["apr", "aug", "dec"])  # sorted, as scikit-learn takes columns to be
    y_true, proba, weights = random_rows(structure, 50)
    weights = weights if weighted else None
    expected = log_loss(y_true, proba, sample_weight=weights)
    found = structured_log_loss(y_true, proba, structure, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_without_a_level_the_classes_are_scored_whatever_the_structure():
    plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    y_true, proba, _ = random_rows(plants, 50)
    expected = log_loss(y_true, proba)
    np.testing.assert_allclose(block_log_loss(y_true, proba, plants), expected, rtol=1e-12)


def test_a_true_block_without_probability_makes_the_loss_infinite():
    halves = Partition.from_blocks([["a", "b"], ["c"]])
    assert block_log_loss(["c", "a"], [[0.5, 0.5, 0.0]] * 2, halves) == np.inf
    assert block_log_loss(["b", "a"], [[1.0, 0.0, 0.0]] * 2, halves) == 0.0


def test_a_row_without_weight_counts_nothing_even_where_its_loss_is_infinite():
    sides = trivial(["heads", "tails"])
    loss = structured_log_loss(
        ["heads", "tails"], [[0.5, 0.5], [1.0, 0.0]], sides, sample_weight=[1.0, 0.0]
    )
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-15)


def test_all_classes_in_one_block_lose_nothing_however_a_row_was_rounded():
    everything = Partition.from_blocks([["a", "b", "c"]])
    proba = np.full((4, 3), 1 / 3, dtype=np.float32)
    assert block_log_loss(["a", "b", "c", "a"], proba, everything) == 0.0


@given(scored_rows())
def test_skill_is_the_share_saved_of_what_the_frequencies_lose(problem):
    structure, y_true, proba = problem
    frequencies = [y_true.count(label) / len(y_true) for label in structure.classes]
    loss = structured_log_loss(y_true, proba, structure, classes=structure.classes)
    of_prior = structured_log_loss(
        y_true, [frequencies] * len(y_true), structure, classes=structure.classes
    )
    assume(of_prior > 1e-9)
    expected = 1 - loss / of_prior
    found = skill(y_true, proba, structure, classes=structure.classes)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(scored_rows(), st.data())
def test_a_prior_may_be_given(problem, data):
    structure, y_true, proba = problem
    prior = (data.draw(distributions(structure.n_classes)) + 0.1) / (1 + 0.1 * structure.n_classes)
    loss = structured_log_loss(y_true, proba, structure, classes=structure.classes)
    of_prior = structured_log_loss(
        y_true, [prior] * len(y_true), structure, classes=structure.classes
    )
    assume(of_prior > 1e-9)
    found = skill(y_true, proba, structure, prior=prior, classes=structure.classes)
    np.testing.assert_allclose(found, 1 - loss / of_prior, rtol=1e-9, atol=1e-9)


def test_the_prior_itself_has_no_skill_and_the_truth_has_all():
    months = circular(range(12))
    y_true, _, _ = random_rows(months, 60)
    frequencies = np.bincount(y_true, minlength=12) / 60
    assert abs(skill(y_true, [frequencies] * 60, months)) < 1e-12
    assert skill(y_true, np.eye(12)[y_true], months) == 1.0


def test_weights_count_in_the_default_prior():
    sides = trivial(["heads", "tails"])
    prior = [[0.75, 0.25]] * 2
    found = skill(["heads", "tails"], prior, sides, sample_weight=[3.0, 1.0])
    assert abs(found) < 1e-12


def test_the_prior_is_in_the_order_of_the_columns():
    structure = trivial(["b", "a", "c"])
    y_true, proba, _ = random_rows(structure, 30)
    prior = np.array([0.5, 0.3, 0.2])
    expected = skill(y_true, proba, structure, prior=prior, classes=structure.classes)
    order = [1, 0, 2]
    found = skill(
        y_true, proba[:, order], structure, prior=prior[order], classes=np.array(["a", "b", "c"])
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nothing_beats_a_perfect_prior():
    sides = trivial(["heads", "tails"])
    assert skill(["heads"], [[1.0, 0.0]], sides) == 0.0
    assert skill(["heads"], [[0.9, 0.1]], sides) == -np.inf


def test_where_all_classes_are_one_block_there_is_nothing_to_be_skilled_at():
    everything = RandomPartition([Partition.from_blocks([["a", "b", "c"]])])
    y_true, proba, weights = random_rows(everything, 20)
    assert skill(y_true, proba.astype(np.float32), everything, sample_weight=weights) == 0.0


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], "structure covers 3 classes but axis -1 of prior has 2 entries"),
        ([0.5, 0.5, 0.5], "prior must sum to 1"),
        ([[0.5, 0.25, 0.25]], "prior must have one axis"),
        ([1.0, 0.0, 0.0], "prior must be above 0 for every class in y_true, got 0 for 'b'"),
    ],
)
def test_a_prior_must_be_a_distribution_that_allows_the_rows(prior, message):
    with pytest.raises(StructureError, match=message):
        skill(["a", "b"], [[0.5, 0.25, 0.25]] * 2, trivial(["a", "b", "c"]), prior=prior)
