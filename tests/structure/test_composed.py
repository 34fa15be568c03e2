"""Structures made of others: mixtures, products and scrambled copies."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    mix,
    ordinal,
    structured_entropy,
    trivial,
)
from structent.structure import (
    MixedPartitions,
    ProductPartitions,
    ScrambledPartitions,
    catalog,
    files,
)
from tests.strategies import class_sets, connected_graphs, distributions, random_partitions


@given(st.data(), st.floats(0.0, 1.0))
def test_the_entropy_of_a_mixture_is_the_mixture_of_the_entropies(data, share):
    classes = data.draw(class_sets())
    first, second = (data.draw(random_partitions(classes)) for _ in range(2))
    p = data.draw(distributions(len(classes)))
    mixed = mix([first, second], [share, 1 - share])
    expected = share * structured_entropy(p, first) + (1 - share) * structured_entropy(p, second)
    np.testing.assert_allclose(structured_entropy(p, mixed), expected, rtol=1e-10, atol=1e-12)


def test_mixed_levels_of_one_name_are_kept_apart_and_the_singletons_shared():
    hours = range(24)
    mixed = mix([circular(hours, 3), circular(hours, 6), ordinal(hours), ordinal(hours)])
    assert list(mixed.levels) == ["cut", "cut (2)", "width 6", "width 3", "class"]
    assert len(mixed.levels["class"]) == 4


def test_a_hierarchy_mixed_with_the_trivial_structure_keeps_its_distances():
    cifar = catalog.cifar100()
    mixed = mix([cifar, trivial(cifar.classes)])
    assert mixed.distance("oak_tree", "maple_tree") == 1
    assert mixed.distance("oak_tree", "trout") == 4


# Mixtures that hold samplers

CIRCLE = LabelGraph([(i, (i + 1) % 6) for i in range(6)])
TREE_CLASSES = SpanningTreePartitions(CIRCLE, 3, 0.2, seed=1)
MIXED = mix(
    [circular(range(6), width=2), TREE_CLASSES, FixedStructure(ordinal(range(6)))], [0.5, 0.3, 0.2]
)


def test_a_mixture_with_a_sampler_mixes_what_is_drawn():
    assert isinstance(MIXED, MixedPartitions)
    assert isinstance(MIXED, PartitionSampler)
    for iteration in range(3):
        parts = [circular(range(6), width=2), TREE_CLASSES.sample(iteration), ordinal(range(6))]
        assert MIXED.sample(iteration) == mix(parts, [0.5, 0.3, 0.2])
    assert len({MIXED.sample(i) for i in range(9)}) > 1


def test_a_mixture_of_samplers_is_a_value(tmp_path):
    MIXED.save(tmp_path / "mixed.json")
    for again in (
        pickle.loads(pickle.dumps(MIXED)),  # noqa: S301  our own
        MixedPartitions.load(tmp_path / "mixed.json"),
        files.structure_from_json(MIXED.to_json()),
    ):
        assert again == MIXED
        assert hash(again) == hash(MIXED)
        assert again.sample(7) == MIXED.sample(7)


def test_another_singleton_weight_of_a_mixture_keeps_the_ratios_of_the_others():
    adjusted = MIXED.with_singleton_weight(0.8)
    assert adjusted.singleton_weight == pytest.approx(0.8)
    assert adjusted.sample(2) == MIXED.sample(2).with_singleton_weight(0.8)
    assert adjusted != MIXED


def test_all_parts_of_a_mixture_are_scrambled_alike():
    scrambled = MIXED.scramble(np.random.default_rng(2))
    assert scrambled.sample(4) == MIXED.sample(4).scramble(np.random.default_rng(2))
    assert files.structure_from_json(scrambled.to_json()) == scrambled


def test_a_mixture_of_products_is_the_product_of_the_mixture():
    sizes = ordinal(["S", "L"])
    of_products = mix([TREE_CLASSES.product(sizes), circular(range(6)).product(sizes)], [0.4, 0.6])
    of_mixture = mix([TREE_CLASSES, circular(range(6))], [0.4, 0.6]).product(sizes)
    p = np.random.default_rng(0).dirichlet(np.ones(12))
    for iteration in range(3):
        np.testing.assert_allclose(
            structured_entropy(p, of_products.sample(iteration)),
            structured_entropy(p, of_mixture.sample(iteration)),
        )


@pytest.mark.parametrize(
    ("structures", "weights", "message"),
    [
        ([], None, "mix needs one or more structures, got none"),
        (
            [TREE_CLASSES, "circle"],
            None,
            "each structure of mix must be a RandomPartition or a sampler, got str",
        ),
        ([TREE_CLASSES, ordinal(range(6))], [0.5, 0.4], "weights must sum to 1"),
        ([TREE_CLASSES, ordinal(range(5))], None, "partitions must cover the same classes"),
    ],
)
def test_wrong_mixtures_are_refused_before_anything_is_drawn(structures, weights, message):
    with pytest.raises(StructureError, match=message):
        mix(structures, weights)


def test_a_mixed_level_called_class_is_kept_apart_from_the_singletons():
    paths = {"cat": ("mammal",), "dog": ("mammal",), "trout": ("fish",)}
    mixed = mix([hierarchy(paths, level_names=["class"]), trivial(paths)])
    assert list(mixed.levels) == ["class", "label"]
    assert [len(partitions) for partitions in mixed.levels.values()] == [1, 2]


@pytest.mark.parametrize("given", [trivial(["a", "b"]), (s for s in [trivial(["a", "b"])])])
def test_a_mixture_is_of_a_list(given):
    with pytest.raises(StructureError, match="mix takes a list of structures, got"):
        mix(given)


SEASONS = circular(["spring", "summer", "autumn", "winter"], width=2)
SQUARE = LabelGraph([(1, 2), (2, 3), (3, 4), (4, 1)])
TREES = SpanningTreePartitions(SQUARE, n_blocks=2, singleton_weight=0.5, seed=3)
OTHER_TREES = SpanningTreePartitions(LabelGraph([("a", "b"), ("b", "c")]), 2, 0.25, seed=4)

PRODUCTS = {
    "a structure and a sampler": SEASONS.product(TREES),
    "a sampler and a structure": TREES.product(SEASONS),
    "two samplers": TREES.product(OTHER_TREES),
    "a mixture and a sampler": mix([TREES, trivial(SQUARE.classes)]).product(OTHER_TREES),
    "a product and a structure": TREES.product(OTHER_TREES).product(SEASONS),
    "a fixed structure and a sampler": FixedStructure(SEASONS).product(TREES),
    "another weight": SEASONS.product(TREES).with_singleton_weight(0.6),
    "scrambled": SEASONS.product(TREES).scramble(np.random.default_rng(0)),
    "a scrambled copy and a sampler": FixedStructure(SEASONS)
    .product(OTHER_TREES)
    .scramble(np.random.default_rng(1))
    .product(TREES),
}
COMPOSED = pytest.mark.parametrize("sampler", PRODUCTS.values(), ids=PRODUCTS.keys())


@given(random_partitions(), connected_graphs(max_size=6), st.integers(0, 9))
@settings(max_examples=40)
def test_a_product_draws_the_product_of_what_both_draw(structure, graph, iteration):
    trees = SpanningTreePartitions(graph, min(2, graph.n_classes), 0.5)
    drawn = trees.sample(iteration)
    assert structure.product(trees).sample(iteration) == structure.product(drawn)
    assert trees.product(structure).sample(iteration) == drawn.product(structure)
    other = SpanningTreePartitions(graph, 1, 0.2, seed=1)
    assert trees.product(other).sample(iteration) == drawn.product(other.sample(iteration))


@COMPOSED
def test_a_draw_is_a_pure_function_of_the_iteration(sampler):
    again = pickle.loads(pickle.dumps(sampler))  # noqa: S301  our own
    forwards = [sampler.sample(i) for i in range(5)]
    assert forwards == [again.sample(i) for i in reversed(range(5))][::-1]
    assert len(set(forwards)) > 1


@COMPOSED
def test_what_is_drawn_would_pass_the_checks_of_a_structure(sampler):
    drawn = sampler.sample(2)
    assert drawn.classes == sampler.classes
    assert RandomPartition.from_json(drawn.to_json()) == drawn
    assert drawn.weights.sum() == pytest.approx(1.0)


@COMPOSED
def test_it_follows_the_protocol_and_is_a_value(sampler, tmp_path):
    assert isinstance(sampler, PartitionSampler)
    sampler.save(tmp_path / "sampler.json")
    for again in (
        pickle.loads(pickle.dumps(sampler)),  # noqa: S301  our own
        type(sampler).from_json(sampler.to_json()),
        type(sampler).load(tmp_path / "sampler.json"),
        files.structure_from_json(sampler.to_json()),
    ):
        assert again == sampler
        assert hash(again) == hash(sampler)
        assert again.sample(3) == sampler.sample(3)
    assert sampler != sampler.with_singleton_weight(0.123)


@COMPOSED
def test_another_singleton_weight_keeps_the_partitions_and_the_ratios_of_the_others(sampler):
    before, after = sampler.sample(4), sampler.with_singleton_weight(0.9).sample(4)
    assert after.partitions == before.partitions
    assert after.singleton_weight == pytest.approx(0.9)
    assert sampler.with_singleton_weight(0.9).singleton_weight == pytest.approx(0.9)
    coarse = [not partition.is_singletons for partition in before.partitions]
    ratio = after.weights[coarse] / before.weights[coarse]
    np.testing.assert_allclose(ratio, ratio[0])


def test_the_weight_of_the_pairs_by_themselves_is_the_product_of_the_two():
    assert SEASONS.product(TREES).singleton_weight == pytest.approx(0.3 * 0.5)
    assert TREES.product(OTHER_TREES).singleton_weight == pytest.approx(0.5 * 0.25)


def test_draws_of_two_samplers_are_independent():
    # Each draw of the circle of four is one of six; over many draws each pair comes up as often.
    pairs = TREES.product(SpanningTreePartitions(SQUARE, 2, 0.5, seed=8))
    drawn = [pairs.sample(i).partitions[0] for i in range(3600)]
    _, counts = np.unique([hash(partition) for partition in drawn], return_counts=True)
    assert len(counts) == 36
    assert ((counts - 100) ** 2 / 100).sum() < 66.6  # chi-square, 35 degrees, p = 0.001


def test_samplers_with_one_seed_are_refused_for_their_draws_would_depend_on_each_other():
    same = SpanningTreePartitions(SQUARE, 2, 0.5, seed=3)
    for other in (same, SEASONS.product(same), mix([same, trivial(SQUARE.classes)])):
        with pytest.raises(StructureError, match=r"must have different seeds.* got seed 3 in both"):
            TREES.product(other)


def test_a_scrambled_sampler_shuffles_its_pairs_as_a_scrambled_structure_does():
    sampler = SEASONS.product(TREES)
    scrambled = sampler.scramble(np.random.default_rng(5))
    for iteration in range(3):
        wanted = sampler.sample(iteration).scramble(np.random.default_rng(5))
        assert scrambled.sample(iteration) == wanted
    assert scrambled.classes == sampler.classes


def test_a_sampler_may_be_scrambled_twice():
    scrambled = SEASONS.product(TREES).scramble(np.random.default_rng(5))
    twice = scrambled.scramble(np.random.default_rng(6))
    assert twice.sample(1) == scrambled.sample(1).scramble(np.random.default_rng(6))


def test_a_scrambled_fixed_structure_is_fixed():
    scrambled = FixedStructure(SEASONS).scramble(np.random.default_rng(5))
    assert scrambled == FixedStructure(SEASONS.scramble(np.random.default_rng(5)))
    assert FixedStructure.from_json(scrambled.to_json()) == scrambled
    assert scrambled.singleton_weight == SEASONS.singleton_weight


class Alternating:
    """A sampler of someone else's."""

    classes = SEASONS.classes

    def sample(self, iteration):
        return SEASONS if iteration % 2 else SEASONS.with_singleton_weight(0.9)


def test_samplers_of_others_can_be_multiplied_but_not_saved():
    pairs = TREES.product(Alternating())
    assert pairs.sample(1) == TREES.sample(1).product(SEASONS)
    with pytest.raises(StructureError, match="got Alternating, which has no file format"):
        pairs.to_json()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SEASONS.product("months"),
            "each part of a product must be a RandomPartition or a sampler, got",
        ),
        (
            lambda: TREES.product(SQUARE),
            "each part of a product must be a RandomPartition or a sampler, got",
        ),
        (
            lambda: ProductPartitions(SEASONS, TREES, 1.5),
            "singleton_weight must be between 0 and 1, got 1.5",
        ),
        (
            lambda: ScrambledPartitions(TREES, (0, 1, 1, 2)),
            r"places must be the numbers from 0 to 3 in some order, got \[0, 1, 1, 2\]",
        ),
        (
            lambda: ProductPartitions.from_json(TREES.to_json()),
            "of kind 'product_partitions', got kind 'spanning_tree_partitions'",
        ),
        (
            lambda: files.structure_from_json('{"format": "structent-structure", "version": 1}'),
            "a structure must be of kind .*'product_partitions'.*, got None",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(StructureError, match=message):
        make()
