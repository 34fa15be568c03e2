"""Accuracy at the levels of a structure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from structent import Partition, trivial
from structent.metrics import block_accuracy
from tests.metrics.problems import (
    block_with,
    dyadic,
    mean_over_level,
    probability,
    random_rows,
    scored_rows,
)


def slow_accuracy(y_true, proba, partition):
    hits = 0
    for label, row in zip(y_true, proba, strict=True):
        totals = [probability(block, row, partition.classes) for block in partition.blocks]
        predicted = partition.blocks[totals.index(max(totals))]
        hits += predicted == block_with(label, partition)
    return hits / len(y_true)


@given(scored_rows(dyadic), st.data())
def test_the_accuracy_of_a_level_is_the_mean_over_its_partitions(problem, data):
    structure, y_true, proba = problem
    level = data.draw(st.sampled_from(list(structure.levels)))
    expected = mean_over_level(structure, level, lambda p: slow_accuracy(y_true, proba, p))
    found = block_accuracy(y_true, proba, structure, level=level, classes=structure.classes)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(scored_rows(dyadic))
def test_the_accuracy_of_a_partition_is_that_of_its_blocks(problem):
    structure, y_true, proba = problem
    partition = structure.partitions[-1]
    found = block_accuracy(y_true, proba, partition, classes=structure.classes)
    np.testing.assert_allclose(found, slow_accuracy(y_true, proba, partition), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_structure_it_is_the_accuracy_of_scikit_learn(weighted):
    structure = trivial(["apr", "aug", "dec"])
    y_true, proba, weights = random_rows(structure, 50)
    weights = weights if weighted else None
    predicted = np.array(structure.classes)[proba.argmax(axis=1)]
    expected = accuracy_score(y_true, predicted, sample_weight=weights)
    found = block_accuracy(y_true, proba, structure, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_of_equally_probable_blocks_the_first_is_predicted():
    halves = Partition.from_blocks([["a", "b"], ["c"]])
    assert block_accuracy(["b", "c"], [[0.25, 0.25, 0.5]] * 2, halves) == 0.5
    assert block_accuracy(["b"], [[0.25, 0.25, 0.5]], halves) == 1.0
