"""Samplers: the paper's variable random partition."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
)
from structent.structure import catalog
from tests.strategies import connected_graphs


@given(connected_graphs(), st.data())
def test_a_draw_is_the_singletons_and_one_partition_into_connected_blocks(graph, data):
    n_blocks = data.draw(st.integers(1, graph.n_classes))
    weight = data.draw(st.floats(0.0, 1.0))
    structure = SpanningTreePartitions(graph, n_blocks, weight).sample(data.draw(st.integers(0, 9)))
    drawn, singletons = structure.partitions
    assert structure.classes == graph.classes
    assert drawn.n_blocks == n_blocks
    assert singletons.is_singletons
    assert structure.weights.tolist() == [1.0 - weight, weight]
    for block in drawn.blocks:
        LabelGraph([edge for edge in graph.edges if set(edge) <= set(block)], block)


@given(connected_graphs(), st.data())
def test_what_is_drawn_without_checks_would_pass_them(graph, data):
    n_blocks = data.draw(st.integers(1, graph.n_classes))
    structure = SpanningTreePartitions(graph, n_blocks, 0.5).sample(data.draw(st.integers(0, 9)))
    checked = RandomPartition(
        structure.partitions, np.array(structure.weights), levels=structure.level_of
    )
    assert checked == structure
    assert RandomPartition.from_json(structure.to_json()) == structure


def test_a_draw_is_a_pure_function_of_seed_and_iteration():
    counties = catalog.california_counties()
    sampler = SpanningTreePartitions(counties, 10, 0.5, seed=3)
    forwards = [sampler.sample(i) for i in range(20)]
    backwards = [
        SpanningTreePartitions(counties, 10, 0.5, seed=3).sample(i) for i in reversed(range(20))
    ]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 20
    assert SpanningTreePartitions(counties, 10, 0.5, seed=4).sample(0) != forwards[0]


def test_draws_do_not_change_between_versions():
    # A restart must continue the same sequence after an update: these were drawn by version 0.1.
    circle = LabelGraph([(i, (i + 1) % 6) for i in range(6)])
    sampler = SpanningTreePartitions(circle, 3, 0.5, seed=1)
    drawn = [sampler.sample(i).partitions[0].block_of.tolist() for i in (0, 1, 10**12)]
    assert drawn == [[0, 0, 0, 1, 1, 2], [0, 0, 0, 1, 2, 0], [0, 0, 1, 2, 0, 0]]


def test_the_extreme_numbers_of_blocks():
    states = catalog.us_states()
    assert SpanningTreePartitions(states, 1, 0.5).sample(0).partitions[0].n_blocks == 1
    assert SpanningTreePartitions(states, 49, 0.5).sample(0).partitions[0].is_singletons


def test_a_sampler_survives_pickling_and_json():
    sampler = SpanningTreePartitions(catalog.us_states(), 7, 0.25, seed=11)
    for again in (
        pickle.loads(pickle.dumps(sampler)),  # noqa: S301  our own
        SpanningTreePartitions.from_json(sampler.to_json()),
    ):
        assert again == sampler
        assert again.sample(5) == sampler.sample(5)


def test_a_fixed_structure_is_the_same_at_every_iteration():
    months = catalog.months()
    sampler = FixedStructure(months)
    assert sampler.classes == months.classes
    assert all(sampler.sample(i) is months for i in range(3))


def test_another_singleton_weight_keeps_the_partitions_drawn():
    sampler = SpanningTreePartitions(catalog.us_states(), 7, 0.25, seed=11)
    again = sampler.with_singleton_weight(0.6)
    assert again.sample(5).weights.tolist() == [0.4, 0.6]
    assert again.sample(5).partitions == sampler.sample(5).partitions
    with pytest.raises(StructureError, match="singleton_weight must be between 0 and 1, got 2"):
        sampler.with_singleton_weight(2)


def test_a_fixed_structure_takes_another_singleton_weight():
    again = FixedStructure(catalog.months()).with_singleton_weight(0.4)
    assert isinstance(again, FixedStructure)
    assert again.sample(0).weights.round(9).tolist() == [0.2, 0.2, 0.2, 0.4]


def test_both_samplers_follow_the_protocol():
    assert isinstance(FixedStructure(catalog.months()), PartitionSampler)
    assert isinstance(SpanningTreePartitions(catalog.us_states(), 7, 0.5), PartitionSampler)
    assert not isinstance(catalog.months(), PartitionSampler)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.5), "n_blocks must be between 1 and 49, the number of classes, got 0"),
        ((50, 0.5), "n_blocks must be between 1 and 49, the number of classes, got 50"),
        ((2.5, 0.5), "n_blocks must be a whole number, got 2.5"),
        ((5, 1.5), "singleton_weight must be between 0 and 1, got 1.5"),
        ((5, 0.5, -1), "seed must be between 0"),
        ((5, 0.5, None), "seed must be a whole number, got None"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(StructureError, match=message):
        SpanningTreePartitions(catalog.us_states(), *arguments)


def test_wrong_iterations_and_graphs_are_refused():
    sampler = SpanningTreePartitions(catalog.us_states(), 5, 0.5)
    with pytest.raises(StructureError, match="iteration must be between 0"):
        sampler.sample(-1)
    with pytest.raises(StructureError, match=r"iteration must be a whole number, got 1.0"):
        sampler.sample(1.0)
    with pytest.raises(StructureError, match="graph must be a LabelGraph, got list"):
        SpanningTreePartitions([("a", "b")], 1, 0.5)


def test_a_scrambled_sampler_has_the_same_graph_with_other_classes_on_its_nodes():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=3)
    scrambled = sampler.scramble(np.random.default_rng(0))
    assert scrambled.classes == sampler.classes
    assert sorted(scrambled.graph.degrees) == sorted(sampler.graph.degrees)
    assert set(scrambled.graph.edges) != set(sampler.graph.edges)
    assert (scrambled.n_blocks, scrambled.singleton_weight, scrambled.seed) == (10, 0.5, 3)
