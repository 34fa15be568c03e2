"""The layout of a graph."""

import numpy as np
from hypothesis import given, settings
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import pdist, squareform

from structent import LabelGraph, SpanningTreePartitions
from structent.plots.graph import layout
from structent.plots.order import adjacency
from structent.structure import catalog
from tests.plots.drawn import drawn, texts
from tests.strategies import connected_graphs


def stress(points, graph):
    distance = shortest_path(adjacency(graph), unweighted=True)[np.triu_indices(len(points), 1)]
    return (((pdist(points) - distance) / distance) ** 2).sum()


@settings(max_examples=25)
@given(connected_graphs(max_size=25))
def test_no_small_move_of_all_points_lowers_the_stress_much(graph):
    points = layout(graph)
    assert np.isfinite(points).all()
    rng = np.random.default_rng(0)
    before = stress(points, graph)
    for _ in range(5):
        moved = points + rng.normal(scale=0.3, size=points.shape)
        assert stress(moved, graph) > 0.98 * before


def test_a_square_is_drawn_as_a_square():
    square = layout(LabelGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
    sides = squareform(pdist(square))[[0, 1, 2, 3], [1, 2, 3, 0]]
    np.testing.assert_allclose(sides, sides[0], rtol=1e-3)


def test_the_layout_is_the_same_every_time():
    graph = LabelGraph([(i, (i + step) % 40) for i in range(40) for step in (1, 7)])
    np.testing.assert_array_equal(layout(graph), layout(graph))


def test_a_graph_names_every_county():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    assert set(texts(drawn(sampler))) == set(sampler.classes)


def test_a_graph_without_room_says_how_many_names_are_left_out():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    ax = drawn(sampler, size=(3, 3))
    n_left_out = 58 - len(ax.texts)
    assert n_left_out > 0
    assert f"{n_left_out} names left out" in ax.get_title("left")


def test_a_graph_of_two_classes_can_be_drawn():
    assert texts(drawn(SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5))) == ["a", "b"]


def test_the_first_draw_is_seen_and_neighbouring_blocks_differ():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    graph, block_of = sampler.graph, sampler.sample(0).partitions[0].block_of
    nodes = [line for line in drawn(sampler).lines if line.get_marker() != "None"]
    assert [len(line.get_xdata()) for line in nodes] == np.bincount(block_of).tolist()
    look = [(line.get_color(), line.get_marker()) for line in nodes]
    place = {label: number for number, label in enumerate(graph.classes)}
    for a, b in graph.edges:
        first, second = block_of[place[a]], block_of[place[b]]
        assert first == second or look[first] != look[second]


def test_a_graph_of_as_many_blocks_as_classes_can_be_drawn():
    graph = LabelGraph([(i, j) for i in range(30) for j in range(i)])  # all are neighbours
    assert len(texts(drawn(SpanningTreePartitions(graph, 30, 0.5)))) == 30
