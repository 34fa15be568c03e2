"""Graphs from files."""

import json

import pytest

from structent import LabelGraph, StructentError
from structent.inputs.structure_files import graph_from_file
from structent.structure import catalog

SQUARE = LabelGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])


@pytest.mark.parametrize("header", ["from,to\n", ""])
def test_a_list_of_edges_may_have_a_header_or_none(header, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(header + "a,b\nb,c\nc,d\nd,a\n")
    graph, notes = graph_from_file(path, ["a", "b", "c", "d"])
    assert graph == SQUARE
    assert notes == (
        () if header else (f"{path} has no header: its first row was read as an edge",)
    )


def test_the_classes_come_in_the_order_of_the_labels(tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("from\tto\n3\t1\n1\t2\n2\t4\n")
    graph, _ = graph_from_file(path, [1, 2, 3])
    assert graph.classes == (1, 2, 3, 4)


def test_json_with_edges_is_a_graph(tmp_path):
    path = tmp_path / "states.json"
    states = catalog.us_states()
    path.write_text(json.dumps({"nodes": states.classes, "edges": states.edges}))
    assert graph_from_file(path, states.classes)[0] == states


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("e.csv", "a,b,c\n1,2,3\n", "two columns and at least one edge under its header, got 3"),
        ("e.csv", "from,to\n", "got 2 columns and 1 rows"),
        ("e.csv", "from,to\na,b\nc,d\n", "must be connected, got 2 parts"),
        ("e.csv", "from,to\na,a\na,b\n", "'a' joined to itself"),
        ("e.json", "{", "must be JSON"),
        ("e.json", '{"edges": [["a"]]}', "pairs of classes"),
        ("e.json", "[]", "pairs of classes"),
    ],
)
def test_what_is_no_graph_is_refused(name, content, reason, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(StructentError, match=reason):
        graph_from_file(tmp_path / name, ["a", "b"])
