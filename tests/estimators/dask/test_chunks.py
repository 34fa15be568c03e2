"""Dask tables chunk by chunk: taken apart, looked through, encoded and split."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.errors import LabelError, StructentError
from structent.estimators.classes import Classes
from structent.estimators.columns import Columns
from structent.estimators.dask.chunks import (
    Chunk,
    checked_table,
    dask_chunks,
    encoded_chunks,
    in_array,
    predictions,
    row_of,
    sampled_rows,
    split_rows,
    surveyed_class_weights,
    surveyed_classes,
    surveyed_columns,
)
from structent.estimators.rows import TrainingRows
from structent.estimators.training import Encoder
from structent.structure import trivial

pytestmark = pytest.mark.requires("dask")

NUMBERS = np.arange(12.0).reshape(6, 2)
TABLE = da.from_array(NUMBERS, chunks=(4, 1))
LABELS = np.array(list("abcdef"))


def computed(chunks):
    return dask.compute([tuple(chunk) for chunk in chunks], scheduler="synchronous")[0]


def unknown(array):
    """Return the same array, whose rows Dask does not know the number of."""
    return array[da.from_array(np.ones(len(array), dtype=bool), chunks=array.chunks[0])]


def test_labels_and_weights_come_in_the_chunks_of_the_table():
    labels, weights = da.from_array(LABELS, chunks=3), da.arange(6, chunks=5)
    first, second = computed(dask_chunks(checked_table(TABLE, "X"), labels, weights))
    np.testing.assert_array_equal(first[0], NUMBERS[:4])
    np.testing.assert_array_equal(second[0], NUMBERS[4:])
    assert [part[1].tolist() for part in (first, second)] == [list("abcd"), list("ef")]
    assert [part[2].tolist() for part in (first, second)] == [[0, 1, 2, 3], [4, 5]]


def test_chunks_of_unknown_length_are_matched_by_number():
    table = dd.from_pandas(pd.DataFrame(NUMBERS), npartitions=2)
    series = dd.from_pandas(pd.Series(LABELS), npartitions=2)
    chunks = computed(dask_chunks(checked_table(table, "X"), series, None))
    assert [len(part[0]) for part in chunks] == [len(part[1]) for part in chunks] == [3, 3]
    assert [part[2] for part in chunks] == [None, None]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (unknown(da.from_array(LABELS, chunks=2)), "as many chunks as X .*, 2, got 3"),
        (da.from_array(LABELS[:5], chunks=3), "y has 5 rows but X has 6"),
        (da.from_array(LABELS[:, None], chunks=3), r"one axis, .* got Array with shape \(6, 1\)"),
        (list(LABELS), r"y must be a Dask array with one axis, or a Dask series, got list"),
    ],
)
def test_labels_that_do_not_fit_the_table_are_refused(labels, message):
    with pytest.raises(StructentError, match=message):
        dask_chunks(checked_table(TABLE, "X"), labels, None)


@pytest.mark.parametrize("table", [NUMBERS, TABLE[0], TABLE[:, da.arange(2, chunks=1) < 9]])
def test_a_table_must_be_of_dask_with_a_known_number_of_columns(table):
    with pytest.raises(StructentError, match="X must"):
        checked_table(table, "X")


def test_delayed_arrays_are_put_one_below_the_other():
    parts = [dask.delayed(np.full)((n, 2), n) for n in (1, 3)]
    array = in_array(parts, [1, 3], np.empty((0, 2), dtype=int))
    assert (array.shape, array.chunks) == ((4, 2), ((1, 3), (2,)))
    assert array.compute(scheduler="synchronous").tolist() == [[1, 1], [3, 3], [3, 3], [3, 3]]


def test_a_method_of_a_model_is_applied_to_every_chunk():
    class Doubling:
        def doubled(self, table, plus):
            return 2 * table[:, 0] + plus

    table = da.from_array(NUMBERS, chunks=(1, 2))
    lazy = predictions(table, Doubling(), "doubled", (1,))
    assert lazy.compute(scheduler="threads").tolist() == [1, 5, 9, 13, 17, 21]


@pytest.mark.parametrize(
    "dtype",
    ["float32", "int64", "bool", "Int64", "category", "object", "string", "datetime64[ns]"],
)
def test_a_made_up_row_has_the_columns_of_the_table(dtype):
    table = pd.DataFrame({"x": [1.0, 2.0], "y": pd.Series([0, 1], dtype=dtype)})
    made_up = row_of(dd.from_pandas(table, npartitions=1))
    assert len(made_up) == 1
    assert made_up.columns.tolist() == ["x", "y"]
    assert [column.kind for column in made_up.dtypes] == [column.kind for column in table.dtypes]


# What is learned of all chunks, against the same rows in one table

ABC = Classes.of_structure(trivial(["a", "b", "c"]))


class InThisProcess:
    """A stand-in for a cluster."""

    def compute(self, lazy, _what):
        return list(dask.compute(*lazy, scheduler="synchronous"))


HERE = InThisProcess()


def chunks_of(labels, weights=None, *, size):
    table = da.arange(len(labels), chunks=size)[:, None]
    weights = None if weights is None else da.from_array(weights, chunks=size)
    return dask_chunks(table, da.from_array(labels, chunks=size), weights)


def test_without_a_structure_the_classes_are_the_labels_of_all_chunks():
    chunks = chunks_of(np.array([3, 3, 1, 1, 2, 3]), size=2)
    assert surveyed_classes(None, chunks, HERE).values.tolist() == [1, 2, 3]


def test_without_a_structure_one_class_is_not_enough():
    with pytest.raises(LabelError, match=r"got 1 class: \[7\]"):
        surveyed_classes(None, chunks_of(np.full(6, 7), size=2), HERE)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["x", None, "y", "x", "w", "z"]),
        pd.Series(["x", None, "y", 1, 2, "z"], dtype=object),
        pd.Series([1, 2, 3, 4, 5, None], dtype=object),
        pd.Series(pd.Categorical([10, 2, None, 10, 3, 2])),
        pd.Series([True, False, True, False, True, True]),
        pd.Series([1, 2, None, 4, 5, 6], dtype="Int64"),
    ],
    ids=["text", "mixed", "numbers as objects", "categories", "bools", "numbers"],
)
def test_categories_are_those_of_the_whole_column(values):
    table = pd.DataFrame({"number": np.arange(6.0), "values": values})
    # Without conversion, objects stay what they are.
    with dask.config.set({"dataframe.convert-string": False}):
        columns = surveyed_columns(dd.from_pandas(table, npartitions=3), HERE)
    assert columns == Columns.of(table)


def test_dates_are_refused_before_anything_is_read():
    table = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=6)})
    with pytest.raises(StructentError, match="got dates in 'day'"):
        surveyed_columns(dd.from_pandas(table, npartitions=3), None)


def test_balanced_classes_have_the_same_total_weight():
    labels, weights = np.array(list("aaaab")), np.array([1.0, 1, 1, 1, 2])
    found = surveyed_class_weights("balanced", ABC, chunks_of(labels, weights, size=2), HERE)
    # 6 in all, so 3 for each of the two classes that have rows.
    np.testing.assert_allclose(found[:2], [3 / 4, 3 / 2])


def test_named_classes_have_their_weight_and_the_others_one():
    assert surveyed_class_weights({"b": 5.0}, ABC, [], None).tolist() == [1, 5, 1]
    assert surveyed_class_weights(None, ABC, [], None).tolist() == [1, 1, 1]


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 50), st.integers(0, 9))
def test_sampled_rows_are_different_ones_and_keep_their_labels_and_weights(n, size, wanted, seed):
    labels = np.arange(n)
    chunks = chunks_of(labels, labels / 2, size=size)
    table, some_labels, weights = sampled_rows(chunks, wanted, seed, HERE)
    assert len(table) == min(n, wanted)
    assert len(set(some_labels)) == len(some_labels)
    np.testing.assert_array_equal(table[:, 0], some_labels)
    np.testing.assert_array_equal(weights, some_labels / 2)


def test_every_row_is_sampled_as_often_as_any_other():
    chunks = chunks_of(np.arange(30), size=7)
    drawn = np.concatenate([sampled_rows(chunks, 6, seed, HERE)[1] for seed in range(300)])
    counts = np.bincount(drawn, minlength=30)  # 60 each, with a standard deviation of 7
    assert counts.min() > 25
    assert counts.max() < 95


def test_a_sample_of_dataframes_is_a_dataframe():
    table = dd.from_pandas(pd.DataFrame({"a": range(6), "b": list("uvwxyz")}), npartitions=3)
    some, labels, weights = sampled_rows(dask_chunks(table, table["b"], None), 4, 0, HERE)
    assert some["b"].tolist() == labels.tolist()
    assert weights is None


def test_no_rows_are_no_sample():
    with pytest.raises(StructentError, match="at least one row"):
        sampled_rows([Chunk(np.empty((0, 1)), np.empty(0), None)], 5, 0, HERE)


# Training rows, encoded and split

ENCODER = Encoder(Columns((None, None)), ABC, is_one_hot=False)
FOUR_ROWS = np.arange(8.0).reshape(4, 2)
ROWS = TrainingRows(np.arange(2000.0)[:, None], np.zeros(2000, dtype=int), np.ones(2000))


def encoded(table, labels, weights, class_weights=(1.0, 1.0, 1.0)):
    (lazy,) = encoded_chunks([Chunk(table, labels, weights)], ENCODER, np.array(class_weights))
    return lazy.compute(scheduler="synchronous")


def test_labels_become_indices_and_rows_without_weight_are_left_out():
    rows = encoded(FOUR_ROWS, np.array(["c", "a", "b", "c"]), np.array([2, 0, 1, 5]), (1, 1, 0.5))
    assert rows.labels.tolist() == [2, 1, 2]
    assert rows.weights.tolist() == [1, 1, 2.5]
    assert rows.features.tolist() == [[0, 1], [4, 5], [6, 7]]


def test_an_empty_chunk_has_no_rows_but_all_columns():
    rows = encoded(FOUR_ROWS[:0], np.array([]), None)
    assert rows.features.shape == (0, 2)
    assert rows.features.dtype == np.float32


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (
            list("abc"),
            None,
            "X and y must have the same rows in every chunk, got chunks of 4 and 3",
        ),
        (list("abca"), [1, 1, 1], "chunks of 3 and 4"),
        (list("abca"), [1, np.nan, 1, 1], "finite and not negative, got nan"),
        (list("abca"), [1, -2, 1, 1], "finite and not negative, got -2"),
        (list("abcd"), None, "'d' is not a class"),
    ],
)
def test_a_chunk_that_does_not_fit_is_refused(labels, weights, message):
    with pytest.raises(StructentError, match=message):
        encoded(FOUR_ROWS, np.array(labels), weights)


def test_every_row_is_either_trained_on_or_held_back():
    training, held = split_rows(ROWS, 0.3, seed=1, number=2)
    both = np.concatenate([training.features, held.features])[:, 0]
    assert sorted(both) == list(range(2000))
    assert len(held.labels) == pytest.approx(600, abs=5 * np.sqrt(2000 * 0.3 * 0.7))


def test_the_split_is_a_function_of_the_seed_and_the_number_of_the_chunk():
    def held(seed, number):
        return split_rows(ROWS, 0.3, seed, number)[1].features.ravel().tolist()

    assert held(1, 2) == held(1, 2)
    assert held(1, 2) != held(1, 3)
    assert held(1, 2) != held(2, 2)
