"""Dask tables chunk by chunk."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from structent.errors import StructentError
from structent.estimators.dask.chunks import checked_table, dask_chunks, in_array, predictions

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
