"""Hierarchies as Newick text and as networkx graphs: what is written is read again as it was."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import (
    StructureError,
    circular,
    hierarchy,
    hierarchy_from_newick,
    ordinal,
    structure_from_distances,
    trivial,
)
from structent.structure.catalog import cifar100
from tests.strategies import ragged_paths

# What has a meaning in Newick, what a programmer forgets, and what groups may be called, too.
names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
    st.sampled_from(["A", "B", "a_b", "it's", "(x)", "1", "root", "level 1:A", "[c]", " ", "é;"]),
)


@st.composite
def hierarchies(draw, labels=names):
    """A hierarchy with paths of any length through groups of any name."""
    classes = draw(st.lists(labels, min_size=1, max_size=8, unique=True))
    groups = st.lists(st.one_of(st.sampled_from("ABC"), names), max_size=4).map(tuple)
    known = draw(st.lists(groups, min_size=1, max_size=4))
    paths = {label: draw(st.sampled_from(known)) for label in classes}
    structure = hierarchy(paths)
    weights = draw(st.permutations(range(1, structure.n_partitions + 1)))
    return structure.reweight(np.array(weights) / sum(weights))


def networkx_or_none(structure):
    """Return None where names such as "level 1:A" leave nodes that cannot be told apart."""
    try:
        return structure.to_networkx()
    except StructureError:
        return None


def level_names(structure):
    return list(structure.levels)[:-1]


def names_of_blocks(structure):
    return [partition.names for partition in structure.partitions]


@given(hierarchies())
def test_a_hierarchy_comes_back_from_newick(structure):
    text = structure.to_newick()
    found = hierarchy_from_newick(text, structure.weights, classes=structure.classes)
    assert found == structure
    in_order_of_text = hierarchy_from_newick(text)
    assert in_order_of_text.restrict(structure.classes).partitions == structure.partitions


@given(ragged_paths())
def test_names_of_groups_come_back_from_newick(paths):
    structure = hierarchy(paths)
    found = hierarchy_from_newick(structure.to_newick(), classes=structure.classes)
    assert names_of_blocks(found) == names_of_blocks(structure)


@given(hierarchies(st.integers(-3, 99)))
def test_numbers_come_back_from_newick_as_numbers(structure):
    found = hierarchy_from_newick(
        structure.to_newick(), structure.weights, classes=structure.classes
    )
    assert found == structure


@pytest.mark.requires("networkx")
@given(st.one_of(hierarchies(), hierarchies(st.integers(-3, 99))))
def test_a_hierarchy_comes_back_from_networkx(structure):
    import networkx as nx

    tree = networkx_or_none(structure)
    assume(tree is not None)
    assert nx.is_arborescence(tree)
    leaves = {node for node, n_children in tree.out_degree() if n_children == 0}
    assert leaves == set(structure.classes)
    assert hierarchy(tree, structure.weights, classes=structure.classes) == structure


@pytest.mark.requires("networkx")
def test_real_names_are_kept_also_where_levels_share_them():
    animals = cifar100()
    from_newick = hierarchy_from_newick(
        animals.to_newick(), level_names=level_names(animals), classes=animals.classes
    )
    assert from_newick == animals
    assert names_of_blocks(from_newick) == names_of_blocks(animals)
    tree = animals.to_networkx()
    assert hierarchy(tree, level_names=level_names(animals), classes=animals.classes) == animals
    assert tree.nodes["trees"] == {"level": "superclass"}
    assert list(tree.predecessors("oak_tree")) == ["trees"]
    shared = set(animals.partitions[0].names) & set(animals.partitions[1].names)
    assert "plants" in shared
    first, second = level_names(animals)[:2]
    assert list(tree.successors(f"{first}:plants")) == [f"{second}:plants"]


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        ({"a": ("x",), "b": ("x",), "c": ()}, "((a,b)x,c);"),
        ({"a": ("x",), "b": (), "c": ("x",)}, "((a,c)x,b);"),
        ({"a": ("x", "y"), "b": ("x",)}, "(((a)y,b)x);"),
        ({"a": ("x",), "x": ()}, "((a,x)x);"),
        ({"a": (), "b": ()}, "(a,b);"),
        ({"oak tree": ("it's",), "b_c": ("",)}, "(('oak tree')'it''s',('b_c')'');"),
        ({"a": ("a",), "b": ("b",)}, "((a)a,b);"),
    ],
)
def test_newick_reads_as_one_would_write_it(paths, text):
    assert hierarchy(paths).to_newick() == text
    assert hierarchy_from_newick(text, classes=list(paths)) == hierarchy(paths)


def test_a_tree_of_another_program_is_the_same():
    """SciPy merges one pair at a time; its tree, written by recursion, has the same groups."""
    from scipy.cluster.hierarchy import linkage, to_tree

    points = np.random.default_rng(0).normal(size=(7, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    labels = [f"p{i}" for i in range(7)]
    merged = linkage(distances[np.triu_indices(7, 1)], "average")

    def written(node):
        if node.is_leaf():
            return labels[node.id]
        return f"({written(node.left)},{written(node.right)})"

    theirs = hierarchy_from_newick(written(to_tree(merged)) + ";", classes=labels)
    again = hierarchy_from_newick(theirs.to_newick(), classes=labels)
    assert again == theirs
    assert theirs.n_partitions > 3


def test_a_learned_structure_is_a_tree_too():
    points = np.random.default_rng(0).normal(size=(9, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    learned = structure_from_distances(distances, classes=list("abcdefghi"))
    found = hierarchy_from_newick(
        learned.to_newick(),
        learned.weights,
        level_names=level_names(learned),
        classes=learned.classes,
    )
    assert found == learned


def test_a_tree_that_is_a_chain_comes_back():
    n_leaves = 150
    text = "(" * (n_leaves - 1) + "x0" + "".join(f",x{i})" for i in range(1, n_leaves)) + ";"
    structure = hierarchy_from_newick(text)
    assert hierarchy_from_newick(structure.to_newick(), classes=structure.classes) == structure


@pytest.mark.requires("networkx")
@pytest.mark.parametrize("method", ["to_newick", "to_networkx"])
@pytest.mark.parametrize("structure", [circular(range(6), width=2), ordinal(["S", "M", "L"])])
def test_what_is_no_hierarchy_is_refused(method, structure):
    message = r"needs a hierarchy with nested partitions, .* save\(\) keeps it as JSON"
    with pytest.raises(StructureError, match=message):
        getattr(structure, method)()


@pytest.mark.parametrize("classes", [["", "a"], [1, "1"], [("a", 1), ("b", 2)]])
def test_classes_that_newick_cannot_name_are_refused(classes):
    with pytest.raises(StructureError, match="classes that are different as text"):
        trivial(classes).to_newick()


@pytest.mark.requires("networkx")
def test_nodes_that_no_name_tells_apart_are_refused():
    structure = hierarchy({"tree": ("tree",), "level 1:tree": ("tree",)})
    with pytest.raises(StructureError, match="got 'level 1:tree' for two"):
        structure.to_networkx()
