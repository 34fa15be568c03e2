"""The orbit of a structure: every scrambled copy once, and the structure itself never."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    hierarchy,
    mix,
    ordinal,
    trivial,
)
from structent.errors import StructentError
from structent.significance import orbit as orbits
from structent.significance.orbit import checked_scrambled, draw_copies, identity, rearranged
from tests.strategies import class_sets, connected_graphs, random_partitions

CYCLE = LabelGraph([(i, (i + 1) % 6) for i in range(6)])


def copies(structure, n_copies, seed=0):
    return draw_copies(structure, n_copies, np.random.default_rng(seed))


def weighted_blocks(structure):
    """A structure as a multiset of partitions with weights, a partition as a set of sets."""
    found = [
        (frozenset(map(frozenset, partition.blocks)), round(float(weight), 9))
        for partition, weight in zip(structure.partitions, structure.weights, strict=True)
    ]
    return frozenset((pair, found.count(pair)) for pair in found)


def edge_set(sampler):
    return frozenset(frozenset(edge) for edge in sampler.graph.edges)


def orbit_by_hand(structure):
    """Every permutation of the classes tried, from the definition."""
    found = set()
    for new in permutations(structure.classes):
        found.add(
            weighted_blocks(structure.relabel(dict(zip(structure.classes, new, strict=True))))
        )
    return found


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (ordinal(["S", "M", "L"]), 3),  # 3! orders, each the same as its reverse
        (ordinal(range(5)), factorial(5) // 2),
        (circular(range(4), width=2), 3),  # a square has 8 symmetries
        (circular(range(6), width=2), factorial(6) // 12),
        (hierarchy({i: (i // 2,) for i in range(6)}), 15),  # ways to pair six
        (hierarchy({i: (i // 2, i // 4) for i in range(4)}), 3),
        (SpanningTreePartitions(CYCLE, 2, 0.5), factorial(6) // 12),
        (mix([ordinal(range(3)), trivial(range(3))]), 3),
        (trivial(range(5)), 1),
    ],
)
def test_the_orbit_has_n_factorial_structures_over_the_number_of_automorphisms(structure, size):
    orbit = copies(structure, 99)
    assert (orbit.size, len(orbit.copies)) == (size, size - 1)


@given(class_sets(max_size=5).flatmap(random_partitions))
@settings(max_examples=40)
def test_a_listed_orbit_is_that_of_all_permutations(structure):
    orbit = copies(structure, 200)
    expected = orbit_by_hand(structure)
    assert orbit.size == len(expected)
    assert {weighted_blocks(copy) for copy in orbit.copies} == expected - {
        weighted_blocks(structure)
    }


@given(random_partitions(classes=list("abcdefgh")), st.integers(0, 1000))
@settings(max_examples=40)
def test_copies_are_all_different_and_none_is_the_structure(structure, seed):
    drawn = [weighted_blocks(copy) for copy in copies(structure, 20, seed).copies]
    assert len({weighted_blocks(structure), *drawn}) == 1 + len(drawn)


@given(connected_graphs(max_size=9), st.integers(0, 1000))
@settings(max_examples=30)
def test_copies_of_a_sampler_have_different_graphs_of_the_same_degrees(graph, seed):
    sampler = SpanningTreePartitions(graph, 2, 0.5, seed=7)
    drawn = copies(sampler, 10, seed).copies
    assert len({edge_set(sampler), *map(edge_set, drawn)}) == 1 + len(drawn)
    for copy in drawn:
        assert sorted(copy.graph.degrees) == sorted(graph.degrees)
        assert (copy.classes, copy.n_blocks, copy.seed) == (sampler.classes, 2, 7)


@pytest.mark.parametrize("listed", [1000, 1])
def test_every_structure_of_the_orbit_is_drawn_as_often_whether_listed_or_not(listed, monkeypatch):
    monkeypatch.setattr(orbits, "_LISTED", listed)
    structure = hierarchy({i: (i // 2,) for i in range(6)})  # 14 others
    counts: dict = {}
    for seed in range(420):
        orbit = copies(structure, 2, seed)
        assert (orbit.size is None) == (listed == 1)
        for copy in orbit.copies:
            counts[identity(copy)] = counts.get(identity(copy), 0) + 1
    expected = 420 * 2 / 14
    assert len(counts) == 14
    assert max(abs(count - expected) for count in counts.values()) < 5 * expected**0.5


@given(random_partitions(), st.integers(0, 1000))
@settings(max_examples=40)
def test_rearranging_is_scrambling_with_the_places_drawn(structure, seed):
    places = np.random.default_rng(seed).permutation(structure.n_classes)
    assert rearranged(structure, places) == structure.scramble(np.random.default_rng(seed))
    assert identity(structure, places) == identity(rearranged(structure, places))


def test_rearranging_a_sampler_is_scrambling_its_graph_the_other_way_round():
    sampler = SpanningTreePartitions(CYCLE, 2, 0.5)
    places = np.random.default_rng(3).permutation(6)
    scrambled = sampler.scramble(np.random.default_rng(3))  # gives node i the class places[i]
    assert edge_set(rearranged(sampler, np.argsort(places))) == edge_set(scrambled)
    assert identity(sampler, places) == identity(rearranged(sampler, places))


def test_names_and_the_order_of_partitions_do_not_matter_but_weights_do():
    pairs = Partition.from_blocks([["a", "b"], ["c"]], names=["first", "rest"])
    classes = Partition.singletons(["a", "b", "c"])
    structure = RandomPartition([pairs, classes], [0.3, 0.7], levels=["pairs", "class"])
    unnamed = Partition.from_blocks([["a", "b"], ["c"]])
    assert identity(structure) == identity(RandomPartition([classes, unnamed], [0.7, 0.3]))
    assert identity(structure) != identity(RandomPartition([classes, unnamed], [0.6, 0.4]))


def test_the_same_seed_draws_the_same_copies():
    first, second = (copies(circular(range(8), width=2), 10, seed=5) for _ in range(2))
    assert first.copies == second.copies


def test_what_cannot_be_scrambled_is_refused():
    with pytest.raises(StructentError, match=r"one that can be scrambled.*got FixedStructure"):
        checked_scrambled(FixedStructure(trivial(["a", "b"])))
