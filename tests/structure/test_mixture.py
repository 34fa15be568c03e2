"""The trivial structure and mixtures."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelGraph,
    PartitionSampler,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    mix,
    ordinal,
    structured_entropy,
    trivial,
)
from structent.structure import MixedPartitions, catalog, files
from tests.strategies import class_sets, distributions, random_partitions


@given(class_sets())
def test_definition_11_the_trivial_structure_has_only_the_singletons(classes):
    structure = trivial(classes)
    assert structure.n_partitions == 1
    assert structure.singleton_weight == 1.0
    assert structure.partitions[0].n_blocks == len(classes)


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
TREES = SpanningTreePartitions(CIRCLE, 3, 0.2, seed=1)
MIXED = mix(
    [circular(range(6), width=2), TREES, FixedStructure(ordinal(range(6)))], [0.5, 0.3, 0.2]
)


def test_a_mixture_with_a_sampler_mixes_what_is_drawn():
    assert isinstance(MIXED, MixedPartitions)
    assert isinstance(MIXED, PartitionSampler)
    for iteration in range(3):
        parts = [circular(range(6), width=2), TREES.sample(iteration), ordinal(range(6))]
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
    of_products = mix([TREES.product(sizes), circular(range(6)).product(sizes)], [0.4, 0.6])
    of_mixture = mix([TREES, circular(range(6))], [0.4, 0.6]).product(sizes)
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
        ([TREES, "circle"], None, "mix takes a RandomPartition or a sampler, got 'circle'"),
        ([TREES, ordinal(range(6))], [0.5, 0.4], "weights must sum to 1"),
        ([TREES, ordinal(range(5))], None, "partitions must cover the same classes"),
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
