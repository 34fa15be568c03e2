"""Distances between classes: the definition in slow loops, and what they must not hang on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import StructureError, distances_from_confusion
from structent.structure.learned import distances_from_embeddings

counts = st.integers(2, 6).flatmap(lambda k: arrays(np.float64, (k, k), elements=st.integers(1, 9)))


@given(counts)
def test_distances_are_those_of_the_definition(confusion):
    k = len(confusion)
    q = [[confusion[a, b] / sum(confusion[a]) for b in range(k)] for a in range(k)]
    c = [sum(q[a][b] for a in range(k)) / k for b in range(k)]
    found = distances_from_confusion(confusion)
    for a in range(k):
        for b in range(k):
            lift = (q[a][b] / c[b] + q[b][a] / c[a]) / 2
            wanted = 0.0 if a == b else math.log(k) - math.log(lift)
            assert found[a, b] == pytest.approx(wanted, abs=1e-12)


@given(counts, st.data())
def test_distances_do_not_hang_on_how_many_rows_a_class_has(confusion, data):
    times = np.array(data.draw(st.lists(st.integers(1, 50), min_size=len(confusion),
                                        max_size=len(confusion))))  # fmt: skip
    np.testing.assert_allclose(
        distances_from_confusion(confusion * times[:, None]), distances_from_confusion(confusion)
    )


@given(st.integers(2, 6), st.data())
def test_a_model_that_knows_nothing_puts_all_classes_at_the_distance_of_chance(k, data):
    column = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k)))
    found = distances_from_confusion(np.tile(column, (k, 1)))
    np.testing.assert_allclose(found[~np.eye(k, dtype=bool)], np.log(k))


def test_a_confusion_that_never_occurs_counts_as_half_the_rarest_that_does():
    seldom = [[8.0, 2, 0], [2, 8, 0], [0, 1, 9]]
    found = distances_from_confusion(seldom)
    assert found[0, 2] == pytest.approx(found[1, 2] + np.log(2))


def test_where_nothing_is_confused_all_classes_are_equally_far_apart():
    np.testing.assert_allclose(
        distances_from_confusion(np.eye(3)), np.log(3) * (1 - np.eye(3)), atol=1e-15
    )


def test_a_class_that_is_never_predicted_is_placed_by_its_own_rows():
    found = distances_from_confusion([[6.0, 4, 0], [4, 6, 0], [9, 1, 0]])
    assert found[2, 0] < found[2, 1]


@given(st.integers(0, 2**32 - 1))
def test_the_distance_of_means_is_unbiased_by_the_noise_of_few_rows(seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(["a", "b"], [3, 5])
    draws = rng.normal(size=(400, 8, 30)) + 2.0 * (labels == "b")[:, None]
    squared = [distances_from_embeddings(draw, labels)[0][0, 1] ** 2 for draw in draws]
    # Of 400 draws: far enough above 0 that none is cut off there, and their mean is the truth.
    assert np.mean(squared) == pytest.approx(4 * 30, abs=6 * np.std(squared) / 20)


def test_one_vector_a_class_gives_plain_distances():
    found, classes = distances_from_embeddings([[0.0, 0], [3, 4], [0, 4]], [2, 1, "x"])
    assert classes == (1, 2, "x")
    np.testing.assert_allclose(found, [[0, 5, 3], [5, 0, 4], [3, 4, 0]])


@pytest.mark.parametrize(
    ("confusion", "message"),
    [
        ([[1, 2, 3], [4, 5, 6]], r"one row and one column a class, got shape \(2, 3\)"),
        ([[1, -2], [1, 1]], "must not be negative, got -2"),
        ([[1, np.nan], [1, 1]], "must be finite numbers"),
        ([[1, 2], [0, 0]], "rows of every class, got none in row 1"),
        ([["a", "b"], ["c", "d"]], "must be numbers on two axes"),
        ([[1, 2], [3]], "rows of different length"),
    ],
)
def test_a_confusion_that_is_none_is_refused(confusion, message):
    with pytest.raises(StructureError, match=message):
        distances_from_confusion(confusion)


def test_embeddings_without_a_label_each_are_refused():
    with pytest.raises(StructureError, match="got 2 rows and 3 labels"):
        distances_from_embeddings([[1.0], [2.0]], ["a", "b", "c"])
