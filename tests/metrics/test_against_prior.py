"""Skill against the class prior."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import Partition, RandomPartition, StructureError, circular, trivial
from structent.metrics import skill, structured_log_loss
from tests.metrics.problems import random_rows, scored_rows
from tests.strategies import distributions


@given(scored_rows())
def test_skill_is_the_share_saved_of_what_the_frequencies_lose(problem):
    structure, y_true, proba = problem
    frequencies = [y_true.count(label) / len(y_true) for label in structure.classes]
    loss = structured_log_loss(y_true, proba, structure)
    of_prior = structured_log_loss(y_true, [frequencies] * len(y_true), structure)
    assume(of_prior > 1e-9)
    expected = 1 - loss / of_prior
    np.testing.assert_allclose(skill(y_true, proba, structure), expected, rtol=1e-9, atol=1e-9)


@given(scored_rows(), st.data())
def test_a_prior_may_be_given(problem, data):
    structure, y_true, proba = problem
    prior = (data.draw(distributions(structure.n_classes)) + 0.1) / (1 + 0.1 * structure.n_classes)
    loss = structured_log_loss(y_true, proba, structure)
    of_prior = structured_log_loss(y_true, [prior] * len(y_true), structure)
    assume(of_prior > 1e-9)
    found = skill(y_true, proba, structure, prior=prior)
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
    expected = skill(y_true, proba, structure, prior=prior)
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
        ([1.0, 0.0, 0.0], "prior must allow every class in y_true, got 0 for 'b'"),
    ],
)
def test_a_prior_must_be_a_distribution_that_allows_the_rows(prior, message):
    with pytest.raises(StructureError, match=message):
        skill(["a", "b"], [[0.5, 0.25, 0.25]] * 2, trivial(["a", "b", "c"]), prior=prior)
