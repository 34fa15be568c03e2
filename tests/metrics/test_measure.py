"""Metrics of Dask arrays: the numbers of NumPy, chunk by chunk, and never the whole table."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from structent import LabelError, StructureError, hierarchy, trivial
from structent.metrics import level_report, structured_log_loss
from tests.metrics.problems import METRICS, random_rows

pytestmark = pytest.mark.requires("dask")

PLANTS = hierarchy({"fern": ("herb",), "oak": ("tree",), "pine": ("tree",), "rose": ("herb",)})
UNEVEN = (17, 1, 0, 30, 12)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def rows():
    return random_rows(PLANTS, sum(UNEVEN))


@pytest.fixture(params=METRICS)
def metric(request):
    return METRICS[request.param]


def as_dask(proba):
    return da.from_array(proba, chunks=(UNEVEN, 3))  # chunked over the classes, too


def as_series(values):
    """A Dask series whose partitions are the chunks, of lengths that Dask does not know."""
    parts = np.split(np.asarray(values), np.cumsum(UNEVEN)[:-1])
    meta = pd.Series(np.asarray(values)[:0])
    return dd.from_delayed([dask.delayed(pd.Series)(part) for part in parts], meta=meta)


COLUMNS = {
    "a list": lambda values: values,
    "an array": np.array,
    "a column of pandas": pd.Series,
    "a Dask array": lambda values: da.from_array(np.array(values), chunks=(UNEVEN,)),
    "a Dask array in other chunks": lambda values: da.from_array(np.array(values), chunks=7),
    "a Dask series": as_series,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_number_is_that_of_numpy(metric, rows, kind):
    function, options = metric
    y_true, proba, weights = rows
    expected = function(y_true, proba, PLANTS, sample_weight=weights, **options)
    column = COLUMNS[kind]
    found = function(
        column(y_true),
        as_dask(proba),
        PLANTS,
        sample_weight=column(weights.tolist()),
        **options,
    )
    assert type(found) is float
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_columns_are_matched_by_name(rows):
    y_true, proba, _ = rows
    classes = PLANTS.classes[::-1]
    moved = proba[:, [PLANTS.classes.index(label) for label in classes]]
    found = structured_log_loss(y_true, as_dask(moved), PLANTS, classes=classes)
    expected = structured_log_loss(y_true, proba, PLANTS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_labels_may_be_tuples(rows):
    _, proba, _ = rows
    pairs = trivial([("cold", 1), ("cold", 2), ("hot", 1), ("hot", 2)])
    y_true = [pairs.classes[i % 4] for i in range(len(proba))]
    found = structured_log_loss(y_true, as_dask(proba), pairs)
    expected = structured_log_loss(y_true, proba, pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("lengths_known", [True, False])
def test_a_table_of_a_dataframe_is_scored_by_its_partitions(rows, lengths_known):
    y_true, proba, _ = rows
    frame = dd.from_pandas(pd.DataFrame(proba), npartitions=4)
    labels = dd.from_pandas(pd.Series(y_true), npartitions=4)
    table = frame.to_dask_array(lengths=True) if lengths_known else frame
    found = structured_log_loss(labels, table, PLANTS)
    np.testing.assert_allclose(found, structured_log_loss(y_true, proba, PLANTS), rtol=1e-12)


def numbers_in(result):
    """How many numbers a result holds, at whatever depth."""
    if isinstance(result, list | tuple):
        return sum(map(numbers_in, result))
    return np.size(result)


@pytest.fixture
def brought_together():
    """The sizes of what the scheduler hands back."""
    sizes = []

    def scheduler(graph, keys, **options):
        results = dask.get(graph, keys, **options)
        sizes.append(numbers_in(results))
        return results

    with dask.config.set(scheduler=scheduler):
        yield sizes


def test_only_a_few_sums_of_each_chunk_are_brought_together(metric, rows, brought_together):
    function, options = metric
    y_true, proba, _ = rows
    function(y_true, as_dask(proba), PLANTS, **options)
    # A confidence, a hit and a weight for each row where these have to be sorted.
    most = 3 * len(proba) if "n_bins" in options else 6 * len(UNEVEN)
    (size,) = brought_together
    assert size <= most + len(UNEVEN)
    assert size < proba.size


def test_a_report_computes_each_chunk_once(rows):
    y_true, proba, _ = rows
    visits = []

    def visited(chunk):
        visits.append(len(chunk))
        return chunk

    table = da.from_array(proba, chunks=(UNEVEN, -1)).map_blocks(visited, meta=proba[:0])
    found = level_report(y_true, table, PLANTS)
    assert sorted(visits) == sorted(UNEVEN)
    np.testing.assert_allclose(
        found.structured_log_loss, structured_log_loss(y_true, proba, PLANTS), rtol=1e-12
    )


def test_what_is_wrong_in_a_chunk_is_said(rows):
    y_true, proba, _ = rows
    with pytest.raises(LabelError, match="'oka' is not a class of the structure"):
        structured_log_loss(["oka", *y_true[1:]], as_dask(proba), PLANTS)
    with pytest.raises(StructureError, match="proba must sum to 1"):
        structured_log_loss(y_true, as_dask(2 * proba), PLANTS)
    with pytest.raises(StructureError, match="sample_weight must be finite and not negative"):
        structured_log_loss(y_true, as_dask(proba), PLANTS, sample_weight=[-1.0] * len(y_true))
    with pytest.raises(StructureError, match="at least one row with a weight above 0"):
        structured_log_loss(y_true, as_dask(proba), PLANTS, sample_weight=[0.0] * len(y_true))


def test_columns_that_do_not_fit_the_table_are_refused(rows):
    y_true, proba, _ = rows
    table = as_dask(proba)
    with pytest.raises(StructureError, match="y_true has 59 rows but proba has 60"):
        structured_log_loss(y_true[1:], table, PLANTS)
    with pytest.raises(StructureError, match="y_true must have as many rows as proba"):
        structured_log_loss(da.from_array(np.array(y_true[1:]), chunks=5), table, PLANTS)
    with pytest.raises(StructureError, match="sample_weight has 1 rows but proba has 60"):
        structured_log_loss(y_true, table, PLANTS, sample_weight=2.0)
    with pytest.raises(StructureError, match="proba must have 2 axes"):
        structured_log_loss(y_true, table[:, 0], PLANTS)


def test_rows_that_only_dask_could_count_need_labels_of_dask(rows):
    y_true, proba, _ = rows
    unknown = dd.from_pandas(pd.DataFrame(proba), npartitions=3).to_dask_array()
    with pytest.raises(StructureError, match=r"call proba.compute_chunk_sizes\(\) first"):
        structured_log_loss(y_true, unknown, PLANTS)
