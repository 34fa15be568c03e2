"""Forests: prediction against walking in Python, and bytes that were tampered with."""

import json
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import StructentError
from structent.trees import forest as forest_module
from structent.trees.forest import Forest, GrowingForest, check_children
from structent.trees.growing import Limits
from tests.trees import reference
from tests.trees.problems import Problem, exact_problem, table_of

N_COLUMNS, N_CLASSES = 4, 3
few = settings(max_examples=40)


TREE = Forest(  # node 0 has the children 1 and 2, node 1 has 3 and 4
    np.array([0, 5]),
    np.array([0, 3, -1, -1, -1], np.int32),
    np.array([1, 3, 0, 1, 2], np.int32),
    np.array([[9, 0, 0, 0], [2**63, 1, 0, 7], *[[0] * 4] * 3], np.uint64),
    np.array([3.0, 2.0, 0, 0, 0], np.float32),
    np.arange(9, dtype=np.float32).reshape(3, N_CLASSES),
)
INNER, LEAF, N_NODES, N_LEAVES = 1, 2, 5, 3


def add_tree(forest, seed, max_depth, n=40, columns=None):
    """Add a tree with random values in its leaves."""
    problem = exact_problem(
        seed, n, N_COLUMNS, n_bins=40, missing=0.2, categories=2, n_classes=N_CLASSES
    )
    nodes, _ = problem.grown(Limits(max_depth))
    values = forest.add(nodes, np.arange(N_COLUMNS) if columns is None else columns)
    values[:] = np.random.default_rng(seed).normal(size=values.shape)


def grown(seed, max_depth=3, n=40, columns=None):
    """A forest of one tree."""
    forest = GrowingForest(N_CLASSES)
    add_tree(forest, seed, max_depth, n, columns)
    return forest.first(1)


def some_forest(seed=0, n_trees=3, max_depth=3):
    forest = GrowingForest(N_CLASSES)
    for tree in range(n_trees):
        add_tree(forest, seed + tree, max_depth)
    return forest.first(n_trees)


def any_bins(seed, n=30):
    return np.random.default_rng(seed).integers(256, size=(n, N_COLUMNS)).astype(np.uint8)


def added(forest, bins, n_threads=1):
    margins = np.tile(np.float32([0.5, -1, 2]), (len(bins), 1))
    forest.add_to(margins, bins, n_threads)
    return margins


def assert_same(found, wanted):
    for field in fields(Forest):
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@few
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 4))
def test_prediction_walks_every_tree_and_adds_the_values_of_the_leaf(seed, n_trees, max_depth):
    forest, bins = some_forest(seed, n_trees, max_depth), any_bins(seed)
    assert forest.n_trees == n_trees
    wanted = reference.predicted(forest, bins, [0.5, -1, 2])
    np.testing.assert_array_equal(added(forest, bins), wanted)


def test_the_rows_a_tree_was_grown_on_get_the_values_of_their_leaves():
    problem = exact_problem(0, 60, N_COLUMNS, missing=0.2, categories=2)
    nodes, rows = problem.grown(Limits(4))
    leaves = np.flatnonzero(nodes.left == 0)
    forest = GrowingForest(1)
    forest.add(nodes, np.arange(N_COLUMNS))[:, 0] = np.arange(len(leaves))
    margins = np.zeros((60, 1), np.float32)
    forest.first(1).add_to(margins, problem.table.bins)
    for number, leaf in enumerate(leaves):
        assert (margins[rows[nodes.begin[leaf] : nodes.end[leaf]]] == number).all()


def test_every_byte_is_a_bin_that_can_be_predicted():
    """Those of columns with few bins, too: what no bin of the training had goes right."""
    bins = np.repeat(np.arange(256, dtype=np.uint8)[:, None], N_COLUMNS, axis=1)
    for forest in (TREE, grown(0)):
        wanted = reference.predicted(forest, bins, [0.5, -1, 2])
        np.testing.assert_array_equal(added(forest, bins), wanted)
    # The node 1 of TREE sends the bins 63, 64 and 192 to 194 left, its root 0 and 3.
    only = np.tile(bins[:1], (256, 1))
    only[:, 3] = np.arange(256)
    is_left = np.isin(np.arange(256), [63, 64, 192, 193, 194])
    np.testing.assert_array_equal(
        added(TREE, only) - np.float32([0.5, -1, 2]), TREE.values[np.where(is_left, 1, 2)]
    )


def forest_of_any_sets(seed, n_trees):
    """Trees of the shape of TREE, by any columns, and any of the 256 bins go left."""
    rng = np.random.default_rng(seed)
    column, child = np.tile(TREE.column, n_trees), np.tile(TREE.child, n_trees)
    is_leaf = column < 0
    column[~is_leaf] = rng.integers(N_COLUMNS, size=2 * n_trees)
    child[is_leaf] += np.repeat(N_LEAVES * np.arange(n_trees, dtype=np.int32), N_LEAVES)
    bits = rng.integers(2**64, size=(N_NODES * n_trees, 4), dtype=np.uint64)
    bits[rng.random(bits.shape) < 0.2] = 0
    bits[rng.random(bits.shape) < 0.2] = 2**64 - 1
    values = rng.normal(size=(N_LEAVES * n_trees, N_CLASSES)).astype(np.float32)
    first_node = N_NODES * np.arange(n_trees + 1)
    return Forest(first_node, column, child, bits, np.tile(TREE.gain, n_trees), values)


@pytest.mark.parametrize("visits_of_a_step", [0, 1000], ids=["walked", "not walked"])
@few
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_any_set_of_bins_may_go_left(visits_of_a_step, seed, n_trees):
    forest, bins = forest_of_any_sets(seed, n_trees), any_bins(seed)
    wanted = reference.predicted(forest, bins, [0.5, -1, 2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_module, "_VISITS_OF_A_STEP", visits_of_a_step)
        assert forest._is_small == (n_trees > 1 and visits_of_a_step > 0)
        np.testing.assert_array_equal(added(forest, bins), wanted)


def test_sets_of_many_runs_are_walked_through_and_borders_are_not():
    every_second_bin = forest_of_any_sets(0, 3)
    every_second_bin.goes_left[:] = 0x5555555555555555
    assert not every_second_bin._is_small
    assert some_forest(0, 3)._is_small


def test_small_trees_give_the_same_bits_as_walking():
    """More rows than a tile has."""
    forest, bins = some_forest(0, 6), any_bins(1, 1100)
    assert forest._is_small
    found = added(forest, bins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_module, "SMALL_TREE", 0)
        np.testing.assert_array_equal(found, added(replace(forest), bins))


def test_nodes_that_share_a_child_are_walked_through(monkeypatch):
    """No tree is grown so, but a changed file may hold it."""
    forest, bins = forest_of_any_sets(0, 2), any_bins(0)
    forest.column[N_NODES + 2], forest.child[N_NODES + 2] = 1, 3  # as node 1 has
    wanted = reference.predicted(forest, bins, [0.5, -1, 2])
    monkeypatch.setattr(forest_module, "_VISITS_OF_A_STEP", 1000)
    np.testing.assert_array_equal(added(forest, bins), wanted)


@pytest.mark.parametrize("n_rows", [128, 129])
def test_trees_around_the_limit_of_a_small_one_are_predicted(n_rows):
    """Each of the rows is a leaf: trees of 255 and of 257 nodes."""
    bins = np.arange(n_rows)[:, None]
    gradient = np.random.default_rng(0).normal(size=(n_rows, 1))
    problem = Problem(table_of(bins, [n_rows]), gradient, np.full((n_rows, 1), 1e-6))
    nodes, _ = problem.grown(Limits(30, reg_lambda=0.0))
    assert len(nodes.left) == 2 * n_rows - 1
    growing = GrowingForest(N_CLASSES)
    for _ in range(2):
        growing.add(nodes, np.arange(1))[:] = np.arange(n_rows)[:, None]
    forest, values = growing.first(2), problem.table.bins
    wanted = reference.predicted(forest, values, [0.5, -1, 2])
    np.testing.assert_array_equal(added(forest, values), wanted)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_any_number_of_rows_is_predicted(n):
    forest, bins = some_forest(), any_bins(1, 200)
    np.testing.assert_array_equal(added(forest, bins[:n]), added(forest, bins)[:n])


def test_threads_predict_the_same_bits(monkeypatch):
    monkeypatch.setattr(forest_module, "_LEAST_ROWS", 1)
    forest, bins = some_forest(), any_bins(1, 501)
    np.testing.assert_array_equal(added(forest, bins, 1), added(forest, bins, 2))


def test_a_tree_of_some_columns_walks_by_these():
    tree, bins = grown(0, columns=np.array([7, 2, 9, 4])), any_bins(0)
    wide = np.full((30, 10), 99, np.uint8)
    wide[:, [7, 2, 9, 4]] = bins
    np.testing.assert_array_equal(added(tree, wide), added(grown(0), bins))


@few
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_last_tree_of_a_growing_forest_can_be_added_before_it_is_whole(seed, n_trees):
    forest, bins = GrowingForest(N_CLASSES), any_bins(seed)
    margins = np.tile(np.float32([0.5, -1, 2]), (len(bins), 1))
    for tree in range(n_trees):
        add_tree(forest, seed + tree, max_depth=tree % 4)
        forest.add_last_to(margins, bins)
        assert forest.n_trees == tree + 1
        np.testing.assert_array_equal(margins, added(forest.first(tree + 1), bins))


def test_the_first_trees_of_a_growing_forest_are_those_of_a_forest_of_their_own():
    forest = GrowingForest(N_CLASSES)
    for seed in range(5):
        add_tree(forest, seed, max_depth=3)
    assert_same(forest.first(3), some_forest(0, 3))


def test_gains_are_multiplied_by_a_power_of_two_and_stay_finite():
    problem = exact_problem(0, 40, N_COLUMNS, n_classes=N_CLASSES)
    nodes, _ = problem.grown(Limits(2))
    is_split = nodes.left > 0
    for exponent, wanted in ((-3, nodes.gain[is_split] / 8), (1024, np.finfo(np.float32).max)):
        forest = GrowingForest(N_CLASSES)
        forest.add(nodes, np.arange(N_COLUMNS), exponent)[:] = 0
        np.testing.assert_array_equal(forest.first(1).gain[is_split], wanted)


def test_gains_are_the_sums_over_the_splits_of_each_column():
    forest = some_forest()
    wanted = np.zeros(N_COLUMNS)
    for column, gain in zip(forest.column, forest.gain, strict=True):
        if column >= 0:
            wanted[column] += gain
    assert wanted.any()
    np.testing.assert_allclose(forest.gains(N_COLUMNS), wanted, rtol=1e-12)


def test_splits_that_leaves_could_have_had_are_not_kept():
    problem = exact_problem(0, 40, N_COLUMNS, n_classes=N_CLASSES)
    nodes, _ = problem.grown(Limits(4, max_leaves=3))
    assert (nodes.gain[nodes.left == 0] > 0).any()
    growing = GrowingForest(N_CLASSES)
    growing.add(nodes, np.arange(4))[:] = 0
    forest = growing.first(1)
    is_leaf = forest.column < 0
    assert (forest.gain[is_leaf] == 0).all()
    assert (forest.goes_left[is_leaf] == 0).all()
    assert (forest.gain[~is_leaf] > 0).all()


@few
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 4))
def test_bytes_give_the_forest_back(seed, n_trees, max_depth):
    forest = some_forest(seed, n_trees, max_depth)
    content = forest.to_bytes()
    again = Forest.from_bytes(content, N_COLUMNS, N_CLASSES)
    assert_same(again, forest)
    assert again.to_bytes() == content
    bins = any_bins(seed)
    np.testing.assert_array_equal(added(again, bins), added(forest, bins))


def check_harmless(content):
    """The bytes are refused in one sentence, or are a forest that can be walked by any row."""
    try:
        forest = Forest.from_bytes(content, N_COLUMNS, N_CLASSES)
    except StructentError as error:
        assert "\n" not in str(error)  # noqa: PT017  most, but not all, are refused
        return False
    bins = any_bins(0, 8)
    with np.errstate(over="ignore"):  # a value may have become a large one
        wanted = reference.predicted(forest, bins, [0.5, -1, 2])
    np.testing.assert_array_equal(added(forest, bins), wanted)
    assert np.isfinite(forest.gains(N_COLUMNS)).all()
    return True


def test_a_byte_that_changed_is_refused_or_harmless():
    content = some_forest(0, 2, 2).to_bytes()
    rng = np.random.default_rng(0)
    places = [*range(len(content)), *rng.integers(len(content), size=3000)]
    n_refused = 0
    for place in places:
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        n_refused += not check_harmless(bytes(changed))
    assert n_refused > len(places) / 10


def test_bytes_that_changed_in_many_places_are_refused_or_harmless():
    content = some_forest(0, 2, 2).to_bytes()
    begin = content.index(b"\n") + 1
    rng = np.random.default_rng(1)
    for _ in range(500):
        changed = np.frombuffer(content, np.uint8).copy()
        places = rng.integers(begin, len(content), size=int(rng.integers(2, 12)))
        changed[places] = rng.integers(256, size=len(places))
        check_harmless(changed.tobytes())


def test_bytes_that_end_early_are_refused():
    content = some_forest(0, 2, 2).to_bytes()
    for length in range(len(content)):
        with pytest.raises(StructentError, match="damaged"):
            Forest.from_bytes(content[:length], N_COLUMNS, N_CLASSES)


@pytest.mark.parametrize("more", [b"\0", b"\n", b"0123456789abcdef" * 99])
def test_bytes_that_go_on_are_refused(more):
    content = some_forest().to_bytes()
    with pytest.raises(StructentError, match=f"{len(more)} bytes too many"):
        Forest.from_bytes(content + more, N_COLUMNS, N_CLASSES)


def changed_forest(**changes):
    """The bytes of a forest of one tree in which some entries were written over."""
    arrays = {name: getattr(TREE, name).copy() for name in changes}
    for name, (place, value) in changes.items():
        arrays[name][place] = value
    return replace(TREE, **arrays).to_bytes()


CRAFTED = {
    "a child that is its own parent": {"child": (INNER, INNER)},
    "a child before its parent": {"child": (INNER, 0)},
    "a child before the tree": {"child": (INNER, -1)},
    "a child far before the tree": {"child": (INNER, -(2**31))},
    "a right child behind the tree": {"child": (INNER, N_NODES - 1)},
    "a child behind the tree": {"child": (INNER, N_NODES)},
    "a child far behind the tree": {"child": (INNER, 2**31 - 2)},
    "a column that is not there": {"column": (0, N_COLUMNS)},
    "a column far away": {"column": (0, 2**31 - 1)},
    "a column below -1": {"column": (0, -2)},
    "a column far below -1": {"column": (LEAF, -(2**31))},
    "a leaf without values": {"child": (LEAF, N_LEAVES)},
    "a leaf with a negative line": {"child": (LEAF, -1)},
    "a leaf with a line far away": {"child": (LEAF, 2**31 - 1)},
    "a value that is NaN": {"values": ((0, 0), np.nan)},
    "a value that is infinite": {"values": ((0, 0), -np.inf)},
    "a gain that is NaN": {"gain": (0, np.nan)},
    "a first tree that does not begin": {"first_node": (0, 1)},
    "a last tree that does not end": {"first_node": (1, N_NODES - 1)},
    "a tree that goes on": {"first_node": (1, N_NODES + 1)},
    "a tree of negative length": {"first_node": (1, -1)},
}


@pytest.mark.parametrize("changes", CRAFTED.values(), ids=CRAFTED.keys())
def test_indices_that_lead_out_of_a_tree_and_numbers_that_are_none_are_refused(changes):
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(changed_forest(**changes), N_COLUMNS, N_CLASSES)


def test_the_largest_index_of_a_child_is_refused():
    content = changed_forest(child=(INNER, 2**31 - 1))
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(content, N_COLUMNS, N_CLASSES)


def test_a_leaf_that_became_a_split_is_refused_or_harmless():
    for column in range(N_COLUMNS):
        check_harmless(changed_forest(column=(LEAF, column)))
    for inner in (0, INNER):
        check_harmless(changed_forest(column=(inner, -1)))


def test_trees_that_overlap_are_refused():
    forest = some_forest()
    for first_node in ([0, 9, 5], [0, 0, 5], [0, 5, 5], [0], []):
        ending = [*first_node[:-1], forest.first_node[-1]] if first_node else []
        for numbers in (first_node, ending):
            content = replace(forest, first_node=np.array(numbers, np.int64)).to_bytes()
            if numbers != [0, 5, int(forest.first_node[-1])]:
                with pytest.raises(StructentError, match="damaged"):
                    Forest.from_bytes(content, N_COLUMNS, N_CLASSES)


_READS = """
import sys
from structent import StructentError
from structent.trees.forest import Forest, check_children
try:
    Forest.from_bytes(sys.stdin.buffer.read(), 4, 3)
except StructentError as error:
    print("refused")
"""


def test_trees_whose_differences_overflow_are_refused():
    """In a process of its own: numpy.repeat ends it when it is asked for 2**62 numbers."""
    forest = some_forest()
    around = np.array([0, 2**62, -(2**63), -(2**62), forest.first_node[-1]])
    content = replace(forest, first_node=around).to_bytes()
    done = subprocess.run(
        [sys.executable, "-c", _READS], input=content, capture_output=True, check=False
    )
    assert done.stdout.strip() == b"refused"


def with_header(header):
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = TREE.to_bytes()
    return line + content[content.index(b"\n") :]


def with_shapes(**shapes):
    content = TREE.to_bytes()
    return with_header({**json.loads(content[: content.index(b"\n")]), **shapes})


HEADERS = {
    "nothing": b"",
    "no JSON": b"{first_node: [1]}",
    "bytes that are no text": b"\xff\xfe\x00\xd8",
    "a number": b"3",
    "null": b"null",
    "a list": b"[[1], [2]]",
    "a string": b'"column"',
    "not all arrays": {"column": [3]},
    "no shapes": dict.fromkeys(("first_node", "column", "child", "goes_left", "gain", "values"), 3),
    "lists without end": b"[" * 200_000,
    "objects without end": b'{"column":' * 200_000,
    "a number of many digits": b'{"first_node": [' + b"9" * 5000 + b"]}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_a_header_that_is_no_object_of_shapes_is_refused(header):
    with pytest.raises(StructentError, match="its header is no JSON object of shapes"):
        Forest.from_bytes(with_header(header), N_COLUMNS, N_CLASSES)


SHAPES = {
    "negative": {"column": [-1]},
    "two negative ones": {"column": [-1, -N_NODES]},
    "longer than the file": {"column": [N_NODES * 1000]},
    "huge": {"column": [2**62]},
    "huge in two ways": {"values": [2**40, 2**40]},
    "beyond 64 bits": {"column": [2**70]},
    "a product beyond 64 bits": {"goes_left": [2**33, 2**33]},
    "too short": {"column": [N_NODES - 1]},
    "of two dimensions": {"column": [N_NODES, 1]},
    "of two dimensions, first nodes": {"first_node": [2, 1]},
    "not four words": {"goes_left": [N_NODES * 2, 2]},
    "flat words": {"goes_left": [N_NODES * 4]},
    "flat values": {"values": [N_LEAVES * 3]},
    "other classes": {"values": [N_LEAVES * 3, 1]},
    "a string": {"column": "many"},
    "a string of digits": {"column": "12"},
    "null": {"column": None},
    "null inside": {"column": [None]},
    "lists inside": {"column": [[3]]},
    "NaN": {"column": [float("nan")]},
    "empty": {"column": [0, 1]},
    "without dimensions": {"column": []},
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(with_shapes(**shapes), N_COLUMNS, N_CLASSES)


SHAPES_OF_NO_ARRAY = {
    "infinite": {"column": [float("inf")]},
    "of 100 dimensions": {"column": [1] * 100 + [N_NODES]},
    "empty and beyond 64 bits": {"column": [0, 2**70]},
    "empty and huge": {"column": [0, 2**62]},
}


@pytest.mark.parametrize("shapes", SHAPES_OF_NO_ARRAY.values(), ids=SHAPES_OF_NO_ARRAY.keys())
def test_shapes_that_no_array_can_have_are_refused(shapes):
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(with_shapes(**shapes), N_COLUMNS, N_CLASSES)


def test_an_array_without_dimensions_is_refused():
    shapes = {"first_node": [1], "column": [], "child": [1], "goes_left": [1, 4], "gain": [1]}
    header = json.dumps({**shapes, "values": [1, 3]}).encode()
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(header + b"\n" + bytes(8 + 4 + 4 + 32 + 4 + 12), N_COLUMNS, N_CLASSES)


def test_a_forest_without_trees_is_refused():
    arrays = {name: getattr(grown(0), name)[:0] for name in ("column", "child", "goes_left")}
    forest = replace(grown(0), first_node=np.zeros(1, np.int64), gain=np.zeros(0, np.float32),
                     values=np.zeros((0, N_CLASSES), np.float32), **arrays)  # fmt: skip
    with pytest.raises(StructentError, match="damaged"):
        Forest.from_bytes(forest.to_bytes(), N_COLUMNS, N_CLASSES)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_a_forest_of_more_columns_than_the_model_is_refused(n_columns):
    with pytest.raises(StructentError, match=f"a column that is not one of the {n_columns}"):
        Forest.from_bytes(some_forest().to_bytes(), n_columns, N_CLASSES)


def test_a_forest_of_other_classes_than_the_model_is_refused():
    with pytest.raises(StructentError, match="shapes of its arrays do not belong together"):
        Forest.from_bytes(some_forest().to_bytes(), N_COLUMNS, N_CLASSES + 1)


# Trees of other libraries


@pytest.mark.parametrize(
    ("splits", "left", "right", "n_nodes"),
    [
        ([], [], [], 1),
        ([0], [1], [2], 3),
        ([0], [2], [1], 3),
        ([0, 2], [1, 3], [2, 4], 5),
        (range(30), range(1, 60, 2), range(2, 61, 2), 61),
        (range(30), range(1, 31), range(31, 61), 61),
    ],
    ids=["leaf", "stump", "turned", "two splits", "wide", "deep"],
)
def test_children_that_form_a_tree_pass(splits, left, right, n_nodes):
    check_children(*(np.array(list(each), np.int64) for each in (splits, left, right)), n_nodes)


@pytest.mark.parametrize(
    ("splits", "left", "right", "n_nodes"),
    [
        ([], [], [], 0),
        ([], [], [], 2),
        ([0], [1], [1], 3),
        ([0], [0], [1], 2),
        ([0], [1], [3], 3),
        ([0], [1], [-1], 3),
        ([1], [2], [3], 4),
        ([0, 1, 2], [1, 3, 5], [2, 4, 1], 6),
        ([0, 1, 2], [3, 2, 1], [4, 5, 6], 7),
        ([0], [1], [2], 4),
        (range(31), range(1, 32), range(32, 63), 63),
    ],
    ids=[
        "nothing", "no parent", "one twice", "itself", "beyond", "before", "no root", "two parents",
        "circle", "left over", "too deep",
    ],
)  # fmt: skip
def test_children_that_form_no_tree_are_refused(splits, left, right, n_nodes):
    with pytest.raises(StructentError, match=r"do not form a tree|is deeper than 30"):
        check_children(*(np.array(list(each), np.int64) for each in (splits, left, right)), n_nodes)
