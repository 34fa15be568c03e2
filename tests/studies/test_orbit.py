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
from structent.studies import orbit as orbits
from structent.studies.orbit import checked_scrambled, draw_copies, identity, rearranged
from tests.strategies import class_sets, connected_graphs, random_partitions

CYCLE = LabelGraph([(i, (i + 1) % 6) for i in range(6)])
PATH = SpanningTreePartitions(LabelGraph([(0, 1), (1, 2), (2, 3)]), 2, 0.5)
STAR = SpanningTreePartitions(LabelGraph([(0, 1), (0, 2), (0, 3)]), 2, 0.5)
# Of two classes there is one graph, and one way to draw from it.
PAIR = SpanningTreePartitions(LabelGraph([("x", "y")]), 1, 0.5)
SIZES_OF_PAIRS = ordinal(["S", "M", "L"]).product(PAIR)
COMPOSED = [
    FixedStructure(ordinal(range(4))),
    mix([ordinal(range(4)), PATH], [0.3, 0.7]),
    mix([ordinal(range(4)), STAR]).with_singleton_weight(0.2),
    SIZES_OF_PAIRS,
    SIZES_OF_PAIRS.with_singleton_weight(0.4),
    SIZES_OF_PAIRS.scramble(np.random.default_rng(1)),
]


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
        (FixedStructure(ordinal(range(4))), 12),
        (PATH, 12),
        (STAR, 4),
        (mix([ordinal(range(4)), PATH]), 12),  # turned round, both stay what they are
        (mix([ordinal(range(4)), STAR]), 24),
        (mix([PATH, PATH.scramble(np.random.default_rng(0))]), 24),
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


@pytest.mark.parametrize("n_blocks", [1, 2])
def test_the_orbit_of_a_product_is_that_of_all_permutations_of_the_pairs(n_blocks):
    pair = SpanningTreePartitions(PAIR.graph, n_blocks, 0.5)
    structure = ordinal(["S", "M", "L"]).product(pair)
    expected = orbit_by_hand(structure.sample(0))  # every draw is the same
    orbit = copies(structure, 999)
    assert orbit.size == len(expected)
    assert {weighted_blocks(copy.sample(0)) for copy in orbit.copies} == expected - {
        weighted_blocks(structure.sample(0))
    }


@pytest.mark.parametrize("structure", COMPOSED, ids=lambda structure: type(structure).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_a_sampler_made_of_others_is_rearranged_as_its_draws_are(structure, seed):
    places = np.random.default_rng(seed).permutation(len(structure.classes))
    found = rearranged(structure, places)
    for iteration in range(3):
        assert found.sample(iteration) == rearranged(structure.sample(iteration), places)
    assert identity(found) == identity(structure, places)
    back = rearranged(found, np.argsort(places))
    assert identity(back) == identity(structure)


def test_samplers_made_of_others_are_told_apart_by_all_that_they_are_made_of():
    made = [
        mix([ordinal(range(4)), PATH]),
        mix([ordinal(range(4)), PATH], [0.4, 0.6]),
        mix([ordinal(range(4)), STAR]),
        mix([ordinal(range(4)), PATH]).with_singleton_weight(0.2),
        mix([ordinal(range(4)), PATH]).scramble(np.random.default_rng(0)),
        *(part.product(PAIR) for part in (ordinal(range(4)), trivial(range(4)))),
        ordinal(range(4)).product(PAIR.with_singleton_weight(0.1)),
        ordinal(range(4)).product(PAIR).with_singleton_weight(0.1),
    ]
    assert len({identity(structure) for structure in made}) == len(made)


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


class OwnSampler:
    classes = ("a", "b")

    def sample(self, _iteration):
        return trivial(self.classes)


@pytest.mark.parametrize(
    "structure", [OwnSampler(), mix([OwnSampler(), trivial(["a", "b"])]), "circle"]
)
def test_what_cannot_be_scrambled_is_refused(structure):
    kind = "str" if structure == "circle" else "OwnSampler"
    with pytest.raises(StructentError, match=rf"one that can be scrambled.*got {kind}"):
        checked_scrambled(structure)
