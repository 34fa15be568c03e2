"""Columns: what kind each is, and when a later table does not fit."""

from decimal import Decimal

import polars as pl
import pytest

from structent import StructentError
from structent.inputs.columns import features_of, kind_of


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pl.Series([1, 2]), "number"),
        (pl.Series([True, False]), "number"),
        (pl.Series([Decimal("1.5")]), "number"),
        (pl.Series(["1", "NA"]), "number"),
        (pl.Series(["2012-01-01", None]), "date"),
        (pl.Series(["a", "b"] * 5), "category"),
        (pl.Series(["a", "b"] * 5, dtype=pl.Categorical), "category"),
        (pl.Series(["a", "b"] * 4), None),
        (pl.Series([str(i % 51) + "x" for i in range(1000)]), None),
        (pl.Series([str(i % 50) + "x" for i in range(1000)]), "category"),
        (pl.Series([[1], [2]]), None),
    ],
)
def test_the_kind_of_a_column_is_what_it_holds(column, kind):
    assert kind_of(column) == kind


def test_a_column_without_any_value_fits_every_kind():
    nothing = pl.Series("x", [None, None])
    assert features_of(nothing, "number")[0].dtype == pl.Float64
    assert features_of(nothing, "category")[0].dtype == pl.Categorical
    assert [feature.null_count() for feature in features_of(nothing, "date")] == [2, 2, 2]


def test_decimals_are_floats():
    (feature,) = features_of(pl.Series("x", [Decimal("1.5")]), "number")
    assert (feature.dtype, feature[0]) == (pl.Float64, 1.5)


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (pl.Series("x", ["tall"]), "number", "'x' must hold numbers, got String such as 'tall'"),
        (pl.Series("x", [[1]]), "number", r"'x' must hold numbers, got List\(Int64\)"),
        (pl.Series("x", [1.0, float("inf")]), "number", "must hold finite numbers, got infinity"),
        (pl.Series("x", ["soon"]), "date", "must hold dates such as 2012-02-29, got String such"),
    ],
)
def test_a_column_that_is_not_of_its_kind_is_refused(column, kind, reason):
    with pytest.raises(StructentError, match=reason):
        features_of(column, kind)
