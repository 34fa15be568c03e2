"""The best split of a node in each column, against the search of all."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from structent.trees import sketch
from tests.trees import reference
from tests.trees.problems import Problem, exact_problem, searched, table_of

LAYOUTS = {
    "pair": {"n_classes": 1, "pair": True},
    "few classes": {"n_classes": 3},
    "16 classes": {"n_classes": 16},
    "several chunks": {"n_classes": 35},
}
BY_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
seeds = st.integers(0, 2**32)
few = settings(max_examples=30)  # the seeds of each layout


def allowed_error(problem, reg_lambda, best):
    """A gain is a difference of sums over at most 48 classes, each rounded a few times."""
    alone = reference.score(problem.gradient, problem.curvature, reg_lambda)
    return 5e-6 * (2 * alone + best)


def check_columns(problem, reg_lambda=1.0, min_child_weight=0.0):
    """In each column the gain is the best of all splits, and the bins are those of the first."""
    found = searched(problem, reg_lambda, min_child_weight)
    splits = reference.all_splits(
        problem.table, problem.rows, problem.gradient, problem.curvature, reg_lambda,
        min_child_weight,
    )  # fmt: skip
    for column, way in enumerate(found.goes_left):
        own = [split for split in splits if split.column == column]
        best = max((split.gain for split in own), default=0.0)
        near = allowed_error(problem, reg_lambda, best)
        if best <= near:
            assert found.gains[column] <= near
            continue
        assert abs(found.gains[column] - best) <= near
        is_left = way[problem.table.bins[:, column]]
        gain = reference.gain_of(is_left, problem.gradient, problem.curvature, reg_lambda)
        assert gain >= best - near
        # Of borders that cut the same rows off, the first.
        alike = [split.goes_left for split in own if (split.is_left == is_left).all()]
        assert tuple(way) == alike[0]


@BY_LAYOUT
@few
@given(seed=seeds, n=st.integers(1, 40), missing=st.sampled_from([0, 0.3, 1]))
def test_the_best_border_of_each_column_is_the_best_of_all(layout, seed, n, missing):
    check_columns(exact_problem(seed, n, missing=missing, **layout))


@BY_LAYOUT
@few
@given(seed=seeds, n=st.integers(1, 40), reg_lambda=st.sampled_from([0, 1e-3, 100, 1e6]))
def test_any_penalty_is_that_of_the_definition(layout, seed, n, reg_lambda):
    check_columns(exact_problem(seed, n, missing=0.1, **layout), reg_lambda)


@BY_LAYOUT
@few
@given(seed=seeds, least=st.sampled_from([7.5, 40, 200]))
def test_no_child_has_less_than_the_least_weight(layout, seed, least):
    check_columns(exact_problem(seed, 30, missing=0.1, **layout), 1.0, least)


@pytest.mark.parametrize("outcome", [3.0, -3.0], ids=["like the low", "like the high"])
def test_missing_values_go_the_better_way(outcome):
    gradient = np.array([3.0, 3.0, -3.0, -3.0, outcome])[:, None]
    problem = Problem(table_of([[0], [0], [1], [1], [2]], [2]), gradient, np.ones((5, 1)))
    found = searched(problem)
    assert found.goes_left[0].tolist() == [True, False, outcome > 0]


def test_missing_values_can_be_cut_off_from_all_others():
    gradient = np.array([3.0, 3.0, 3.0, -3.0])[:, None]
    problem = Problem(table_of([[0], [1], [2], [3]], [3]), gradient, np.ones((4, 1)))
    assert searched(problem).goes_left[0].tolist() == [True, True, True, False]


def test_what_has_one_bin_gains_nothing():
    rng = np.random.default_rng(0)
    problem = Problem(table_of(np.zeros((9, 2)), [1, 5]), rng.normal(size=(9, 3)), np.ones((9, 3)))
    assert searched(problem).gains.tolist() == [0, 0]


def test_equal_gradients_gain_nothing():
    rng = np.random.default_rng(0)
    bins = rng.integers(5, size=(50, 3))
    problem = Problem(table_of(bins, [5] * 3), np.full((50, 4), 0.3), np.full((50, 4), 0.3))
    assert searched(problem).gains.tolist() == [0, 0, 0]


@BY_LAYOUT
@few
@given(seed=seeds)
def test_without_a_penalty_classes_without_curvature_do_not_hide_the_split(layout, seed):
    problem = exact_problem(seed, 20, **layout)
    if not layout.get("pair"):  # of a class all rows but one are certain
        problem.gradient[:-1, 0] = problem.curvature[:-1, 0] = 0
    check_columns(problem, 0.0)


def test_without_a_penalty_blocks_are_split():
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(20, 6)).astype(np.float32)
    statistics = np.empty(sketch.wide_shape(20, 3), np.float32)
    block_of = np.array([0, 0, 1, 1, 2, 2], np.int32)
    sketch.write_blocks(gradient, abs(gradient), block_of, statistics, 1)
    problem = Problem(table_of(rng.integers(4, size=(20, 1)), [4]), gradient, abs(gradient))
    assert searched(problem, 0.0, statistics=statistics).gains[0] > 0


@BY_LAYOUT
@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_rows_without_weight_gain_nothing(layout, reg_lambda):
    problem = exact_problem(0, 30, missing=0.2, categories=1, **layout)
    problem.gradient[:], problem.curvature[:] = 0, 0
    assert searched(problem, reg_lambda).gains.tolist() == [0, 0, 0]


@pytest.mark.parametrize("is_categorical", [False, True], ids=["border", "set"])
def test_a_curvature_that_rounding_left_below_0_counts_as_0(is_categorical):
    """Here -lambda, which would otherwise make the score of all rows together infinite."""
    table = table_of([[0], [1]], [2], [is_categorical])
    gradient = np.array([[0.5, 3.0], [0.25, -3.0]])
    found, wanted = (
        searched(Problem(table, gradient, np.array([[0.0, 1.0], [least, 1.0]])), 1.0).gains
        for least in (-1.0, 0.0)
    )
    assert wanted[0] > 8
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**30], ids=["1e-12", "1e9"])
@BY_LAYOUT
def test_large_and_small_statistics_are_split_alike(layout, scale):
    """Products of three sums must be floats; boosting scales weights for that."""
    problem = exact_problem(1, 30, missing=0.1, **layout)
    wanted = searched(problem, 1.0)
    scaled = Problem(problem.table, problem.gradient * scale, problem.curvature * scale)
    found = searched(scaled, scale)
    np.testing.assert_allclose(found.gains, wanted.gains * scale, rtol=1e-6)
    np.testing.assert_array_equal(found.borders, wanted.borders)


def category_problem(seed, n, n_categories, n_classes=1, missing=0.0, pair=False):
    """Rows of one column of categories, half of them of the first, a quarter of the second, ..."""
    problem = exact_problem(seed, n, n_classes=n_classes, pair=pair)
    rng = np.random.default_rng(seed)
    bins = np.minimum(rng.geometric(0.5, size=(n, 1)) - 1, n_categories - 1)
    bins = np.where(rng.random((n, 1)) < missing, n_categories, bins)
    table = table_of(bins, [n_categories], [True])
    return Problem(table, problem.gradient, problem.curvature, is_pair=pair)


@given(seeds, st.integers(2, 60), st.sampled_from([0, 0.2]))
def test_of_one_gradient_the_best_set_of_categories_is_the_best_of_all(seed, n, missing):
    problem = category_problem(seed, n, 6, missing=missing)
    problem = of_categories_with_rows(problem)
    check_gain_of_categories(problem, 0.0)


@given(seeds, st.integers(2, 60), st.sampled_from([0, 0.2]))
def test_categories_whose_gradients_lie_on_a_line_are_split_as_those_of_one(seed, n, missing):
    of_one = of_categories_with_rows(category_problem(seed, n, 6, missing=missing))
    line = np.random.default_rng(seed).integers(-4, 5, size=15)
    problem = Problem(of_one.table, of_one.gradient * line, of_one.curvature.repeat(15, axis=1))
    check_gain_of_categories(problem, 0.0)


@BY_LAYOUT
@few
@given(seed=seeds, n=st.integers(2, 60), missing=st.sampled_from([0, 0.2]))
def test_the_gain_of_a_set_is_that_of_the_definition_and_at_most_the_best(layout, seed, n, missing):
    problem = category_problem(seed, n, 5, missing=missing, **layout)
    found = searched(problem)
    best = max(best_gain(problem, 1.0), 0)
    near = allowed_error(problem, 1.0, best)
    assert found.gains[0] <= best + near
    if found.gains[0] > 0:
        is_left = found.goes_left[0][problem.table.bins[:, 0]]
        gain = reference.gain_of(is_left, problem.gradient, problem.curvature, 1.0)
        assert abs(found.gains[0] - gain) <= near


@BY_LAYOUT
@few
@given(seed=seeds, n=st.integers(2, 30))
def test_of_two_categories_the_only_split_is_found(layout, seed, n):
    problem = category_problem(seed, n, 2, **layout)
    check_gain_of_categories(problem, 1.0)


def test_categories_need_not_be_beside_each_other():
    gradient = np.array([3.0, -3.0, 3.0, -3.0])[:, None]
    table = table_of([[0], [1], [2], [3]], [4], [True])
    way = searched(Problem(table, gradient, np.ones((4, 1)))).goes_left[0]
    assert way[0] == way[2] != way[1] == way[3]


@BY_LAYOUT
@few
@given(seed=seeds)
def test_categories_without_rows_go_where_missing_values_go(layout, seed):
    problem = category_problem(seed, 20, 8, missing=0.2, **layout)
    found = searched(problem)
    assume(found.gains[0] > 0)
    way = found.goes_left[0]
    is_there = np.isin(np.arange(len(way)), problem.table.bins)
    assert (way[~is_there] == way[-1]).all()


@pytest.mark.parametrize("reg_lambda", [1.0, 0.0])
def test_categories_without_rows_change_no_gain(reg_lambda):
    for seed in range(80):
        for layout in LAYOUTS.values():
            problem = category_problem(seed, 20, 6, **layout)
            wider = table_of(problem.table.bins, np.diff(problem.table.first_cell) + 2, [True])
            found = searched(Problem(wider, problem.gradient, problem.curvature), reg_lambda)
            only = searched(of_categories_with_rows(problem), reg_lambda)
            np.testing.assert_allclose(found.gains, only.gains, rtol=1e-5)


@given(seeds, st.sampled_from([7.5, 40, 200]))
def test_no_set_of_categories_has_less_than_the_least_weight(seed, least):
    problem = category_problem(seed, 30, 5, n_classes=16)
    found = searched(problem, 1.0, least)
    if found.gains[0] > 0:
        is_left = found.goes_left[0][problem.table.bins[:, 0]]
        for side in (is_left, ~is_left):
            assert problem.curvature[side].sum(axis=0).mean() >= least


@given(seeds, st.integers(2, 40))
def test_a_set_of_categories_never_leaves_a_side_without_rows(seed, n):
    """Even where the sums of some order of the categories are not those of another."""
    rng = np.random.default_rng(seed)
    problem = category_problem(seed, n, 6)
    size = 10.0 ** rng.integers(-3, 8, size=(n, 1))
    noisy = Problem(problem.table, rng.normal(size=(n, 1)) * size, size)
    found = searched(noisy, 0.0)
    if found.gains[0] > 0:
        is_left = found.goes_left[0][problem.table.bins[:, 0]]
        assert is_left.any()
        assert not is_left.all()


def of_categories_with_rows(problem):
    """The same rows, and only the categories that they have."""
    bins, n_bins = problem.table.bins[:, 0], np.diff(problem.table.first_cell)[0] - 1
    there = np.unique(bins[bins < n_bins])
    renamed = np.where(bins == n_bins, len(there), np.searchsorted(there, bins))
    table = table_of(renamed[:, None], [len(there)], [True])
    return Problem(table, problem.gradient, problem.curvature)


def best_gain(problem, reg_lambda):
    splits = reference.all_splits(
        problem.table, problem.rows, problem.gradient, problem.curvature, reg_lambda
    )
    return max((split.gain for split in splits), default=0.0)


def check_gain_of_categories(problem, reg_lambda):
    best = best_gain(problem, reg_lambda)
    assert abs(searched(problem, reg_lambda).gains[0] - max(best, 0)) <= allowed_error(
        problem, reg_lambda, best
    )
