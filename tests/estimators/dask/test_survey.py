"""What is learned of all chunks, against the same rows in one table."""

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
from structent.estimators.dask.chunks import Chunk, dask_chunks
from structent.estimators.dask.survey import (
    sampled_rows,
    surveyed_class_weights,
    surveyed_classes,
    surveyed_columns,
)
from structent.structure import trivial

pytestmark = pytest.mark.requires("dask")

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
