"""The similarity of classes: its laws, its sparse form, and its expectation for samplers."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    mix,
    ordinal,
    trivial,
)
from structent.structure import catalog
from structent.structure.similarity import SimilarityFactor, mean_similarity, similarity_of
from tests.strategies import connected_graphs, random_partitions

PLANTS = hierarchy({"oak": ("tree",), "ash": ("tree",), "rose": ("flower",)}, weights=[0.4, 0.6])
COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=3)
RING = LabelGraph([(i, (i + 1) % 6) for i in range(6)])


class OwnSampler:
    """A sampler of a user's own: nothing but what the protocol asks for."""

    classes = PLANTS.classes
    structure = PLANTS  # of no meaning to others

    def sample(self, iteration):
        return PLANTS.with_singleton_weight(0.2 if iteration % 2 else 0.4)


def by_definition(structure):
    """The weight of the partitions that have both classes in one block, pair by pair."""
    k = structure.n_classes
    expected = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            for partition, weight in zip(structure.partitions, structure.weights, strict=True):
                expected[i, j] += weight * (partition.block_of[i] == partition.block_of[j])
    return expected


# Fixed structures


@given(random_partitions())
def test_similarity_is_the_weight_that_keeps_two_classes_together(structure):
    np.testing.assert_allclose(structure.similarity(), by_definition(structure), atol=1e-12)


@given(random_partitions())
def test_similarity_is_positive_semi_definite_with_ones_on_its_diagonal(structure):
    similarity = structure.similarity()
    assert np.linalg.eigvalsh(similarity)[0] > -1e-12
    assert (np.diag(similarity) == 1.0).all()
    assert (similarity == similarity.T).all()


@given(random_partitions())
def test_similarity_is_the_gram_matrix_of_the_sparse_form(structure):
    factor = SimilarityFactor.of(structure)
    matrix = factor.matrix.toarray()
    assert factor.matrix.nnz == len(factor.weights) * structure.n_classes
    gram = matrix @ matrix.T + factor.singleton_weight * np.eye(structure.n_classes)
    np.testing.assert_allclose(gram, structure.similarity(), atol=1e-12)


def test_the_similarity_of_the_trivial_structure_is_the_identity():
    np.testing.assert_array_equal(trivial(range(5)).similarity(), np.eye(5))


@given(random_partitions(), random_partitions())
def test_similarities_multiply_in_a_product(first, second):
    expected = np.kron(first.similarity(), second.similarity())
    np.testing.assert_allclose(first.product(second).similarity(), expected, atol=1e-12)


@given(st.data(), st.floats(0.0, 1.0))
def test_similarities_are_averaged_in_a_mixture(data, share):
    first = data.draw(random_partitions())
    second = data.draw(random_partitions(first.classes))
    mixed = mix([first, second], [share, 1.0 - share])
    expected = share * first.similarity() + (1.0 - share) * second.similarity()
    np.testing.assert_allclose(mixed.similarity(), expected, atol=1e-12)


def test_months_are_as_similar_as_they_are_near():
    similarity = catalog.months(singleton_weight=0.4).similarity()
    np.testing.assert_allclose(similarity[0, [1, 2, 3, 10, 11]], [0.4, 0.2, 0.0, 0.2, 0.4])


def test_the_sparse_form_of_many_classes_needs_no_table():
    leaves = {c: (c // 1000, c // 100, c // 10) for c in range(10_000)}
    factor = SimilarityFactor.of(hierarchy(leaves))
    assert factor.matrix.nnz == 3 * 10_000
    assert factor.n_blocks == 10 + 100 + 1000
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10_000, 2))
    own, of_blocks = factor.block_vectors(vectors)
    np.testing.assert_allclose(factor.class_vectors(own, of_blocks), vectors, atol=1e-9)


# The inverse, by blocks


@given(random_partitions(), st.integers(0, 9))
def test_block_vectors_give_the_class_vectors_with_the_least_squared_norm(structure, seed):
    structure = mix([structure, trivial(structure.classes)], [0.7, 0.3])
    factor = SimilarityFactor.of(structure)
    vectors = np.random.default_rng(seed).normal(size=(structure.n_classes, 3))
    own, of_blocks = factor.block_vectors(vectors)
    np.testing.assert_allclose(factor.class_vectors(own, of_blocks), vectors, atol=1e-9)
    penalty = np.trace(vectors.T @ np.linalg.inv(structure.similarity()) @ vectors)
    assert (own**2).sum() + (of_blocks**2).sum() == pytest.approx(penalty, rel=1e-9)


def test_block_vectors_need_singletons():
    factor = SimilarityFactor.of(ordinal(range(4), singleton_weight=0.0))
    with pytest.raises(StructureError, match=r"singleton weight above 0, got 0; with_singleton"):
        factor.block_vectors(np.ones((4, 1)))


# Samplers


def trees_of(graph):
    """Every spanning tree of a small graph, as edges."""
    k = graph.n_classes
    chosen = combinations(graph.edges, k - 1)
    return [edges for edges in chosen if nx.is_connected(nx.Graph(edges)) and _covers(edges, k)]


def _covers(edges, k):
    return len({node for edge in edges for node in edge}) == k


def expected_by_enumeration(sampler):
    """The mean over every spanning tree of the graph, and every way to cut it."""
    k = len(sampler.classes)
    together, count = np.zeros((k, k)), 0
    for tree in trees_of(sampler.graph):
        for cut in combinations(tree, sampler.n_blocks - 1):
            rest = nx.Graph()
            rest.add_nodes_from(range(k))
            rest.add_edges_from(set(tree) - set(cut))
            for block in nx.connected_components(rest):
                together[np.ix_(sorted(block), sorted(block))] += 1
            count += 1
    weight = sampler.singleton_weight
    return weight * np.eye(k) + (1.0 - weight) * together / count


@pytest.mark.parametrize("n_blocks", [1, 2, 4, 6])
@pytest.mark.parametrize(
    "graph",
    [RING, LabelGraph([(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)])],
    ids=["ring", "tree"],
)
def test_on_a_tree_and_on_a_ring_the_expectation_is_exact(graph, n_blocks):
    sampler = SpanningTreePartitions(graph, n_blocks, 0.3)
    expected = expected_by_enumeration(sampler)
    np.testing.assert_allclose(sampler.similarity(n_draws=1), expected, atol=1e-12)


def test_on_other_graphs_it_is_the_mean_over_the_stated_draws():
    grid = LabelGraph([(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)])
    sampler = SpanningTreePartitions(grid, 3, 0.3, seed=1)
    counted = np.mean([by_definition(sampler.sample(i)) for i in range(1000)], axis=0)
    np.testing.assert_allclose(sampler.similarity(), counted, atol=1e-12)
    # Four standard errors of a share of 1000 draws.
    np.testing.assert_allclose(sampler.similarity(), expected_by_enumeration(sampler), atol=0.063)


@given(connected_graphs(max_size=12), st.integers(0, 3))
@settings(max_examples=20)
def test_the_similarity_of_a_sampler_is_a_pure_function_of_its_seed(graph, seed):
    first, second = (
        SpanningTreePartitions(graph, 2, 0.5, seed).similarity(n_draws=20) for _ in range(2)
    )
    assert (first == second).all()
    assert np.linalg.eigvalsh(first)[0] > 0.5 - 1e-12


MADE_OF_OTHERS = {
    "fixed": FixedStructure(PLANTS),
    "mixture": mix([SpanningTreePartitions(RING, 2, 0.2), circular(range(6)[::-1], 2)], [0.3, 0.7]),
    "product": PLANTS.product(SpanningTreePartitions(RING, 3, 0.25)),
    "scrambled": SpanningTreePartitions(RING, 2, 0.2).product(PLANTS).scramble(
        np.random.default_rng(1)
    ),
    "scrambled mixture": mix([SpanningTreePartitions(RING, 2, 0.2), trivial(range(6))]).scramble(
        np.random.default_rng(2)
    ),
}  # fmt: skip


@pytest.mark.parametrize("singleton_weight", [None, 0.1, 1.0])
@pytest.mark.parametrize("name", MADE_OF_OTHERS)
def test_what_samplers_are_made_of_tells_their_similarity(name, singleton_weight):
    sampler = MADE_OF_OTHERS[name]
    if singleton_weight is not None:
        sampler = sampler.with_singleton_weight(singleton_weight)
    counted = mean_similarity(sampler, 2000)
    # Exact, since rings are: four standard errors of the share that was counted.
    np.testing.assert_allclose(sampler.similarity(n_draws=1), counted, atol=0.045)
    assert (np.diag(sampler.similarity()) == 1.0).all()


def test_samplers_of_a_users_own_are_counted():
    expected = 0.5 * sum(PLANTS.with_singleton_weight(w).similarity() for w in (0.2, 0.4))
    np.testing.assert_allclose(similarity_of(OwnSampler()), expected, atol=1e-12)
    twice = mix([OwnSampler(), PLANTS])
    np.testing.assert_allclose(
        twice.similarity(), 0.5 * (expected + PLANTS.similarity()), atol=1e-12
    )
    # Its singletons vary, so that those of the mixture can be set in each draw only.
    expected = PLANTS.with_singleton_weight(0.3).similarity()
    np.testing.assert_allclose(twice.with_singleton_weight(0.3).similarity(), expected, atol=1e-12)


def test_a_number_of_draws_that_is_none_is_refused():
    with pytest.raises(StructureError, match="n_draws must be between 1 and"):
        COUNTIES.similarity(n_draws=0)


@pytest.mark.parametrize("sampler", [COUNTIES, MADE_OF_OTHERS["mixture"], OwnSampler()])
def test_the_factor_of_a_sampler_is_a_root_of_its_similarity(sampler):
    factor = SimilarityFactor.of(sampler)
    gram = factor.matrix @ factor.matrix.T + factor.singleton_weight * np.eye(factor.n_classes)
    np.testing.assert_allclose(gram, similarity_of(sampler), atol=1e-9)
    vectors = np.random.default_rng(0).normal(size=(factor.n_classes, 2))
    parts = factor.block_vectors(vectors)
    np.testing.assert_allclose(factor.class_vectors(*parts), vectors, atol=1e-8)


def test_the_factor_of_a_fixed_structure_has_its_blocks():
    assert SimilarityFactor.of(FixedStructure(PLANTS)).n_blocks == 2


def test_a_sampler_of_too_many_classes_is_told_how_to_be_fixed():
    path = LabelGraph([(i, i + 1) for i in range(2500)])
    sampler = SpanningTreePartitions(path, 10, 0.5)
    with pytest.raises(StructureError, match=r"at most 2000 of them, got 2501; fix some of its"):
        SimilarityFactor.of(sampler)
    fixed = mix([sampler.sample(i) for i in range(20)])
    assert isinstance(fixed, RandomPartition)
    assert SimilarityFactor.of(fixed).n_blocks == 200
