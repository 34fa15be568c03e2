"""The design matrix of tables: standardised numbers, missing ones, and columns of categories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

from structent import StructentError
from structent.estimators.columns import CodedTable, Columns
from structent.estimators.design import Design

COLOURS = Columns((None, ("blue", "red"), None))

numbers = st.floats(-1000, 1000, width=32) | st.just(np.nan)
whole_weights = st.integers(0, 3)


def table_of(codes, columns=COLOURS):
    return CodedTable(columns, np.array(codes, dtype=np.float32))


def of_numbers(codes):
    codes = np.array(codes, dtype=np.float32).reshape(len(codes), -1)
    return CodedTable(Columns((None,) * codes.shape[1]), codes)


@given(arrays(np.float32, (6, 3), elements=numbers), arrays(np.int64, 6, elements=whole_weights))
def test_numbers_are_standardised_as_by_scikit_learn_and_missing_ones_count_as_the_mean(
    codes, weights
):
    if not weights.any():
        weights[0] = 1
    found = Design.of(of_numbers(codes), weights.astype(float)).standardised(codes)
    whole = codes.astype(np.float64)
    repeated = np.repeat(whole, weights, axis=0)
    for j, column in enumerate(repeated.T):
        known = column[~np.isnan(column)]
        expected = np.zeros(len(codes))
        if len(known) and known.min() == known.max():
            expected = whole[:, j] - known[0]
        elif len(known):
            expected = StandardScaler().fit(known[:, None]).transform(whole[:, [j]])[:, 0]
        elif not np.isnan(codes[:, j]).all():
            continue  # known only in rows without weight
        expected[np.isnan(codes[:, j])] = 0.0
        size = np.abs(known).max(initial=0.0) / (known.std() or 1.0) if len(known) else 1.0
        np.testing.assert_allclose(found[:, j], expected, rtol=1e-9, atol=1e-12 * (1 + size))


@pytest.mark.parametrize("value", [0.1, 1e30, -7.0, 1e-40])
def test_a_constant_column_is_exactly_0(value):
    table = of_numbers(np.full(7, value))
    assert not Design.of(table, np.linspace(0.1, 3.0, 7)).matrix(table.codes).any()


def test_the_largest_numbers_and_weights_do_not_overflow():
    largest = np.finfo(np.float32).max
    table = of_numbers([-largest, largest, largest, -largest])
    for weight in (1e300, 1.0, 1e-300):
        matrix = Design.of(table, np.full(4, weight)).matrix(table.codes)
        np.testing.assert_allclose(matrix[:, 0], [-1, 1, 1, -1])


def test_a_value_whose_weight_vanishes_does_not_make_a_deviation_of_0():
    table = of_numbers([5.0, 6.0])
    assert np.isfinite(Design.of(table, np.array([1.0, 1e-320])).matrix(table.codes)).all()


def test_a_column_says_missing_only_where_some_training_rows_lacked_it():
    codes = np.array([[1, 0, np.nan], [2, np.nan, np.nan], [np.nan, 1, np.nan]], dtype=np.float32)
    design = Design.of(table_of(codes), np.ones(3))
    assert design.names(["size", "colour", "nothing"]) == [
        "size", "size missing", "colour=blue", "colour=red", "nothing",
    ]  # fmt: skip
    np.testing.assert_array_equal(
        design.matrix(codes), [[-1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 1, 0]]
    )


def test_rows_without_weight_are_as_good_as_absent():
    codes = np.array([[1, 0, 3], [3, 0, 4], [np.nan, 1, np.nan]], dtype=np.float32)
    weights = np.array([2.0, 1.0, 0.0])
    design = Design.of(table_of(codes), weights)
    assert design == Design.of(table_of(codes[:2]), weights[:2])
    assert design.columns.categories[1] == ("blue",)


@pytest.mark.parametrize("n_categories", [3, 40])
def test_a_sparse_matrix_is_the_dense_one(n_categories):
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [rng.normal(size=200), np.arange(200) % n_categories, rng.normal(size=200)]
    ).astype(np.float32)
    codes[rng.random(codes.shape) < 0.2] = np.nan
    categories = tuple(f"c{place}" for place in range(n_categories))
    design = Design.of(table_of(codes, Columns((None, categories, None))), np.ones(200))
    matrix = design.matrix(codes)
    assert issparse(matrix) == (n_categories == 40)
    dense = matrix.toarray() if issparse(matrix) else matrix
    of_categories = codes[:, [1]] == np.arange(n_categories)
    np.testing.assert_array_equal(dense[:, 2 : 2 + n_categories], of_categories)
    np.testing.assert_array_equal(dense[:, [0, -2]], design.standardised(codes))
    np.testing.assert_array_equal(dense[:, [1, -1]], np.isnan(codes[:, [0, 2]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centre": (0.0,)}, "one centre, scale and has_missing per column"),
        ({"scale": (1.0, 1.0, 1.0, 1.0)}, "one centre, scale and has_missing per column"),
        ({"centre": (np.nan, 0.0, 0.0)}, "all within float32"),
        ({"centre": (np.inf, 0.0, 0.0)}, "all within float32"),
        ({"scale": (0.0, 1.0, 1.0)}, "all within float32"),
        ({"scale": (-1.0, 1.0, 1.0)}, "all within float32"),
        ({"scale": (1.0, np.nan, 1.0)}, "all within float32"),
        ({"has_missing": (False, True, False)}, "only columns of numbers can have"),
        ({"columns": Columns(((), (), ()))}, "got only columns of categories that are all missing"),
    ],
)
def test_a_design_that_cannot_be_is_refused(change, message):
    right = {
        "columns": COLOURS, "centre": (0.0,) * 3, "scale": (1.0,) * 3, "has_missing": (False,) * 3,
    }  # fmt: skip
    with pytest.raises(StructentError, match=message):
        Design(**{**right, **change})
