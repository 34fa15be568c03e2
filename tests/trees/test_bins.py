"""Bins, against a slow loop and by what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import StructentError
from structent.trees.bins import MOST_BINS, Bins

floats = st.one_of(
    st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100),
    st.integers(-3, 3).map(float),
    st.just(np.nan),
)
tables = st.tuples(st.integers(1, 40), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=floats)
)


def column(*values):
    return np.array(values, np.float32)[:, None]


def bins_by_loop(bins, features):
    """The number of edges below each number; the code's bin; the next bin for what is missing."""
    found = np.empty(features.shape, np.int64)
    for (i, j), x in np.ndenumerate(features):
        edges, of_category = bins.edges[j], bins.bin_of_category[j]
        is_known = not np.isnan(x) and (not len(of_category) or 0 <= x < len(of_category))
        if not is_known:
            found[i, j] = bins.n_bins[j]
        elif len(of_category):
            found[i, j] = of_category[int(x)]
        else:
            found[i, j] = sum(edge < x for edge in edges)
    return found


@given(tables, st.integers(2, MOST_BINS), st.integers(0, 2**32))
def test_the_bin_of_a_number_is_the_number_of_edges_below_it(features, max_bins, seed):
    bins = Bins.of(features, max_bins=max_bins)
    others = np.random.default_rng(seed).normal(size=(20, features.shape[1])).astype(np.float32)
    at_edges = np.resize(np.concatenate([*bins.edges, [0]]), (20, features.shape[1]))
    for some in (features, others, at_edges.astype(np.float32)):
        np.testing.assert_array_equal(bins.table(some), bins_by_loop(bins, some))


@given(tables)
def test_every_value_has_its_own_bin_where_values_are_few(features):
    binned = Bins.of(features).table(features)
    for values, of_values in zip(features.T, binned.T, strict=True):
        is_there = ~np.isnan(values)
        distinct, wanted = np.unique(values[is_there], return_inverse=True)
        np.testing.assert_array_equal(of_values[is_there], wanted)
        assert (of_values[~is_there] == max(len(distinct), 1)).all()


@given(tables, st.integers(2, 8))
def test_bins_are_in_the_order_of_the_values(features, max_bins):
    bins = Bins.of(features, max_bins=max_bins)
    assert (bins.n_bins <= max_bins).all()
    for values, of_values in zip(features.T, bins.table(features).T, strict=True):
        assert (np.diff(of_values[np.argsort(values, kind="stable")].astype(int)) >= 0).all()


@pytest.mark.parametrize("max_bins", [2, 16, 100, 255])
def test_bins_of_many_values_are_nearly_equally_full(max_bins):
    features = np.random.default_rng(0).lognormal(size=(5000, 1)).astype(np.float32)
    binned = Bins.of(features, max_bins=max_bins).table(features)
    counts = np.bincount(binned[:, 0], minlength=max_bins)
    assert len(counts) == max_bins
    assert abs(counts - 5000 / max_bins).max() <= 1


def test_a_frequent_value_fills_one_bin_and_leaves_the_rest_to_the_others():
    rng = np.random.default_rng(0)
    features = np.where(rng.random(9000) < 0.5, 0, rng.normal(size=9000))[:, None]
    bins = Bins.of(features.astype(np.float32), max_bins=20)
    counts = np.bincount(bins.table(features)[:, 0])
    # Half of the 20 quantiles are of the frequent value.
    assert len(counts) >= 10
    assert np.sort(counts)[-2] <= 2 * 9000 / 20


@pytest.mark.parametrize("sign", [1, -1], ids=["least", "largest"])
@pytest.mark.parametrize("max_bins", [2, 20, 255])
def test_a_value_that_nearly_all_rows_have_is_apart_from_the_others(sign, max_bins):
    others = np.linspace(1, 2, 300)
    features = column(*np.zeros(100_000), *(sign * others))
    binned = Bins.of(features, max_bins=max_bins).table(features)
    assert not np.isin(binned[100_000:], binned[:100_000]).any()


def test_many_rows_are_sampled_by_the_generator(monkeypatch):
    monkeypatch.setattr("structent.trees.bins._ROWS_FOR_QUANTILES", 1000)
    features = np.random.default_rng(0).random((20_000, 1)).astype(np.float32)
    first, again, other = (
        Bins.of(features, max_bins=10, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.edges[0], again.edges[0])
    assert (first.edges[0] != other.edges[0]).any()
    # The quantiles of 1000 rows are within 3 standard deviations (at most .016) of the share.
    np.testing.assert_allclose(first.edges[0], np.arange(1, 10) / 10, atol=0.05)


@given(st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100))
def test_neighbouring_floats_are_kept_apart(x):
    below = np.float32(x)
    above = np.nextafter(below, np.float32(np.inf), dtype=np.float32)
    bins = Bins.of(column(below, above))
    np.testing.assert_array_equal(bins.table(column(below, above)), [[0], [1]])


def test_zero_has_no_sign():
    np.testing.assert_array_equal(Bins.of(column(-0.0, 0.0, 1)).table(column(0.0, -0.0)), 0)


def test_infinite_values_are_the_outermost_bins():
    features = column(-np.inf, -1, 2, np.inf, np.nan)
    bins = Bins.of(features)
    np.testing.assert_array_equal(bins.table(features), np.arange(5)[:, None])
    np.testing.assert_array_equal(bins.table(column(-1e38, 1e38)), [[1], [2]])


def test_infinite_values_are_kept_apart_from_the_largest_floats():
    largest = np.finfo(np.float32).max
    features = column(-np.inf, -largest, largest, np.inf)
    np.testing.assert_array_equal(Bins.of(features).table(features), np.arange(4)[:, None])
    only = column(-np.inf, np.inf)
    np.testing.assert_array_equal(
        Bins.of(only).table(column(-np.inf, -1, 1, np.inf)).T, [[0, 0, 1, 1]]
    )


def test_the_largest_floats_are_kept_apart():
    largest = np.finfo(np.float32).max
    features = column(-largest, largest)
    np.testing.assert_array_equal(Bins.of(features).table(features), [[0], [1]])


def test_a_column_without_values_has_a_bin_and_one_for_missing_values():
    bins = Bins.of(column(np.nan, np.nan))
    assert bins.n_bins.tolist() == [1]
    np.testing.assert_array_equal(bins.table(column(np.nan, 3, np.inf)), [[1], [0], [0]])


def test_a_constant_column_has_one_bin():
    bins = Bins.of(column(7, 7, 7))
    assert bins.n_bins.tolist() == [1]
    np.testing.assert_array_equal(bins.table(column(-1, 7, 8, np.nan)), [[0], [0], [0], [1]])


def test_a_table_without_rows_has_bins():
    bins = Bins.of(np.empty((0, 2), np.float32))
    assert bins.n_bins.tolist() == [1, 1]
    assert bins.table(np.empty((0, 2), np.float32)).shape == (0, 2)


def test_255_values_have_255_bins_and_missing_values_the_last_byte():
    features = column(*range(255), np.nan)
    bins = Bins.of(features)
    assert bins.n_bins.tolist() == [255]
    np.testing.assert_array_equal(bins.table(features)[:, 0], np.arange(256))


def test_256_values_have_255_bins():
    assert Bins.of(column(*range(256))).n_bins.tolist() == [255]


@given(tables, st.integers(2, MOST_BINS), st.booleans(), st.integers(0, 2**32))
def test_no_bin_is_beyond_that_of_missing_values(features, max_bins, is_categorical, seed):
    """Whatever numbers come later: a histogram has no more cells."""
    rng = np.random.default_rng(seed)
    if is_categorical:
        features = rng.integers(400, size=features.shape).astype(np.float32)
    bins = Bins.of(features, [is_categorical] * features.shape[1], max_bins)
    assert (bins.n_bins <= max_bins).all()
    later = rng.integers(2**32, size=(200, features.shape[1]), dtype=np.uint32).view(np.float32)
    for some in (features, later, rng.integers(-9, 500, size=later.shape)):
        assert (bins.table(some) <= bins.n_bins).all()


def test_categories_have_the_bins_of_their_codes():
    features = column(3, 0, 3, 1)
    bins = Bins.of(features, [True])
    assert bins.is_categorical.tolist() == [True]
    assert bins.n_bins.tolist() == [4]
    np.testing.assert_array_equal(bins.table(features), features)


def test_unknown_codes_and_missing_ones_are_missing():
    bins = Bins.of(column(0, 1, np.nan), [True])
    unknown = column(2, 3e9, np.inf, -1, -np.inf, np.nan)
    np.testing.assert_array_equal(bins.table(unknown), 2)


def test_categories_that_are_all_missing_have_a_bin():
    bins = Bins.of(column(np.nan, np.nan), [True])
    assert bins.is_categorical.tolist() == [True]
    np.testing.assert_array_equal(bins.table(column(np.nan, 5)), 1)


@pytest.mark.parametrize("max_bins", [2, 10, 255])
def test_the_rarest_of_too_many_categories_share_the_last_bin(max_bins):
    n_categories = max_bins + 40
    counts = np.random.default_rng(0).permutation(n_categories) + 1
    features = np.repeat(np.arange(n_categories), counts).astype(np.float32)[:, None]
    bins = Bins.of(features, [True], max_bins=max_bins)
    assert bins.n_bins.tolist() == [max_bins]
    of_category = bins.table(column(*range(n_categories)))[:, 0]
    is_frequent = counts > n_categories - (max_bins - 1)
    assert len(set(of_category[is_frequent])) == max_bins - 1
    assert set(of_category[~is_frequent]) == {max_bins - 1}
    assert max_bins - 1 not in of_category[is_frequent]


def test_numbers_and_categories_stand_in_one_table():
    features = np.array([[0.5, 2, np.nan], [1.5, 0, 4], [np.nan, 7, 4]], np.float32)
    bins = Bins.of(features, [False, True, False])
    assert bins.n_columns == 3
    np.testing.assert_array_equal(bins.table(features), [[0, 2, 1], [1, 0, 0], [2, 7, 0]])


@pytest.mark.parametrize("max_bins", [-1, 0, 1, 256, 10_000])
def test_a_number_of_bins_that_no_byte_holds_is_refused(max_bins):
    with pytest.raises(StructentError, match=f"max_bins must be between 2 and 255, got {max_bins}"):
        Bins.of(column(1, 2), max_bins=max_bins)


def test_threads_give_the_same_table():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5000, 4)).astype(np.float32)
    features[:, 2] = rng.integers(300, size=5000)
    features[rng.random(features.shape) < 0.1] = np.nan
    bins = Bins.of(features, [False, False, True, False])
    np.testing.assert_array_equal(bins.table(features, 1), bins.table(features, 2))


def test_a_table_of_any_memory_layout_is_read():
    features = np.random.default_rng(0).normal(size=(50, 6))
    wanted = Bins.of(features.astype(np.float32)).table(features.astype(np.float32))
    bins = Bins.of(np.asfortranarray(features.astype(np.float32)))
    np.testing.assert_array_equal(bins.table(np.asfortranarray(features)), wanted)


@pytest.mark.parametrize(("n_rows", "n_bins"), [(40, 40), (500, 64), (1600, 100), (9000, 255)])
def test_numbers_of_few_rows_have_few_bins_unless_somebody_says_how_many(n_rows, n_bins):
    numbers = np.random.default_rng(0).permutation(n_rows).astype(np.float32)
    categories = np.arange(n_rows, dtype=np.float32) % 200
    table = np.column_stack([numbers, categories])
    assert Bins.of(table, [False, True], None).n_bins.tolist() == [n_bins, min(n_rows, 200)]
    assert Bins.of(table, [False, True], 255).n_bins[0] == min(n_rows, 255)


# Bytes

BINS = Bins.of(np.array([[1, 0], [2, 1], [4, np.nan]], dtype=np.float32), [False, True])


def test_bytes_give_the_bins_back():
    again = Bins.from_bytes(BINS.to_bytes(), 2)
    assert [edges.tolist() for edges in again.edges] == [[1.5, 3.0], []]
    assert [bins.tolist() for bins in again.bin_of_category] == [[], [0, 1]]


@pytest.mark.parametrize("n_columns", [1, 3, 1000])
def test_bins_of_other_columns_than_the_model_are_refused(n_columns):
    with pytest.raises(StructentError, match=f"have 2 columns, but the model has {n_columns}"):
        Bins.from_bytes(BINS.to_bytes(), n_columns)


@pytest.mark.parametrize(
    "header", [b"", b"{}", b"[" * 10_000, b" " * 1000 + b"{}", b'{"edges": [1e999, 0], "bins": 1}']
)
def test_a_header_that_says_nothing_of_bins_is_refused(header):
    _, _, rest = BINS.to_bytes().partition(b"\n")
    with pytest.raises(StructentError, match="their header is no JSON object of lists"):
        Bins.from_bytes(header + b"\n" + rest, 2)
