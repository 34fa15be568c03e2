"""Learned structures: cuts of SciPy's tree, and planted blocks that come back."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from structent import (
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    distances_from_confusion,
    hxe,
    neighbour_graph_from_confusion,
    neighbour_graph_from_distances,
    structure_from_confusion,
    structure_from_distances,
    structure_from_embeddings,
    trivial,
)
from structent.structure.learned import distances_from_embeddings


@st.composite
def points(draw, min_size=3, max_size=12):
    n_points = draw(st.integers(min_size, max_size))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(n_points, 2))


@given(points(), st.integers(1, 4))
def test_the_cuts_are_those_of_scipys_tree_at_the_largest_gaps(places, n_levels):
    n_classes = len(places)
    structure = structure_from_distances(
        squareform(pdist(places)), range(n_classes), n_levels=n_levels
    )
    tree = linkage(pdist(places), "average")
    heights = tree[:, 2]
    n_cuts = min(n_levels, n_classes - 2)
    most = max(n_classes // 2, n_cuts + 1)
    # Between two joins there is a gap, in which SciPy cuts by height: n - 1 - m blocks.
    joins = sorted(
        range(n_classes - 1 - most, n_classes - 2), key=lambda m: heights[m] - heights[m + 1]
    )[:n_cuts]
    for join, partition in zip(sorted(joins, reverse=True), structure.partitions[:-1], strict=True):
        by_height = fcluster(tree, (heights[join] + heights[join + 1]) / 2, "distance")
        np.testing.assert_array_equal(
            by_height[:, None] == by_height, partition.block_of[:, None] == partition.block_of
        )


@given(points(), st.integers(1, 4))
def test_levels_are_nested_and_called_alike_whatever_the_data(places, n_levels):
    n_cuts = min(n_levels, len(places) - 2)
    structure = structure_from_distances(
        squareform(pdist(places)), range(len(places)), n_levels=n_levels
    )
    assert structure.is_nested
    assert structure.level_of == (*(f"level {n}" for n in range(1, n_cuts + 1)), "class")
    np.testing.assert_allclose(structure.weights, 1 / (n_cuts + 1))
    n_blocks = [partition.n_blocks for partition in structure.partitions]
    assert sorted(set(n_blocks)) == n_blocks
    assert n_blocks[0] >= 2


def test_one_pair_that_is_closest_by_far_makes_no_level():
    places = np.append(np.arange(9.0) ** 2, 64.001)
    structure = structure_from_distances(abs(places[:, None] - places), range(10), n_levels=3)
    assert [cut.n_blocks <= 5 for cut in structure.partitions] == [True, True, True, False]


@given(points(), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_changes_nothing_but_the_order(places, random):
    order = list(range(len(places)))
    random.shuffle(order)
    structure = structure_from_distances(squareform(pdist(places)), range(len(places)))
    other = structure_from_distances(squareform(pdist(places[order])), order)
    reordered = [partition.reordered(structure.classes) for partition in other.partitions]
    assert RandomPartition(reordered, other.weights, levels=other.level_of) == structure


def planted_confusion(rng, rows_of_class):
    """Counts of 12 classes in 2 x 3 nested blocks, confused the more the closer they are."""
    fine, coarse = np.arange(12) // 2, np.arange(12) // 6
    rates = 0.01 + 0.05 * (coarse[:, None] == coarse) + 0.3 * (fine[:, None] == fine)
    rates += np.eye(12)
    rates /= rates.sum(axis=1, keepdims=True)
    return np.array([rng.multinomial(n, p) for n, p in zip(rows_of_class, rates, strict=True)])


def test_planted_blocks_come_back_from_counts_however_unequal_the_classes():
    rng = np.random.default_rng(0)
    confusion = planted_confusion(rng, rng.integers(200, 20_000, size=12))
    structure = structure_from_confusion(confusion, range(12), n_levels=2)
    assert structure.partitions[0].block_of.tolist() == [0] * 6 + [1] * 6
    assert structure.partitions[1].block_of.tolist() == (np.arange(12) // 2).tolist()


def test_planted_blocks_come_back_from_embeddings_of_rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(list("abcdef"), 30)
    centres = np.repeat(4 * rng.normal(size=(3, 10)), 2, axis=0) + rng.normal(size=(6, 10))
    codes = np.repeat(np.arange(6), 30)
    rows = centres[codes] + 2 * rng.normal(size=(180, 10))
    structure = structure_from_embeddings(rows, labels, n_levels=1)
    assert structure.partitions[0].blocks == (("a", "b"), ("c", "d"), ("e", "f"))


def test_weights_go_from_the_coarsest_to_the_singletons():
    distances = squareform(pdist(np.random.default_rng(0).normal(size=(6, 2))))
    given_weights = structure_from_distances(
        distances, range(6), n_levels=2, weights=[0.5, 0.2, 0.3]
    )
    assert given_weights.weights.tolist() == [0.5, 0.2, 0.3]
    by_rule = structure_from_distances(distances, range(6), n_levels=2, weights=hxe(0.5))
    np.testing.assert_allclose(by_rule.weights, hxe(0.5)(3))


def test_two_classes_have_no_structure():
    assert structure_from_confusion([[3, 1], [1, 3]], ["a", "b"]) == trivial(["a", "b"])


@pytest.mark.parametrize(
    ("distances", "options", "message"),
    [
        ([[0, 1], [1, 0]], {}, "one row for each of the 3 classes, got 2"),
        ([[0, 1, 2], [2, 0, 3], [2, 3, 0]], {}, "must be symmetric"),
        ([[1, 1, 2], [1, 1, 3], [2, 3, 1]], {}, "0 from a class to itself"),
        ([[0, 1, 2], [1, 0, 3], [2, 3, 0]], {"n_levels": 0}, "n_levels must be between 1 and"),
        ([[0, 1, 2], [1, 0, 3], [2, 3, 0]], {"weights": [1.0]}, "each of the 2 partitions"),
    ],
)
def test_bad_input_is_refused(distances, options, message):
    with pytest.raises(StructureError, match=message):
        structure_from_distances(distances, ["a", "b", "c"], **options)


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
        ([[1, 2, 3], [4, 5, 6]], r"one row and one column per class, got shape \(2, 3\)"),
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


@given(st.integers(2, 15), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_edges_are_those_of_the_shortest_tree_and_to_the_nearest(n_classes, k, seed):
    k = min(k, n_classes - 1)
    places = np.random.default_rng(seed).normal(size=(n_classes, 2))
    distances = squareform(pdist(places))
    graph = neighbour_graph_from_distances(distances, range(n_classes), n_neighbours=k)
    whole = nx.Graph()
    whole.add_weighted_edges_from(
        (a, b, distances[a, b]) for a in range(n_classes) for b in range(a)
    )
    wanted = {frozenset(edge) for edge in nx.minimum_spanning_tree(whole).edges()}
    for a in range(n_classes):
        others = sorted(set(range(n_classes)) - {a}, key=lambda b, a=a: distances[a, b])
        wanted |= {frozenset((a, b)) for b in others[:k]}
    assert {frozenset(edge) for edge in graph.edges} == wanted


def test_classes_at_no_distance_are_joined_too():
    graph = neighbour_graph_from_distances(np.zeros((4, 4)), list("abcd"), n_neighbours=1)
    assert graph.n_classes == 4


def test_months_on_a_circle_become_a_circle():
    angles = 2 * np.pi * np.arange(12) / 12
    similarity = np.exp(2 * np.cos(angles[:, None] - angles))
    graph = neighbour_graph_from_confusion(similarity, range(12))
    assert {frozenset(edge) for edge in graph.edges} == {
        frozenset((month, (month + 1) % 12)) for month in range(12)
    }
    assert SpanningTreePartitions(graph, 4, 0.5).sample(0).partitions[0].n_blocks == 4


def test_the_graph_of_a_confusion_is_that_of_its_distances():
    confusion = np.random.default_rng(0).integers(1, 20, size=(7, 7))
    assert neighbour_graph_from_confusion(
        confusion, range(7), n_neighbours=3
    ) == neighbour_graph_from_distances(
        distances_from_confusion(confusion), range(7), n_neighbours=3
    )


def test_bad_input_to_neighbour_graphs_is_refused():
    with pytest.raises(StructureError, match="needs two classes or more, got 1"):
        neighbour_graph_from_distances([[0.0]], ["a"])
    with pytest.raises(StructureError, match="n_neighbours must be between 1 and 2, one less than"):
        neighbour_graph_from_distances(np.zeros((3, 3)), list("abc"), n_neighbours=3)
