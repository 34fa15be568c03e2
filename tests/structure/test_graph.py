"""Graphs of labels, and what is refused."""

import pytest
from hypothesis import given

from structent import LabelError, LabelGraph, StructureError
from tests.strategies import connected_graphs


@given(connected_graphs(max_size=30))
def test_neighbours_are_those_that_share_an_edge(graph):
    for label in graph.classes:
        expected = {b for a, b in graph.edges if a == label}
        expected |= {a for a, b in graph.edges if b == label}
        assert set(graph.neighbours(label)) == expected
        assert graph.degrees[graph.classes.index(label)] == len(expected)


@given(connected_graphs(max_size=30))
def test_the_order_of_edges_does_not_matter(graph):
    turned = LabelGraph([(b, a) for a, b in reversed(graph.edges)], graph.classes)
    assert turned == graph
    assert hash(turned) == hash(graph)


@pytest.mark.requires("networkx")
def test_a_networkx_graph_is_taken():
    import networkx as nx

    graph = nx.cycle_graph(5)
    found = LabelGraph(graph)
    assert found.classes == (0, 1, 2, 3, 4)
    assert set(found.neighbours(0)) == {1, 4}
    assert LabelGraph(graph, classes=[4, 3, 2, 1, 0]).classes == (4, 3, 2, 1, 0)
    with pytest.raises(StructureError, match="must be undirected"):
        LabelGraph(nx.DiGraph([(0, 1)]))
    with pytest.raises(StructureError, match="got 0 joined to itself"):
        LabelGraph(nx.Graph([(0, 1), (0, 0)]))
    with pytest.raises(StructureError, match="got 0 - 1 twice"):
        LabelGraph(nx.MultiGraph([(0, 1), (0, 1)]))


def test_a_single_class_is_a_graph():
    assert LabelGraph([], classes=["a"]).neighbours("a") == ()


@pytest.mark.parametrize(
    ("edges", "classes", "message"),
    [
        ([("a", "a")], None, "an edge must join two classes, got 'a' joined to itself"),
        ([("a", "b"), ("b", "a")], None, "an edge must be listed once, got 'b' - 'a' twice"),
        ([("a", "b", "c")], None, r"an edge must be a pair of classes, got \('a', 'b', 'c'\)"),
        (["ab"], None, "an edge must be a pair of classes, got 'ab'"),
        ([], None, "at least one class, got none"),
        (
            [("a", "b"), ("c", "d")],
            None,
            r"must be connected, got 2 parts: \{'a', 'b'\}, \{'c', 'd'\}; add an edge",
        ),
        ([("a", "b")], ["a", "b", "x"], r"2 parts: \{'a', 'b'\}, \{'x'\}"),
        ([("a", "b")], list("abcdefghij"), r"got 9 parts: .*, \.\.\.; add an edge"),
        ([("a", 1.5)], None, "got 1.5 of type float"),
    ],
)
def test_what_is_no_graph_is_refused(edges, classes, message):
    with pytest.raises(StructureError, match=message):
        LabelGraph(edges, classes)


def test_an_edge_to_an_unknown_class_is_named():
    with pytest.raises(LabelError, match=r"'Napaa' is not a class .* did you mean 'Napa'"):
        LabelGraph([("Marin", "Napaa")], ["Marin", "Napa"])
