"""Whole trees, against those that a search of all splits grows."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from structent.trees import growing
from structent.trees.growing import BinnedTable, Limits, Room
from tests.trees import reference
from tests.trees.problems import Problem, exact_problem, overflows_its_memory, table_of

LAYOUTS = {
    "pair": {"n_classes": 1, "pair": True},
    "few classes": {"n_classes": 3},
    "several chunks": {"n_classes": 20},
    "signed": {"n_classes": 20, "signed": True},
}
BY_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
seeds = st.integers(0, 2**32)
few = settings(max_examples=25)
limits = st.builds(
    Limits,
    max_depth=st.integers(1, 4),
    max_leaves=st.sampled_from([None, 2, 3, 6]),
    reg_lambda=st.sampled_from([0.5, 1.0, 20.0]),
)


def check_tree(problem, nodes, rows, wanted):
    """The nodes are the oracle's: their rows, their splits, and what those gain.

    Rounding may prefer a split to the same one with left and right exchanged.
    """
    assert len(nodes.left) == len(wanted.nodes)
    n_bins = np.diff(problem.table.first_cell) - 1
    pairs = [(0, 0)]
    while pairs:
        i, other = pairs.pop()
        node = wanted.nodes[other]
        own = rows[nodes.begin[i] : nodes.end[i]]
        np.testing.assert_array_equal(own if nodes.left[i] == 0 else np.sort(own), node.rows)
        assert nodes.depth[i] == node.depth
        assert (nodes.left[i] > 0) == (node.left > 0)
        if not node.left:
            continue
        column = nodes.column[i]
        goes_left = nodes.goes_left[i, : n_bins[column] + 1]
        is_left = goes_left[problem.table.bins[node.rows, column]]
        first = next(split for split in node.close if (split.is_left == is_left).all())
        assert column == first.column
        np.testing.assert_array_equal(goes_left[:-1], first.goes_left[:-1])
        np.testing.assert_allclose(nodes.gain[i], first.gain, rtol=1e-3)
        is_turned = int((node.split.is_left != is_left).any())
        pairs += [(nodes.left[i] + side, node.left + (side ^ is_turned)) for side in (0, 1)]


@BY_LAYOUT
@few
@given(seed=seeds, n=st.integers(16, 40), missing=st.sampled_from([0, 0.3]), limits=limits)
def test_a_tree_is_that_of_the_search_of_all_splits(layout, seed, n, missing, limits):
    problem = exact_problem(seed, n, missing=missing, **layout)
    wanted = reference.grow(
        problem.table, problem.gradient, problem.curvature, problem.rows, limits
    )
    assume(wanted.is_clear)
    check_tree(problem, *problem.grown(limits), wanted)


@few
@given(seed=seeds, limits=limits)
def test_a_tree_of_some_rows_is_that_of_these_rows_alone(seed, limits):
    problem = exact_problem(seed, 60, missing=0.2)
    seen = np.flatnonzero(np.random.default_rng(seed).random(60) < 0.6)
    assume(len(seen) >= 16)
    wanted = reference.grow(problem.table, problem.gradient, problem.curvature, seen, limits)
    assume(wanted.is_clear)
    check_tree(problem, *problem.grown(limits, rows=seen), wanted)


@few
@given(seed=seeds, limits=limits)
def test_without_the_histograms_of_parents_the_tree_is_the_same(seed, limits):
    problem = exact_problem(seed, 40, missing=0.2, n_classes=20)
    wanted, rows = problem.grown(limits)
    with pytest.MonkeyPatch.context() as patch:
        for most in (0, 4 * problem.statistics[:, :1].size * 30):  # one histogram, and some
            patch.setattr(growing, "_MOST_MEMORY", most)
            found, other_rows = problem.grown(limits)
            assert_same(found, wanted)
            np.testing.assert_array_equal(other_rows, rows)


@few
@given(seed=seeds, limits=limits, layout=st.sampled_from(list(LAYOUTS.values())))
def test_one_and_two_threads_give_the_same_bits(seed, limits, layout):
    problem = exact_problem(seed, 60, 5, missing=0.2, categories=1, **layout)
    rng = np.random.default_rng(seed)
    problem.gradient = rng.normal(size=problem.gradient.shape)
    problem.curvature = rng.random(problem.curvature.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_WORTH_A_THREAD", 1)
        one, two = problem.grown(limits, 1), problem.grown(limits, 2)
    assert_same(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def assert_same(found, wanted):
    for name in ("begin", "end", "left", "depth"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    is_split = wanted.left > 0
    for name in ("column", "gain", "goes_left"):
        np.testing.assert_array_equal(
            getattr(found, name)[is_split], getattr(wanted, name)[is_split]
        )


@few
@given(seed=seeds, limits=limits, layout=st.sampled_from(list(LAYOUTS.values())))
def test_leaves_share_the_rows_and_each_row_is_in_the_leaf_of_its_bins(seed, limits, layout):
    problem = exact_problem(seed, 50, 4, missing=0.2, categories=2, **layout)
    nodes, rows = problem.grown(limits)
    np.testing.assert_array_equal(np.sort(rows), problem.rows)
    leaves = np.flatnonzero(nodes.left == 0)
    assert (nodes.end[leaves] - nodes.begin[leaves]).sum() == 50
    for leaf in leaves:
        for row in rows[nodes.begin[leaf] : nodes.end[leaf]]:
            assert leaf_of(nodes, problem.table.bins[row]) == leaf


def leaf_of(nodes, bins):
    node = 0
    while nodes.left[node]:
        node = nodes.left[node] + (not nodes.goes_left[node, bins[nodes.column[node]]])
    return node


@few
@given(seed=seeds, limits=limits, layout=st.sampled_from(list(LAYOUTS.values())))
def test_each_gain_is_that_of_the_definition(seed, limits, layout):
    """Of any statistics, with sets of categories, whose search is not one of all sets."""
    problem = exact_problem(seed, 50, 4, missing=0.2, categories=2, **layout)
    nodes, rows = problem.grown(limits)
    for node in np.flatnonzero(nodes.left):
        own = rows[nodes.begin[node] : nodes.end[node]]
        left = nodes.left[node]
        is_left = np.isin(own, rows[nodes.begin[left] : nodes.end[left]])
        given = problem.gradient[own], problem.curvature[own]
        gain = reference.gain_of(is_left, *given, limits.reg_lambda)
        # A difference of scores, each a sum of at most 20 numbers that are rounded a few times.
        near = 5e-6 * (2 * reference.score(*given, limits.reg_lambda) + gain)
        assert abs(nodes.gain[node] - gain) <= near


@few
@given(seed=seeds, limits=limits)
def test_a_tree_ends_at_its_limits(seed, limits):
    problem = exact_problem(seed, 50, missing=0.1)
    nodes, _ = problem.grown(limits)
    n_leaves = (nodes.left == 0).sum()
    assert nodes.depth.max() <= limits.max_depth
    assert n_leaves <= min(2**limits.max_depth, limits.max_leaves or 50)
    assert len(nodes.left) == 2 * n_leaves - 1


def test_a_tree_of_no_depth_or_one_leaf_is_its_root():
    problem = exact_problem(0)
    for limits in (Limits(0), Limits(3, max_leaves=1)):
        nodes, rows = problem.grown(limits)
        assert (nodes.left.tolist(), nodes.begin.tolist(), nodes.end.tolist()) == ([0], [0], [30])
        np.testing.assert_array_equal(rows, problem.rows)


def test_one_row_is_a_leaf():
    problem = exact_problem(0, n=1)
    for limits in (Limits(3), Limits(3, max_leaves=4)):
        assert problem.grown(limits)[0].left.tolist() == [0]


def test_rows_that_are_alike_are_a_leaf():
    bins = np.tile([[1, 2, 3]], (40, 1))  # 3 means missing
    rng = np.random.default_rng(0)
    problem = Problem(table_of(bins, [2, 4, 3]), rng.normal(size=(40, 3)), rng.random((40, 3)))
    for limits in (Limits(3), Limits(3, max_leaves=4)):
        assert problem.grown(limits)[0].left.tolist() == [0]


def test_rows_with_equal_gradients_are_a_leaf():
    rng = np.random.default_rng(0)
    problem = Problem(
        table_of(rng.integers(6, size=(999, 3)), [6] * 3), np.full((999, 3), 0.1),
        np.full((999, 3), 0.1),
    )  # fmt: skip
    assert problem.grown(Limits(4))[0].left.tolist() == [0]


def test_of_equal_columns_the_first_is_taken():
    problem = exact_problem(0, n_columns=1)
    bins = problem.table.bins
    n_bins = np.diff(problem.table.first_cell)[0] - 1
    twice = table_of(np.hstack([bins, bins]), [n_bins] * 2)
    nodes, _ = Problem(twice, problem.gradient, problem.curvature).grown(Limits(3))
    assert nodes.left.any()
    assert (nodes.column[nodes.left > 0] == 0).all()


@pytest.mark.parametrize("max_leaves", [None, 8])
def test_histograms_stay_within_the_memory_they_have(max_leaves):
    """With fewer rows than a tree of this depth could have leaves."""
    assert not overflows_its_memory(max_leaves)


@pytest.mark.parametrize("reg_lambda", [0.0, 1e-3, 1.0])
def test_every_leaf_has_rows(reg_lambda):
    """Even where rows of very different size leave rounding errors in bins without rows."""
    for seed in range(100):
        problem = exact_problem(seed, 40, 4, 8, n_classes=15, missing=0.2, categories=1)
        rng = np.random.default_rng(seed)
        problem.gradient = rng.normal(size=(40, 15)) * 10.0 ** rng.integers(-4, 7, size=(40, 1))
        problem.curvature = abs(problem.gradient)
        nodes, _ = problem.grown(Limits(5, reg_lambda=reg_lambda))
        assert (nodes.end > nodes.begin).all()


def test_every_gain_is_finite():
    """Even where rounding leaves a curvature below 0 in bins without rows."""
    for seed in range(100):
        problem = exact_problem(seed, 60, 3, 40, n_classes=12)
        rng = np.random.default_rng(seed)
        problem.gradient = (rng.random((60, 12)) - 0.5) * 2.0**20
        problem.curvature = abs(problem.gradient)
        nodes, _ = problem.grown(Limits(5))
        assert np.isfinite(nodes.gain).all()


def test_every_gain_of_a_set_of_categories_is_finite():
    """Even where rounding leaves a curvature of -lambda on the right."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        problem = exact_problem(seed, 60, 2, 40, n_classes=16, categories=2)
        problem.gradient = rng.normal(size=(60, 16)) * 10.0 ** rng.integers(-4, 7, size=(60, 1))
        problem.curvature = abs(problem.gradient)
        nodes, _ = problem.grown(Limits(6))
        assert np.isfinite(nodes.gain).all()


@few
@given(seed=seeds, max_leaves=st.sampled_from([None, 5]))
def test_every_leaf_has_the_least_weight(seed, max_leaves):
    problem = exact_problem(seed, 60, 4, n_classes=16, missing=0.2, categories=1)
    nodes, rows = problem.grown(Limits(4, max_leaves, min_child_weight=30.0))
    for leaf in np.flatnonzero(nodes.left == 0):
        own = rows[nodes.begin[leaf] : nodes.end[leaf]]
        assert problem.curvature[own].sum(axis=0).mean() >= 30 * (1 - 1e-6)


def test_without_missing_values_these_go_with_the_larger_part():
    gradient = np.array([1.0, -1, -1, -1, -1])[:, None]
    for bins, goes_left in (([0, 1, 1, 1, 1], False), ([1, 0, 0, 0, 0], True)):
        problem = Problem(table_of(np.array(bins)[:, None], [2]), gradient, np.ones((5, 1)))
        nodes, _ = problem.grown(Limits(1))
        assert nodes.goes_left[0, 2] == goes_left


def test_categories_without_rows_go_with_the_larger_part_too():
    gradient = np.array([1.0, 1.0, 1.0, -1.0])[:, None]
    for sign in (1, -1):
        table = table_of(np.array([[0], [0], [0], [1]]), [4], [True])
        nodes, _ = Problem(table, sign * gradient, np.ones((4, 1))).grown(Limits(1))
        assert (nodes.goes_left[0, 2:5] == nodes.goes_left[0, 0]).all()


def test_columns_that_are_taken_give_the_tree_of_these_columns():
    problem = exact_problem(3, 40, 5, missing=0.2, categories=2)
    columns = np.array([1, 3, 4])
    n_bins = np.diff(problem.table.first_cell) - 1
    taken = problem.table.take(columns)
    alone = BinnedTable.of(
        problem.table.bins[:, columns], n_bins[columns], problem.table.is_categorical[columns]
    )
    for name in ("bins", "first_cell", "is_categorical", "has_missing"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(alone, name))
    assert taken.bins.flags.c_contiguous


def test_memory_is_used_again_for_trees_of_any_size():
    room = Room()
    for n in (40, 20, 60, 16):
        problem = exact_problem(n, n, missing=0.1)
        rows = problem.rows
        again = problem.grown_in(room, rows, Limits(3))
        wanted, wanted_rows = problem.grown(Limits(3))
        assert_same(again, wanted)
        np.testing.assert_array_equal(rows, wanted_rows)
