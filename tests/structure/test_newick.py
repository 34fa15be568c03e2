"""Newick: a tree written and read again is the same tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, hierarchy
from structent.inputs import parse_structure
from structent.structure.newick import paths_from_newick

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)


@st.composite
def trees(draw):
    """Nested lists of leaf numbers, each inner node with at least two children."""
    left = list(range(draw(st.integers(2, 12))))
    while len(left) > 1:
        size = draw(st.integers(2, len(left)))
        left = [left[:size], *left[size:]] if draw(st.booleans()) else [*left[size:], left[:size]]
    return left[0]


def as_newick(tree, leaf_names, rng):
    """Write a tree with quotes, lengths and comments strewn in."""
    if isinstance(tree, int):
        text = "'" + leaf_names[tree].replace("'", "''") + "'"
    else:
        text = "(" + ", ".join(as_newick(child, leaf_names, rng) for child in tree) + ")"
    return text + str(rng.choice(["", ":0.5", ":1e-3", "[a (comment);]", " "]))


def leaves_of(tree):
    return (
        [tree] if isinstance(tree, int) else [leaf for child in tree for leaf in leaves_of(child)]
    )


def groups_of(tree):
    """Return the leaves under each inner node, without the root."""
    inner = [child for child in tree if not isinstance(child, int)]
    return [leaves_of(child) for child in inner] + [g for child in inner for g in groups_of(child)]


@given(trees(), st.lists(names, min_size=12, max_size=12, unique=True), st.integers(0, 99))
def test_the_groups_of_a_tree_come_back_from_its_text(tree, leaf_names, seed):
    paths = paths_from_newick(as_newick(tree, leaf_names, np.random.default_rng(seed)) + ";")
    assert list(paths) == [leaf_names[leaf] for leaf in leaves_of(tree)]
    groups = {}
    for leaf, path in paths.items():
        for depth in range(1, len(path) + 1):
            groups.setdefault(path[:depth], []).append(leaf)
    expected = [[leaf_names[leaf] for leaf in group] for group in groups_of(tree)]
    assert sorted(groups.values()) == sorted(expected)


def test_names_of_groups_are_kept(tmp_path):
    path = tmp_path / "plants.nwk"
    path.write_text("((oak:1,elm)tree:2,(rose,'dog rose')flower)plants;")
    structure = parse_structure(str(path), ["oak", "elm", "rose", "dog rose"]).structure
    assert structure == hierarchy(
        {"oak": ("tree",), "elm": ("tree",), "rose": ("flower",), "dog rose": ("flower",)}
    )
    assert structure.partitions[0].names == ("tree", "flower")


def test_the_support_of_groups_is_no_name_that_joins_them():
    paths = paths_from_newick("((a,b)95,(c,d)95);")
    assert paths["a"] == ("95 (a..b)",)
    assert paths["c"] == ("95 (c..d)",)


def comb(n_leaves):
    return "(" * (n_leaves - 1) + "x0" + "".join(f",x{i})" for i in range(1, n_leaves)) + ";"


def test_a_tree_may_be_thousands_deep():
    n_leaves = 5000
    paths = paths_from_newick(comb(n_leaves))
    assert len(paths["x0"]) == n_leaves - 2
    assert paths[f"x{n_leaves - 1}"] == ()


def test_a_tree_that_no_memory_holds_is_refused():
    with pytest.raises(StructureError, match=r"must be at most 20,000,000, got more: 100,000 le"):
        paths_from_newick(comb(100_000))


def test_a_name_may_be_long():
    name = "x" * 1_000_000 + "'" * 1000
    quoted = name.replace("'", "''")
    assert list(paths_from_newick(f"('{quoted}',b);")) == [name, "b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(a,b)", "must end in ';', got text that ends too early"),
        ("((a,b);", "line 1, column 7: got ';' where it cannot stand"),
        ("(a,b));", r"column 6: got '\)' where it cannot stand"),
        ("a,b;", "column 2: got ',' where it cannot stand"),
        ("(a,\nb(c));", r"line 2, column 2: got '\(' where it cannot stand"),
        ("(a,);", "every leaf of a Newick tree must have a name"),
        ("(dog rose,a);", "got a second name 'rose'; put names with spaces in quotes"),
        ("(a,b);(c,d);", "got something after the ';'"),
        ("(a,'b);", "which is not Newick"),
        ("(a,b,a);", "must have different names, got 'a' more than once"),
    ],
)
def test_a_tree_that_goes_wrong_is_refused_where_it_does(text, reason):
    with pytest.raises(StructureError, match=reason):
        paths_from_newick(text)
