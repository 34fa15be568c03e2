"""Random partitions: what they hold, what is made from them, what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import (
    LabelError,
    Partition,
    RandomPartition,
    StructureError,
    circular,
    hierarchy,
    mix,
    ordinal,
    trivial,
)
from structent.structure import catalog
from tests.strategies import class_sets, partitions, random_partitions, weights


@given(class_sets())
def test_definition_11_the_trivial_structure_has_only_the_singletons(classes):
    structure = trivial(classes)
    assert structure.n_partitions == 1
    assert structure.singleton_weight == 1.0
    assert structure.partitions[0].n_blocks == len(classes)


@given(random_partitions())
def test_block_of_and_weights_are_all_there_is(structure):
    assert structure.block_of.shape == (structure.n_partitions, structure.n_classes)
    for ids, partition in zip(structure.block_of, structure.partitions, strict=True):
        assert Partition(structure.classes, ids) == partition
    assert structure.block_of.dtype == np.int32
    np.testing.assert_allclose(structure.weights.sum(), 1.0, atol=1e-9)


@given(random_partitions())
def test_a_structure_survives_pickling_and_stays_frozen(structure):
    again = pickle.loads(pickle.dumps(structure))  # noqa: S301  our own
    assert again == structure
    assert hash(again) == hash(structure)
    for array in (again.weights, again.block_of):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@given(random_partitions())
def test_the_singleton_weight_is_that_of_the_singleton_partitions(structure):
    expected = sum(
        weight
        for partition, weight in zip(structure.partitions, structure.weights, strict=True)
        if all(len(block) == 1 for block in partition.blocks)
    )
    np.testing.assert_allclose(structure.singleton_weight, expected)


@given(class_sets(min_size=2), st.data())
def test_partitions_are_aligned_by_name_not_by_place(classes, data):
    first = data.draw(partitions(classes))
    shuffled = data.draw(st.permutations(classes))
    second = data.draw(partitions(shuffled))
    structure = RandomPartition([first, second])
    assert structure.classes == tuple(classes)
    assert set(map(frozenset, structure.partitions[1].blocks)) == set(map(frozenset, second.blocks))


@given(random_partitions(), st.floats(0.0, 1.0))
def test_with_singleton_weight_keeps_the_ratios_of_the_others(structure, singleton_weight):
    coarse = ~np.array([partition.is_singletons for partition in structure.partitions])
    assume(coarse.any())
    changed = structure.with_singleton_weight(singleton_weight)
    np.testing.assert_allclose(changed.singleton_weight, singleton_weight, atol=1e-12)
    before = structure.weights[coarse]
    after = changed.weights[: len(coarse)][coarse]
    if before.sum() > 0:
        np.testing.assert_allclose(
            after, before / before.sum() * (1 - singleton_weight), atol=1e-12
        )


def test_with_singleton_weight_adds_the_singletons_where_they_are_missing():
    structure = RandomPartition([Partition.from_blocks([["a", "b"], ["c"]])])
    changed = structure.with_singleton_weight(0.25)
    assert changed.weights.tolist() == [0.75, 0.25]
    assert list(changed.levels) == ["level 1", "class"]


def test_with_singleton_weight_of_the_trivial_structure():
    assert trivial(["a", "b"]).with_singleton_weight(1.0) == trivial(["a", "b"])
    with pytest.raises(StructureError, match=r"the singletons are the only partition, got 0.5"):
        trivial(["a", "b"]).with_singleton_weight(0.5)


@given(random_partitions(), random_partitions())
def test_definition_21_the_joint_random_partition_has_the_products_of_the_weights(first, second):
    joint = first.product(second)
    expected = {
        (i, j): first.weights[i] * second.weights[j]
        for i in range(first.n_partitions)
        for j in range(second.n_partitions)
    }
    np.testing.assert_allclose(joint.weights, list(expected.values()))
    for (i, j), partition in zip(expected, joint.partitions, strict=True):
        assert partition == first.partitions[i].product(second.partitions[j])


@given(random_partitions(), st.integers(0, 2**32))
def test_scrambling_permutes_the_classes_and_nothing_else(structure, seed):
    scrambled = structure.scramble(np.random.default_rng(seed))
    assert scrambled.classes == structure.classes
    assert np.array_equal(scrambled.weights, structure.weights)
    places = np.random.default_rng(seed).permutation(structure.n_classes)
    for before, after in zip(structure.partitions, scrambled.partitions, strict=True):
        moved = {
            frozenset(
                structure.classes[i]
                for i in range(structure.n_classes)
                if structure.classes[places[i]] in block
            )
            for block in before.blocks
        }
        assert set(map(frozenset, after.blocks)) == moved


def test_scrambling_keeps_a_hierarchy_nested_and_its_names():
    scrambled = catalog.cifar100().scramble(np.random.default_rng(0))
    assert scrambled.is_nested
    assert scrambled != catalog.cifar100()
    before = catalog.cifar100().levels["superclass"][0]
    after = scrambled.levels["superclass"][0]
    assert set(after.names) == set(before.names)
    sizes = sorted(map(len, scrambled.levels["category"][0].blocks))
    assert sizes == sorted(map(len, catalog.cifar100().levels["category"][0].blocks))


@given(random_partitions(), st.data())
def test_restricting_restricts_every_partition(structure, data):
    kept = data.draw(st.permutations(structure.classes))[: data.draw(st.integers(1, 8))]
    restricted = structure.restrict(kept)
    assert restricted.partitions == tuple(p.restrict(kept) for p in structure.partitions)
    assert np.array_equal(restricted.weights, structure.weights)


def test_relabelling_gives_the_classes_new_names():
    months = catalog.months().relabel(dict(zip(range(1, 13), "abcdefghijkl", strict=True)))
    assert months == circular(list("abcdefghijkl"))
    with pytest.raises(StructureError, match="got no new name for 2"):
        trivial([1, 2]).relabel({1: "a"})
    with pytest.raises(LabelError, match="3 is not a class"):
        trivial([1, 2]).relabel({1: "a", 2: "b", 3: "c"})
    with pytest.raises(StructureError, match="classes must all differ"):
        trivial([1, 2]).relabel({1: "a", 2: "a"})


@given(random_partitions(), st.data())
def test_reweighting_changes_the_weights_alone(structure, data):
    new = data.draw(weights(structure.n_partitions))
    changed = structure.reweight(new)
    assert changed.partitions == structure.partitions
    np.testing.assert_array_equal(changed.weights, new)


def test_levels_go_from_coarse_to_fine():
    levels = catalog.cifar100().levels
    assert [(name, p.n_blocks) for name, (p,) in levels.items()] == [
        ("supercategory", 4),
        ("category", 8),
        ("superclass", 20),
        ("class", 100),
    ]
    assert [len(p) for p in catalog.months().levels.values()] == [3, 1]
    assert list(ordinal(range(5)).levels) == ["cut", "class"]


def test_default_levels_are_one_a_partition_with_the_singletons_last():
    fine = Partition.from_blocks([["a", "b"], ["c"], ["d"]])
    coarse = Partition.from_blocks([["a", "b"], ["c", "d"]])
    structure = RandomPartition([Partition.singletons(list("abcd")), fine, coarse])
    assert structure.levels == {
        "level 1": (coarse,),
        "level 2": (fine,),
        "class": (Partition.singletons(list("abcd")),),
    }


def test_a_level_by_itself_has_its_partitions_in_proportion():
    months = catalog.months(singleton_weight=0.4).reweight([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(months.level("width 3").weights, [1 / 6, 2 / 6, 3 / 6])
    assert months.level("class") == trivial(range(1, 13))
    unweighted = months.with_singleton_weight(1.0)
    np.testing.assert_allclose(unweighted.level("width 3").weights, [1 / 3, 1 / 3, 1 / 3])
    with pytest.raises(LabelError, match=r"'width 4' is not a level .* did you mean 'width 3'"):
        months.level("width 4")


def test_the_distance_in_a_hierarchy_is_the_height_of_the_lowest_common_ancestor():
    cifar = catalog.cifar100()
    assert cifar.distance("oak_tree", "oak_tree") == 0
    assert cifar.distance("oak_tree", "maple_tree") == 1
    assert cifar.distance("oak_tree", "rose") == 2
    assert cifar.distance("bear", "trout") == 3
    assert cifar.distance("oak_tree", "trout") == 4


@pytest.mark.requires("networkx")
def test_the_distance_in_a_hierarchy_agrees_with_networkx():
    import networkx as nx

    tree = nx.balanced_tree(3, 3, create_using=nx.DiGraph)
    structure = hierarchy(tree)
    depth = nx.single_source_shortest_path_length(tree, 0)
    pairs = [(a, b) for a in structure.classes for b in structure.classes if a < b]
    for (a, b), ancestor in nx.tree_all_pairs_lowest_common_ancestor(tree, pairs=pairs):
        assert structure.distance(a, b) == 3 - depth[ancestor]


def test_the_distance_elsewhere_is_the_weight_of_the_partitions_that_separate():
    sizes = ordinal(["S", "M", "L", "XL"], singleton_weight=0.4)
    np.testing.assert_allclose(sizes.distance("S", "M"), 0.2 + 0.4)
    np.testing.assert_allclose(sizes.distance("S", "XL"), 0.6 + 0.4)
    months = catalog.months(singleton_weight=0.3)
    np.testing.assert_allclose(months.distance(12, 1), 0.7 / 3 + 0.3)
    np.testing.assert_allclose(months.distance(1, 7), 1.0)
    assert months.distance(3, 3) == 0.0


@given(random_partitions(max_partitions=3))
def test_strictly_proper_means_that_the_block_probabilities_tell_the_distribution(structure):
    indicators = np.array(
        [
            [label in block for label in structure.classes]
            for partition, weight in zip(structure.partitions, structure.weights, strict=True)
            if weight > 0
            for block in partition.blocks
        ],
        dtype=float,
    )
    assert structure.is_strictly_proper == (
        np.linalg.matrix_rank(indicators) == structure.n_classes
    )


def test_circles_of_twelve_without_singletons_have_rank_ten():
    assert not catalog.months(singleton_weight=0.0).is_strictly_proper
    assert catalog.months(singleton_weight=0.001).is_strictly_proper
    assert ordinal(range(12), singleton_weight=0.0).is_strictly_proper


@given(random_partitions(), st.data())
def test_encoding_finds_the_class_of_every_label(structure, data):
    rows = data.draw(st.lists(st.sampled_from(structure.classes), max_size=20))
    codes = structure.encode(rows)
    assert codes.dtype == np.int64
    assert [structure.classes[code] for code in codes] == rows


def test_encoding_takes_arrays_and_refuses_what_it_does_not_know():
    months = catalog.months()
    assert months.encode(np.array([12, 1], dtype=np.int8)).tolist() == [11, 0]
    assert trivial(["a", "b"]).encode(np.array(["b", "a"], dtype=object)).tolist() == [1, 0]
    assert trivial([False, True]).encode(np.array([True, False])).tolist() == [1, 0]
    with pytest.raises(LabelError, match="13 is not a class"):
        months.encode([1, 13])
    with pytest.raises(LabelError, match=r"1\.0 is not a class"):
        months.encode(np.array([1.0, 2.0]))


NAMED = Partition(["a", "b"], [0, 1], names=["x", "y"])
ONE, TWO = Partition.singletons(["a", "b"]), Partition.from_blocks([["a", "b"]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RandomPartition([]), "one or more Partition, got ()"),
        (lambda: RandomPartition([["a"]]), "one or more Partition"),
        (
            lambda: RandomPartition([ONE, Partition.singletons(["a", "c"])]),
            "partitions must cover the same classes, got one without 'b' and with 'c'",
        ),
        (lambda: RandomPartition([ONE, TWO], [0.5, 0.4]), r"got \[0.5, 0.4\] with sum 0.9"),
        (lambda: RandomPartition([ONE, TWO], [1.5, -0.5]), "must not be negative"),
        (lambda: RandomPartition([ONE, TWO], [1.0, np.nan]), "got NaN in"),
        (lambda: RandomPartition([ONE, TWO], [1.0]), "each of the 2 partitions, got"),
        (lambda: RandomPartition([ONE, TWO], [[0.5, 0.5]]), r"got shape \(1, 2\)"),
        (lambda: RandomPartition([ONE, TWO], ["a", "b"]), "weights must be numbers"),
        (lambda: RandomPartition([ONE, TWO], [np.inf, 0.0]), "with sum inf"),
        (lambda: RandomPartition([ONE, TWO], levels=["x"]), "one name for each of the 2"),
        (lambda: RandomPartition([ONE, TWO], levels="xy"), "one name for each of the 2"),
        (
            lambda: RandomPartition(
                [NAMED, Partition(["a", "b"], [0, 0], names=["x"])], levels=["l", "l"]
            ),
            "unique within a level, got 'x' for two different blocks of level 'l'",
        ),
        (lambda: trivial(["a"]).with_singleton_weight(1.5), "between 0 and 1, got 1.5"),
        (lambda: trivial(["a"]).with_singleton_weight("x"), "a number between 0 and 1, got 'x'"),
        (lambda: mix([]), "one or more structures, got none"),
        (lambda: mix([ONE]), "each structure of mix must be a RandomPartition"),
        (lambda: mix([trivial(["a"]), trivial(["b"])]), "must cover the same classes"),
        (lambda: mix([trivial(["a"])], [0.5]), "weights must sum to 1"),
    ],
)
def test_what_is_no_structure_is_refused(build, message):
    with pytest.raises(StructureError, match=message):
        build()


def test_weights_within_1e_9_of_1_are_accepted():
    assert RandomPartition([ONE, TWO], [0.5, 0.5 + 5e-10]).n_partitions == 2
    with pytest.raises(StructureError, match="sum"):
        RandomPartition([ONE, TWO], [0.5, 0.5 + 5e-9])


def test_the_error_for_many_weights_is_short():
    with pytest.raises(StructureError) as raised:
        ordinal(range(200)).reweight(np.ones(200))
    assert len(str(raised.value)) < 300
