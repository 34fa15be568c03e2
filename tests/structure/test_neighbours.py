"""Graphs of nearest classes: connected, and no edge left out or put in."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from structent import (
    SpanningTreePartitions,
    StructureError,
    distances_from_confusion,
    neighbour_graph_from_confusion,
    neighbour_graph_from_distances,
)


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


def test_bad_input_is_refused():
    with pytest.raises(StructureError, match="needs two classes or more, got 1"):
        neighbour_graph_from_distances([[0.0]], ["a"])
    with pytest.raises(StructureError, match="n_neighbours must be between 1 and 2, one less than"):
        neighbour_graph_from_distances(np.zeros((3, 3)), list("abc"), n_neighbours=3)
