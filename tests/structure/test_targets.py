"""Labels of any granularity: classes, blocks and sets of classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import LabelError, hierarchy
from structent.structure import LabelSets, catalog
from tests.strategies import random_partitions

PLANTS = hierarchy(
    {
        "oak": ("plant", "tree"),
        "maple": ("plant", "tree"),
        "rose": ("plant", "flower"),
        "trout": ("animal", "fish"),
    }
)


def test_classes_come_first_then_blocks_then_other_sets():
    label_sets = PLANTS.encode_with_blocks(["maple", "tree", "plant", {"rose", "trout"}, "oak"])
    assert label_sets.classes_of_rows() == [
        ("maple",),
        ("oak", "maple"),
        ("oak", "maple", "rose"),
        ("rose", "trout"),
        ("oak",),
    ]
    assert label_sets.sets[:4] == ((0,), (1,), (2,), (3,))
    assert label_sets.codes[-1] == 0
    assert label_sets.codes[3] == len(label_sets.sets) - 1


@given(random_partitions(), st.data())
def test_a_full_name_means_its_block(structure, data):
    level = data.draw(st.sampled_from(list(structure.levels)))
    partition = data.draw(st.sampled_from(structure.levels[level]))
    number = data.draw(st.integers(0, partition.n_blocks - 1))
    name = f"{level}:{partition.names[number]}"
    if name in structure.classes:
        return
    label_sets = structure.encode_with_blocks([name])
    assert label_sets.classes_of_rows() == [partition.blocks[number]]


@given(random_partitions(), st.data())
def test_classes_have_the_codes_that_they_have_without_blocks(structure, data):
    rows = data.draw(st.lists(st.sampled_from(structure.classes), max_size=9))
    label_sets = structure.encode_with_blocks(rows)
    assert label_sets.codes.tolist() == structure.encode(rows).tolist()


def test_a_set_that_is_a_block_has_the_code_of_the_block():
    block, as_set = PLANTS.encode_with_blocks(["tree", {"maple", "oak"}]).codes
    assert block == as_set


def test_a_name_of_both_a_class_and_a_block_means_the_class():
    both = hierarchy({"tree": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    short, full = both.encode_with_blocks(["tree", "level 1:tree"]).classes_of_rows()
    assert short == ("tree",)
    assert full == ("tree", "oak")


def test_a_name_of_several_blocks_must_be_made_full():
    cifar = catalog.cifar100()
    plants = cifar.encode_with_blocks(["plants"])
    assert len(plants.classes_of_rows()[0]) == 15
    ambiguous = hierarchy({"a": ("x", "y"), "b": ("x", "z"), "c": ("y", "w")})
    with pytest.raises(LabelError, match="several blocks; write level 1:y or level 2:y"):
        ambiguous.encode_with_blocks(["y"])


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("tre", "'tre' is not a class or block of the structure; did you mean 'tree'"),
        (1, "1 is not a class or block"),
        (["oak"], r"\['oak'\] is not a class or block"),
        (set(), "at least one, got an empty set"),
        ({"oak", "elm"}, "'elm' is not a class"),
    ],
)
def test_unknown_labels_are_refused(label, message):
    with pytest.raises(LabelError, match=message):
        PLANTS.encode_with_blocks([label])


def test_a_block_is_no_label_unless_allowed():
    with pytest.raises(LabelError, match="'tree' is not a class"):
        PLANTS.encode(["tree"])


def test_sets_without_rows_have_the_codes_that_they_have_with_rows():
    encoded = PLANTS.encode_with_blocks(["tree", {"rose", "trout"}])
    bare = LabelSets.of_sets(encoded.coarse_sets, PLANTS.classes)
    assert (bare.sets, bare.classes, len(bare.codes)) == (encoded.sets, encoded.classes, 0)
