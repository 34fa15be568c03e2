"""Hierarchies from every form of a tree, ragged ones too, and the weights of HXE."""

import math
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    LabelError,
    StructureError,
    hierarchy,
    hierarchy_from_edges,
    hierarchy_from_levels,
    hxe,
    structured_cross_entropy,
)
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


# Rows of levels


def padded(paths):
    """Return rows as hiclass has them: all of the same length, with empty text at the end."""
    rows = [[*path, label] for label, path in paths.items()]
    longest = max(map(len, rows))
    return np.array([row + [""] * (longest - len(row)) for row in rows], dtype=object)


@given(ragged_paths(), st.data())
def test_rows_of_levels_give_the_same_hierarchy_as_paths(paths, data):
    expected = hierarchy(paths)
    ragged = [[*path, label] for label, path in paths.items()]
    rows = [*ragged, *data.draw(st.lists(st.sampled_from(ragged), max_size=5))]
    assert hierarchy_from_levels(rows) == expected
    assert hierarchy_from_levels(padded(paths)) == expected
    assert hierarchy_from_levels(padded(paths).astype(str)) == expected
    order = data.draw(st.permutations(rows))
    assert hierarchy_from_levels(order, classes=expected.classes) == expected


@pytest.mark.requires("pandas")
@given(ragged_paths())
def test_a_pandas_multiindex_gives_the_same_hierarchy_as_paths(paths):
    import pandas as pd

    rows = padded(paths)
    rows[rows == ""] = None
    names = [f"level {d}" for d in range(1, rows.shape[1])] + ["class"]
    index = pd.MultiIndex.from_arrays(list(np.repeat(rows, 2, axis=0).T), names=names)
    found = hierarchy_from_levels(index)
    assert found == hierarchy(paths)
    assert hierarchy_from_levels(index.set_names([None] * len(names))) == found


@pytest.mark.requires("pandas")
@pytest.mark.requires("polars")
def test_levels_keep_the_names_of_a_table_or_an_index():
    import pandas as pd
    import polars as pl

    columns = {"realm": ["p", "a"], "form": ["t", "c"], "species": ["x", None]}
    columns = {name: values * 2 for name, values in columns.items()}
    table = pd.DataFrame(columns)
    for rows in (table, pl.DataFrame(columns), pd.MultiIndex.from_frame(table)):
        found = hierarchy_from_levels(rows, [0.2, 0.3, 0.5])
        assert found.classes == ("x", "c")
        assert list(found.levels) == ["realm", "form", "species"]
        assert found.weights.tolist() == [0.2, 0.3, 0.5]
    renamed = hierarchy_from_levels(table.to_numpy(), level_names=["one", "two"])
    assert list(renamed.levels) == ["one", "two", "class"]


def test_a_row_that_ends_at_a_group_is_of_a_class_in_that_group():
    rows = [["plant", "tree", "oak"], ["plant", "tree", ""], ["plant", "rose", ""]]
    assert hierarchy_from_levels(rows) == hierarchy(
        {"oak": ("plant", "tree"), "tree": ("plant",), "rose": ("plant",)}
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "x"], ["b", "x"]], r"one path, got \('a',\) and \('b',\) for 'x'"),
        ([["a", "x"], ["a", "", "y"]], r"no gap, got \['a', '', 'y'\] in row 1"),
        ([["", ""]], "a name at the first level"),
        ([[]], "a name at the first level"),
        (["ab", "cd"], "or a list of rows, got list"),
        (np.array(["a", "b"]), r"two axes, .* got \(2,\)"),
        (np.zeros((2, 2, 2), dtype=int), r"two axes, .* got \(2, 2, 2\)"),
        ([["a", ["x"]]], r"got \['x'\] of type list"),
        ([["a", 1.5]], "got 1.5 of type float"),
        (7, "got int"),
    ],
)
def test_what_are_no_rows_of_levels_is_refused(rows, message):
    with pytest.raises(StructureError, match=message):
        hierarchy_from_levels(rows)


# Edges


@given(ragged_paths(), st.data())
def test_edges_give_the_same_hierarchy_as_paths_without_what_all_classes_share(paths, data):
    nodes = {(*path, label) for label, path in paths.items()}
    nodes |= {path[:d] for path in paths.values() for d in range(1, len(path) + 1)}
    name_of = {node: node[-1] if node[-1] in paths else node for node in nodes} | {(): "everything"}
    edges = [(name_of[node], name_of[node[:-1]]) for node in sorted(nodes, key=repr)]
    unrelated = [("a stone", "thing"), ("thing", "everything")]
    shuffled = data.draw(st.permutations([*edges, *unrelated, *edges[:2]]))
    at_each_depth = zip(*paths.values(), strict=False)  # as far as the shortest goes
    n_common = len(list(takewhile(lambda groups: len(set(groups)) == 1, at_each_depth)))
    expected = hierarchy({label: path[n_common:] for label, path in paths.items()})
    assert hierarchy_from_edges(shuffled, classes=paths) == expected


@pytest.mark.requires("pandas")
@pytest.mark.requires("polars")
def test_edges_may_be_a_table_or_an_array_and_have_roots():
    import pandas as pd
    import polars as pl

    edges = [*PARENTS.items(), ("plant", None), ("animal", None)]
    columns = {"child": [c for c, _ in edges], "parent": [p for _, p in edges]}
    expected = hierarchy(PATHS)
    array = np.array(edges, dtype=object)
    for form in (edges, iter(edges), array, pd.DataFrame(columns), pl.DataFrame(columns)):
        assert hierarchy_from_edges(form) == expected
    weighted = hierarchy_from_edges(edges, hxe(0.5), level_names=["realm", "form"])
    assert weighted == hierarchy(PATHS, hxe(0.5), level_names=["realm", "form"])


def test_a_second_parent_matters_only_between_the_classes_that_are_wanted():
    # As in WordNet, where a dog is a canine and a domestic animal.
    edges = [
        *(("dog", "canine"), ("dog", "pet"), ("wolf", "canine"), ("cat", "feline")),
        *(("canine", "animal"), ("feline", "animal"), ("pet", "animal"), ("oak", "plant")),
        *(("animal", "life"), ("plant", "life"), ("pug", "dog"), ("collie", "dog")),
    ]
    with pytest.raises(
        StructureError, match=r"got 'canine' and 'pet' for 'dog'; pairs are \(child"
    ):
        hierarchy_from_edges(edges, classes=["dog", "cat"])
    with pytest.raises(StructureError, match="got 'canine' and 'pet' for 'dog'"):
        hierarchy_from_edges(edges)
    assert hierarchy_from_edges(edges, classes=["wolf", "cat"]).classes == ("wolf", "cat")
    puppies = hierarchy_from_edges(edges, classes=["pug", "collie"])
    assert puppies.partitions == hierarchy({"pug": (), "collie": ()}).partitions


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (["ab"], "a pair of child and parent, got 'ab'"),
        ([("a", "b", "c")], r"a pair of child and parent, got \('a', 'b', 'c'\)"),
        ([(None, "b")], r"a pair of child and parent, got \(None, 'b'\)"),
        ([("a", "b"), ("b", "a")], "round in a circle"),
        ([], "at least one class, got none"),
    ],
)
def test_what_are_no_edges_is_refused(edges, message):
    with pytest.raises(StructureError, match=message):
        hierarchy_from_edges(edges)


def test_a_class_that_no_edge_names_is_refused():
    with pytest.raises(LabelError, match=r"'mapel' is not a node .* did you mean 'maple'"):
        hierarchy_from_edges(PARENTS.items(), classes=["mapel"])


def test_a_large_tree_costs_what_is_above_the_classes():
    n_nodes = 300_000
    edges = [(node, node // 2) for node in range(2, n_nodes)]
    found = hierarchy_from_edges(edges, classes=range(n_nodes - 8, n_nodes))
    assert [partition.n_blocks for partition in found.partitions] == [2, 4, 8]


# Paths and names


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
        ([("a", "b")], "a dict of paths or parents, .* got list; .* hierarchy_from_edges"),
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


def test_a_long_circle_is_found_at_once_and_shown_in_short():
    circle = {i: (i + 1) % 100_000 for i in range(100_000)}
    with pytest.raises(StructureError, match=r"in a circle, got 99991 -> .* -> 0") as caught:
        hierarchy(circle)
    assert len(str(caught.value)) < 200


def comb(depth):
    """A chain of nodes up to the root, ``depth``, each of which has a leaf of its own."""
    return {**{i: i + 1 for i in range(depth)}, **{-i: i for i in range(1, depth + 1)}}


@pytest.mark.parametrize(
    "tree",
    [
        {i: i + 1 for i in range(30_000)},
        comb(1000),
        {i: tuple(range(-1000, 0)) for i in range(200)},
    ],
    ids=["chain", "comb", "paths"],
)
def test_a_hierarchy_that_would_take_hours_to_cut_is_refused(tree):
    with pytest.raises(StructureError, match=r"a hierarchy must not be so deep, got .* within"):
        hierarchy(tree)


def test_a_deep_hierarchy_is_cut_at_each_depth():
    structure = hierarchy(comb(60))
    assert structure.is_nested
    assert [partition.n_blocks for partition in structure.partitions] == list(range(2, 62))
