"""The order in which the classes of a structure are shown."""

import numpy as np
from hypothesis import given

from structent import SpanningTreePartitions, circular, hierarchy
from structent.plots import structure_order
from structent.structure import catalog
from tests.strategies import ragged_paths


@given(ragged_paths())
def test_in_a_hierarchy_every_block_is_a_run(paths):
    structure = hierarchy(paths)
    order = structure_order(structure)
    assert sorted(order) == list(range(structure.n_classes))
    for partition in structure.partitions:
        block_of = partition.block_of[order]
        n_runs = 1 + int((np.diff(block_of) != 0).sum())
        assert n_runs == partition.n_blocks


def test_in_a_graph_neighbours_are_closer_than_in_the_alphabet():
    graph = catalog.california_counties()
    place = np.argsort(structure_order(SpanningTreePartitions(graph, 10, 0.5)))
    index = {label: k for k, label in enumerate(graph.classes)}
    ends = np.array([[index[a], index[b]] for a, b in graph.edges])
    in_order = np.abs(place[ends[:, 0]] - place[ends[:, 1]])
    assert in_order.mean() < 0.5 * np.abs(ends[:, 0] - ends[:, 1]).mean()
    assert sorted(place) == list(range(58))


def test_a_circle_keeps_its_own_order():
    assert structure_order(circular(range(12))).tolist() == list(range(12))
