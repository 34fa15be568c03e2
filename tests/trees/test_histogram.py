"""Histograms, against one addition after the other in float64."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees import problems
from tests.trees.problems import Problem, exact_problem, filled, table_of

LAYOUTS = {
    "pair": {"n_classes": 1, "pair": True},
    "wide": {"n_classes": 16},
    "wide, not full": {"n_classes": 3},
    "several chunks": {"n_classes": 35},
    "signed": {"n_classes": 35, "signed": True},
}
BY_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def float_problem(seed, n, layout):
    """Any statistics rather than those whose sums are exact."""
    problem = exact_problem(seed, n, **layout)
    rng = np.random.default_rng(seed)
    gradient = rng.normal(size=problem.gradient.shape).astype(np.float32).astype(float)
    if problem.is_signed:
        gradient[:, 16:] = abs(gradient[:, 16:])  # a chunk without a negative one
        gradient[:, 33] *= -1  # and a chunk with one in each row
        return Problem(problem.table, gradient, abs(gradient), is_signed=True)
    curvature = rng.random(problem.curvature.shape)
    return Problem(problem.table, gradient, curvature, is_pair=problem.is_pair)


def summed(problem, rows):
    return problems.summed(problem.table, problem.statistics, rows)


@BY_LAYOUT
@given(seed=st.integers(0, 2**32), n=st.integers(1, 60))
def test_a_histogram_holds_the_sums_of_the_rows_in_each_bin(layout, seed, n):
    problem = float_problem(seed, n, layout)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n)
    begin, end = np.sort(rng.integers(n + 1, size=2))
    found = filled(problem, [begin, end, 1, -1], rows)[1]
    # Each of at most n additions rounds by half a unit in the last place of the partial sum; the
    # magnitudes of signed gradients are one such sum and twice another.
    magnitudes = summed(replace(problem, gradient=abs(problem.gradient)), rows[begin:end])
    allowed = (3 if problem.is_signed else 1) * n * 2.0**-24 * magnitudes
    assert (abs(found - summed(problem, rows[begin:end])) <= allowed).all()


@BY_LAYOUT
@given(seed=st.integers(0, 2**32), n=st.integers(2, 60))
def test_exact_statistics_have_exact_sums(layout, seed, n):
    problem = exact_problem(seed, n, missing=0.2, **layout)
    found = filled(problem, [0, n, 0, -1])[0]
    np.testing.assert_array_equal(found, summed(problem, problem.rows))


@BY_LAYOUT
@given(seed=st.integers(0, 2**32), n=st.integers(2, 60))
def test_the_parent_becomes_the_sibling(layout, seed, n):
    problem = exact_problem(seed, n, missing=0.2, **layout)
    rng = np.random.default_rng(seed)
    rows, cut = rng.permutation(n), int(rng.integers(1, n))
    found = filled(problem, [[0, n, 0, -1], [0, cut, 1, 0]], rows)
    np.testing.assert_array_equal(found[0], summed(problem, rows[cut:]))
    np.testing.assert_array_equal(found[1], summed(problem, rows[:cut]))


@BY_LAYOUT
def test_several_nodes_are_filled_at_once(layout):
    problem = exact_problem(0, 50, **layout)
    found = filled(problem, [[0, 20, 2, -1], [20, 50, 0, -1], [5, 5, 1, -1]], n_slots=4)
    np.testing.assert_array_equal(found[2], summed(problem, np.arange(20)))
    np.testing.assert_array_equal(found[0], summed(problem, np.arange(20, 50)))
    assert (found[1] == 0).all()  # a node without rows
    assert (found[3] == -77).all()  # nobody's


@BY_LAYOUT
@given(seed=st.integers(0, 2**32), parts=st.sets(st.integers(1, 4)))
def test_any_parts_of_the_columns_give_the_same_bits(layout, seed, parts):
    problem = float_problem(seed, 40, {"n_columns": 5, **layout})
    work = [[0, 40, 0, -1], [0, 15, 1, 0]]
    whole, in_parts = filled(problem, work), filled(problem, work, parts=parts)
    np.testing.assert_array_equal(whole.view(np.uint32), in_parts.view(np.uint32))


def test_255_bins_and_missing_values_have_their_cells():
    bins = np.arange(256)[:, None]
    problem = Problem(table_of(bins, [255]), np.arange(256.0)[:, None], np.ones((256, 1)))
    found = filled(problem, [0, 256, 0, -1])[0]
    np.testing.assert_array_equal(found[0, :, 0], np.arange(256))
