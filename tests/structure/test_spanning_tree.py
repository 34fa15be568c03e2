"""Wilson's algorithm: the trees are spanning trees, and all equally probable."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from structent import LabelGraph
from structent.structure.spanning_tree import sample_connected_blocks, sample_spanning_tree
from tests.strategies import connected_graphs


def draw_tree(graph, seed, iteration, root=0):
    return sample_spanning_tree(
        graph.start, graph.neighbour_indices, root, np.uint64(seed), np.uint64(iteration)
    )


def edges_of(parent):
    return frozenset(
        (min(node, above), max(node, above))
        for node, above in enumerate(parent.tolist())
        if node != above
    )


def n_spanning_trees(graph):
    """The matrix-tree theorem: any cofactor of the Laplacian."""
    laplacian = np.diag(graph.degrees.astype(float))
    for a, b in graph.edges:
        laplacian[a, b] = laplacian[b, a] = -1
    return round(np.linalg.det(laplacian[1:, 1:]))


SMALL_GRAPHS = {
    "square with a diagonal": [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)],
    "complete graph of 4": list(combinations(range(4), 2)),
    "circle of 5": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "ladder": [(0, 1), (2, 3), (4, 5), (0, 2), (2, 4), (1, 3), (3, 5)],
}


@pytest.mark.parametrize("edges", SMALL_GRAPHS.values(), ids=SMALL_GRAPHS.keys())
@pytest.mark.parametrize("root", [0, 3])
def test_spanning_trees_are_uniform(edges, root):
    graph = LabelGraph(edges, range(max(map(max, edges)) + 1))
    n_trees = n_spanning_trees(graph)
    drawn = Counter(edges_of(draw_tree(graph, 1, i, root)) for i in range(400 * n_trees))
    assert len(drawn) == n_trees
    assert chisquare(list(drawn.values())).pvalue > 1e-4


def test_spanning_trees_are_uniform_over_seeds_as_over_iterations():
    graph = LabelGraph(SMALL_GRAPHS["complete graph of 4"])
    drawn = Counter(edges_of(draw_tree(graph, seed, 0)) for seed in range(6400))
    assert len(drawn) == n_spanning_trees(graph) == 16
    assert chisquare(list(drawn.values())).pvalue > 1e-4


def test_consecutive_draws_are_independent():
    graph = LabelGraph(SMALL_GRAPHS["square with a diagonal"])
    trees = [edges_of(draw_tree(graph, 7, i)) for i in range(12_801)]
    pairs = Counter(pairwise(trees))
    assert len(pairs) == 64
    assert chisquare(list(pairs.values())).pvalue > 1e-4


@given(connected_graphs(), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_spanning_tree_has_all_nodes_and_only_edges_of_the_graph(graph, seed, iteration):
    parent = draw_tree(graph, seed, iteration)
    edges = edges_of(parent)
    assert len(edges) == graph.n_classes - 1
    assert edges <= set(graph.edges)
    LabelGraph(edges, range(graph.n_classes))  # raises unless connected


@given(connected_graphs(), st.data())
def test_blocks_are_connected_and_as_many_as_asked(graph, data):
    n_blocks = data.draw(st.integers(1, graph.n_classes))
    seed, iteration = (np.uint64(data.draw(st.integers(0, 2**63 - 1))) for _ in range(2))
    block_of = sample_connected_blocks(
        graph.start, graph.neighbour_indices, 0, n_blocks, seed, iteration
    )
    assert sorted(set(block_of.tolist())) == list(range(n_blocks))
    for block in range(n_blocks):
        members = set(np.flatnonzero(block_of == block).tolist())
        inside = [edge for edge in graph.edges if set(edge) <= members]
        LabelGraph(inside, sorted(members))  # raises unless connected
    assert list(dict.fromkeys(block_of.tolist())) == list(range(n_blocks))


def test_every_set_of_edges_is_cut_equally_often():
    # On a path the spanning tree is fixed, so the blocks show which edges were cut.
    path = LabelGraph([(i, i + 1) for i in range(5)])
    cuts = Counter()
    for iteration in range(4000):
        block_of = sample_connected_blocks(
            path.start, path.neighbour_indices, 2, 3, np.uint64(0), np.uint64(iteration)
        )
        cuts[tuple(np.flatnonzero(np.diff(block_of)).tolist())] += 1
    assert len(cuts) == 10
    assert chisquare(list(cuts.values())).pvalue > 1e-4
