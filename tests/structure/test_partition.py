"""Partitions: Definitions 1 to 3 and 19, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structent import LabelError, Partition, StructureError, circular, trivial
from tests.strategies import class_sets, partitions


@st.composite
def pairs_of_partitions(draw):
    classes = draw(class_sets())
    return draw(partitions(classes)), draw(partitions(classes))


@given(partitions())
def test_definition_1_every_class_is_in_exactly_one_block(partition):
    members = [label for block in partition.blocks for label in block]
    assert sorted(map(repr, members)) == sorted(map(repr, partition.classes))
    assert all(partition.blocks)


@given(class_sets())
def test_definition_2_singletons_are_blocks_of_one_class(classes):
    assert Partition.singletons(classes).blocks == tuple((label,) for label in classes)


@given(partitions())
@example(Partition.singletons(["\x00"]))  # NumPy's text drops a NUL at its end
def test_definition_3_coarsening_maps_a_class_to_the_block_that_holds_it(partition):
    block_of = dict(zip(partition.names, partition.blocks, strict=True))
    coarse = partition.coarsen(list(partition.classes))
    for label, name in zip(partition.classes, coarse.tolist(), strict=True):
        assert label in block_of[name]


@given(partitions())
def test_blocks_are_numbered_by_their_first_class(partition):
    first_seen = list(dict.fromkeys(partition.block_of.tolist()))
    assert first_seen == list(range(partition.n_blocks))


@given(partitions())
def test_blocks_give_the_partition_back(partition):
    again = Partition.from_blocks(reversed(partition.blocks), classes=partition.classes)
    assert again == partition
    assert hash(again) == hash(partition)


@given(partitions())
def test_block_names_differ(partition):
    assert len(set(partition.names)) == partition.n_blocks


@given(partitions())
def test_a_partition_survives_pickling_and_stays_frozen(partition):
    again = pickle.loads(pickle.dumps(partition))  # noqa: S301  our own
    assert again == partition
    with pytest.raises(ValueError, match="read-only"):
        again.block_of[0] = 1
    with pytest.raises(AttributeError):
        again.classes = ()


@given(pairs_of_partitions())
def test_refining_means_each_block_lies_within_one(pair):
    first, second = pair
    within = all(any(set(block) <= set(other) for other in second.blocks) for block in first.blocks)
    assert first.refines(second) == within


@given(pairs_of_partitions())
def test_the_meet_is_the_coarsest_partition_that_refines_both(pair):
    first, second = pair
    meet = first.meet(second)
    expected = {
        frozenset(block) & frozenset(other)
        for block in first.blocks
        for other in second.blocks
        if set(block) & set(other)
    }
    assert set(map(frozenset, meet.blocks)) == expected


@given(partitions(), partitions())
def test_definition_19_a_block_of_the_product_is_a_pair_of_blocks(first, second):
    expected = {
        frozenset((a, b) for a in block for b in other)
        for block in first.blocks
        for other in second.blocks
    }
    product = first.product(second)
    assert set(map(frozenset, product.blocks)) == expected
    assert len(product.classes) == len(first.classes) * len(second.classes)


@given(partitions(), st.data())
def test_restricting_keeps_who_is_together(partition, data):
    kept = data.draw(st.permutations(partition.classes))[: data.draw(st.integers(1, 8))]
    restricted = partition.restrict(kept)
    assert restricted.classes == tuple(kept)
    expected = {frozenset(block) & frozenset(kept) for block in partition.blocks} - {frozenset()}
    assert set(map(frozenset, restricted.blocks)) == expected


def test_names_are_made_of_classes_with_runs_of_neighbours_shortened():
    year = ["jan", "feb", "mar", "apr", "may", "jun"]
    assert Partition.from_blocks([year[:3], year[3:5], year[5:]]).names == (
        "jan..mar",
        "apr+may",
        "jun",
    )
    assert Partition(year, [0, 1, 1, 1, 0, 0]).names == ("jan+may+jun", "feb..apr")


def test_names_differ_where_the_text_of_classes_does_not():
    assert Partition([1, "1"], [0, 1]).names == ("1", "'1'")
    assert Partition(["a", "b", "a+b"], [0, 0, 1]).names == ("'a'+'b'", "'a+b'")


def test_given_names_follow_their_blocks():
    named = Partition.from_blocks([["b", "c"], ["a"]], classes=["a", "b", "c"], names=["bc", "A"])
    assert dict(zip(named.names, named.blocks, strict=True)) == {"bc": ("b", "c"), "A": ("a",)}
    assert named.restrict(["c", "a"]).names == ("bc", "A")


def test_numpy_labels_become_plain_ones():
    partition = Partition(np.array([3, 1, 2]), [0, 0, 1])
    assert [type(label) for label in partition.classes] == [int, int, int]
    assert Partition(np.array(["x", "y"]), [0, 1]).classes == ("x", "y")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Partition.from_blocks([["a", "b"], ["b"]]), "blocks must not overlap, got 'b'"),
        (
            lambda: Partition.from_blocks([["a"]], classes=["a", "b"]),
            "every class must be in a block, got 'b' in none",
        ),
        (lambda: Partition.from_blocks([["a"], []]), "at least one class, got an empty block"),
        (lambda: Partition.from_blocks([]), "at least one class, got none"),
        (lambda: Partition.from_blocks(["ab"]), r"got the string 'ab'; write \['ab'\]"),
        (lambda: Partition.singletons(["a", "a"]), "classes must all differ, got 'a' twice"),
        (lambda: Partition.singletons([1, True]), r"got True twice \(equal to 1\)"),
        (lambda: Partition.singletons([0, True]), "must not mix bool and int"),
        (lambda: Partition.singletons("ab"), "got the string 'ab'"),
        (lambda: Partition.singletons([1.5]), "got 1.5 of type float, which a structure file"),
        (lambda: Partition.singletons([float("nan")]), "got nan of type float"),
        (lambda: Partition.singletons([None]), "got None of type NoneType"),
        (lambda: Partition.singletons([("a", 1.0)]), "got 1.0 of type float"),
        (lambda: Partition.singletons([frozenset("a")]), "of type frozenset"),
        (lambda: Partition(["a", "b"], [0]), "one integer for each of the 2 classes"),
        (lambda: Partition(["a"], [0.5]), "one integer for each of the 1 classes, got float64"),
        (lambda: Partition(["a"], [0], names=["x", "y"]), "there must be 1 block names"),
        (lambda: Partition(["a", "b"], [0, 1], names=["x", "x"]), "got 'x' twice"),
        (lambda: Partition(["a"], [0], names=[1]), "block names must be strings"),
        (
            lambda: Partition.singletons(["a", "b"]).meet(Partition.singletons(["a", "c"])),
            "must cover the same classes, got one without 'b' and with 'c' beside another",
        ),
    ],
)
def test_what_is_no_partition_is_refused(build, message):
    with pytest.raises(StructureError, match=message):
        build()


def test_a_foreign_class_in_a_block_is_named():
    with pytest.raises(LabelError, match=r"'oka' is not a class .* did you mean 'oak'"):
        Partition.from_blocks([["oak"], ["oka"]], classes=["oak"])


def test_an_unknown_label_is_named_with_up_to_three_near_matches():
    trees = Partition.singletons(["maple_tree", "apple_tree", "pine_tree", "palm_tree", "trout"])
    with pytest.raises(LabelError) as raised:
        trees.coarsen(["maple_tree", "mapel_tree"])
    message = str(raised.value)
    assert message.startswith("'mapel_tree' is not a class of the structure; did you mean 'maple")
    assert message.count("_tree'") == 4


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["1"], "'1' is not a class of the structure: it has 1 of type int, not str"),
        ([1.0], "1.0 is not a class of the structure"),
        ([True], "True is not a class of the structure"),
        ([[1]], r"\[1\] is not a class"),
        ([None], "None is not a class"),
        (np.array([[1], [2]]), r"labels must have one axis, got shape \(2, 1\)"),
        ("12", "labels must be a sequence, one entry per row, got '12'"),
        (1, "labels must be a sequence"),
        ([9], "9 is not a class of the structure, whose 2 are 1, 2"),
    ],
)
def test_labels_are_matched_by_value_and_type(labels, message):
    with pytest.raises(LabelError, match=message):
        Partition.singletons([1, 2]).coarsen(labels)


def test_neighbours_are_runs_and_pairs_are_named_by_their_parts():
    months = circular(["jan", "feb", "mar", "apr"], width=3).partitions[0]
    assert months.names == ("jan..mar", "apr")
    pairs = months.product(Partition.from_blocks([["Marin", "Napa"], ["Yolo"]]))
    assert pairs.names == (
        "(jan..mar, Marin+Napa)",
        "(jan..mar, Yolo)",
        "(apr, Marin+Napa)",
        "('apr', 'Yolo')",
    )


def test_a_block_of_pairs_that_is_no_product_is_named_by_its_pairs():
    scrambled = Partition([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0, 1, 1, 0])
    assert scrambled.names == ("('a', 1)+('b', 2)", "('a', 2)+('b', 1)")


def test_pairs_are_named_the_same_whatever_their_order():
    pairs = trivial(["a", "b"]).product(trivial([1, 2])).partitions[0]
    halves = Partition(pairs.classes, [0, 1, 0, 1])
    assert set(halves.restrict(pairs.classes[::-1]).names) == {"(b+a, 1)", "(b+a, 2)"}


@given(partitions())
def test_names_differ_within_a_partition(partition):
    assert len(set(partition.names)) == partition.n_blocks


@given(partitions(), partitions())
def test_names_differ_within_a_product(first, second):
    pairs = first.product(second)
    assert len(set(pairs.names)) == pairs.n_blocks


def test_blocks_that_str_cannot_tell_apart_are_told_apart_by_repr():
    assert Partition([1, "1"], np.array([0, 1])).names == ("1", "'1'")
