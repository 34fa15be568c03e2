"""Hierarchies from every form of a tree, ragged ones too, and the weights of HXE."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import LabelError, StructureError, hierarchy, hxe, structured_cross_entropy
from structent.structure import catalog
from tests.strategies import distributions, ragged_paths

PATHS = {
    "maple": ("plant", "tree"),
    "oak": ("plant", "tree"),
    "rose": ("plant", "flower"),
    "trout": ("animal", "fish"),
}
PARENTS = {
    "maple": "tree",
    "oak": "tree",
    "rose": "flower",
    "trout": "fish",
    "tree": "plant",
    "flower": "plant",
    "fish": "animal",
}


@given(ragged_paths())
def test_the_cut_at_a_depth_joins_classes_whose_paths_agree_so_far(paths):
    structure = hierarchy(paths)
    depth = max(map(len, paths.values()))
    assert structure.n_partitions == depth + 1
    for cut, partition in enumerate(structure.partitions[:-1], start=1):
        for a, path_a in paths.items():
            for b, path_b in paths.items():
                together = a == b or (
                    min(len(path_a), len(path_b)) >= cut and path_a[:cut] == path_b[:cut]
                )
                index_a, index_b = structure.encode([a, b])
                assert (partition.block_of[index_a] == partition.block_of[index_b]) == together


@given(ragged_paths())
def test_a_hierarchy_is_nested_and_ends_with_the_singletons(paths):
    structure = hierarchy(paths)
    assert structure.is_nested
    assert structure.partitions[-1].is_singletons


@given(ragged_paths(), st.floats(0.0, 3.0), st.data())
def test_hxe_weights_give_hierarchical_cross_entropy(paths, alpha, data):
    """Bertinetto 2020: sum over the path of lambda times -log P(node | parent), telescoped."""
    structure = hierarchy(paths, weights=hxe(alpha))
    q = data.draw(distributions(len(paths))) * 0.9 + 0.1 / len(paths)
    classes = list(paths)
    for index, label in enumerate(classes):
        path = paths[label]
        inside, hierarchical = np.ones(len(classes), dtype=bool), 0.0
        for depth in range(1, max(map(len, paths.values())) + 2):
            # The node at this depth: those who share the path so far; the class itself at its end.
            narrower = np.array(
                [
                    other == label
                    if len(path) < depth
                    else len(paths[other]) >= depth and paths[other][:depth] == path[:depth]
                    for other in classes
                ]
            )
            conditional = q[narrower].sum() / q[inside].sum()
            hierarchical -= math.exp(-alpha * depth) * math.log(conditional)
            inside = narrower
        one_hot = np.eye(len(classes))[index]
        structured = structured_cross_entropy(one_hot, q, structure)
        assert abs(math.exp(-alpha) * structured - hierarchical) <= 1e-10


def test_hxe_at_zero_is_plain_cross_entropy():
    assert hierarchy(PATHS, weights=hxe(0)).weights.tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(StructureError, match="alpha must be 0 or more and finite, got -1"):
        hxe(-1)
    with pytest.raises(StructureError, match="alpha must be 0 or more and finite, got nan"):
        hxe(float("nan"))
    with pytest.raises(StructureError, match="alpha must be a number, got 'x'"):
        hxe("x")


def test_weights_go_from_coarse_to_fine_and_are_equal_by_default():
    np.testing.assert_allclose(hierarchy(PATHS).weights, [1 / 3, 1 / 3, 1 / 3])
    weighted = hierarchy(PATHS, weights=[0.5, 0.3, 0.2])
    assert weighted.singleton_weight == 0.2
    assert weighted.partitions[0].names == ("plant", "animal")


def test_parents_give_the_same_hierarchy_as_paths():
    assert hierarchy(PARENTS) == hierarchy(PATHS)


def test_a_single_root_is_no_level():
    rooted = {**PARENTS, "plant": "life", "animal": "life", "life": None}
    assert hierarchy(rooted) == hierarchy(PATHS)


@pytest.mark.requires("networkx")
def test_a_networkx_tree_gives_the_same_hierarchy_as_paths():
    import networkx as nx

    edges = [(parent, child) for child, parent in PARENTS.items()]
    tree = nx.DiGraph([*edges, ("life", "plant"), ("life", "animal")])
    found = hierarchy(tree, classes=PATHS)
    assert found == hierarchy(PATHS)
    assert set(hierarchy(tree).classes) == set(PATHS)
    with pytest.raises(StructureError, match="must be directed"):
        hierarchy(tree.to_undirected())
    with pytest.raises(StructureError, match="one parent, got 'tree' and 'flower' for 'oak'"):
        hierarchy(nx.DiGraph([*edges, ("flower", "oak")]))


@pytest.mark.requires("pandas")
@pytest.mark.requires("polars")
def test_a_table_gives_the_same_hierarchy_as_paths_and_keeps_its_level_names():
    import pandas as pd
    import polars as pl

    columns = {
        "kingdom": [path[0] for path in PATHS.values()],
        "family": [path[1] for path in PATHS.values()],
        "species": list(PATHS),
    }
    expected = hierarchy(PATHS)
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        found = hierarchy(table)
        assert found.partitions == expected.partitions
        assert list(found.levels) == ["kingdom", "family", "species"]


@pytest.mark.requires("pandas")
@pytest.mark.requires("polars")
def test_a_missing_value_in_a_table_ends_the_path():
    import pandas as pd
    import polars as pl

    columns = {"a": ["x", "x", "y"], "b": ["u", None, None], "label": ["1", "2", "3"]}
    expected = hierarchy({"1": ("x", "u"), "2": ("x",), "3": ("y",)})
    for table in (
        pd.DataFrame(columns),
        pd.DataFrame(columns, dtype="string"),
        pl.DataFrame(columns),
    ):
        assert hierarchy(table).partitions == expected.partitions
    gap = pd.DataFrame({"a": [None, "x"], "b": ["u", "v"], "label": ["1", "2"]})
    with pytest.raises(StructureError, match="gap, got '1' with nothing in column 'a'"):
        hierarchy(gap)
    twice = pd.DataFrame({"a": ["x", "x"], "label": ["1", "1"]})
    with pytest.raises(StructureError, match="classes must all differ, got '1' twice"):
        hierarchy(twice)


def test_a_class_that_is_a_group_is_put_into_that_group():
    with_tree = hierarchy({**PATHS, "tree": ("plant",)})
    assert with_tree.partitions[1].blocks[0] == ("maple", "oak", "tree")
    from_parents = hierarchy(PARENTS, classes=[*PATHS, "tree"])
    assert from_parents == with_tree
    root_too = hierarchy({"oak": "tree", "elm": "tree"}, classes=["oak", "elm", "tree"])
    assert root_too == hierarchy({"oak": (), "elm": (), "tree": ()})


def test_a_class_that_is_called_like_a_group_elsewhere_stays_where_it_is():
    structure = hierarchy({"fish": ("food",), "trout": ("animal", "fish"), "ham": ("food", "meat")})
    assert structure.partitions[1].blocks == (("fish",), ("trout",), ("ham",))
    assert structure.partitions[1].names == ("fish", "animal/fish", "meat")


def test_groups_of_one_name_under_different_parents_are_different():
    structure = hierarchy({"a": ("x", "other"), "b": ("y", "other"), "c": ("y", "rest")})
    assert structure.partitions[1].names == ("x/other", "y/other", "rest")
    numbered = hierarchy({"a": (1,), "b": ("1",)})
    assert numbered.partitions[0].names == ("(1,)", "('1',)")


def test_classes_choose_and_order():
    found = hierarchy(PATHS, classes=["trout", "maple"])
    assert found.classes == ("trout", "maple")
    assert found.partitions == hierarchy(PATHS).restrict(["trout", "maple"]).partitions
    with pytest.raises(LabelError, match=r"'mapel' is not a class .* did you mean 'maple'"):
        hierarchy(PATHS, classes=["mapel"])
    with pytest.raises(LabelError, match=r"'mapel' is not a node .* did you mean 'maple'"):
        hierarchy(PARENTS, classes=["mapel"])


def test_level_names_are_kept():
    assert list(hierarchy(PATHS, level_names=["kingdom", "family"]).levels) == [
        "kingdom",
        "family",
        "class",
    ]
    with pytest.raises(StructureError, match=r"level_names must be 2 names, .* got"):
        hierarchy(PATHS, level_names=["kingdom"])


def test_a_flat_hierarchy_is_the_trivial_structure():
    assert hierarchy({"a": (), "b": ()}).singleton_weight == 1.0


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": "b", "b": "c", "c": "b"}, "not go round in a circle, got 'b' -> 'c' -> 'b'"),
        ({"a": "a"}, "not go round in a circle, got 'a' -> 'a'"),
        ({"a": "b", "c": ("d",)}, "got both; write a path of one group as a tuple"),
        ({"a": ["b"]}, "must map a class to a tuple of groups, got a list"),
        ({}, "at least one class, got an empty dict"),
        ([("a", "b")], "a dict of paths or parents, .* got list"),
        ({"a": (1.5,)}, "got 1.5 of type float"),
    ],
)
def test_what_is_no_tree_is_refused(tree, message):
    with pytest.raises(StructureError, match=message):
        hierarchy(tree)


def test_a_wrong_number_of_weights_is_refused():
    with pytest.raises(StructureError, match="each of the 3 partitions, got"):
        hierarchy(PATHS, weights=[0.5, 0.5])


def test_ten_thousand_classes_are_no_burden():
    paths = {i: tuple(f"{d}:{i // 10**d}" for d in (4, 3, 2, 1)) for i in range(10_000)}
    structure = hierarchy(paths)
    assert [p.n_blocks for p in structure.partitions] == [1, 10, 100, 1000, 10_000]


def test_cifar_paths_read_like_the_appendix():
    oak = catalog.cifar100().encode(["oak_tree"])[0]
    names = [
        partition.names[partition.block_of[oak]] for partition in catalog.cifar100().partitions
    ]
    assert names == ["plants", "plants", "trees", "oak_tree"]


def test_a_level_called_class_is_not_mistaken_for_the_classes():
    # A rank of biology. In one level with the singletons it would be scored as they are.
    species = hierarchy(PATHS, level_names=["class", "family"])
    assert list(species.levels) == ["class", "family", "label"]
    assert [len(partitions) for partitions in species.levels.values()] == [1, 1, 1]


def test_levels_of_one_name_are_refused():
    with pytest.raises(StructureError, match=r"level_names must differ, got \['rank', 'rank'\]"):
        hierarchy(PATHS, level_names=["rank", "rank"])
