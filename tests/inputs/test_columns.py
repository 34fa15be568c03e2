"""Columns: what kind each is, and when a later table does not fit."""

import math
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructentError
from structent.inputs.columns import (
    dates_of,
    determines,
    features_of,
    kind_of,
    numbers_of_dates,
    part_that_determines,
)


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


@given(st.lists(st.dates(), min_size=1))
def test_iso_text_is_the_dates_it_says(days):
    assert dates_of(pl.Series([day.isoformat() for day in days])).to_list() == days


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2012/02/29", date(2012, 2, 29)),
        ("2012-02-29 13:45", datetime(2012, 2, 29, 13, 45)),
        ("2012-02-29T13:45:10", datetime(2012, 2, 29, 13, 45, 10)),
        ("2012-02-29T13:45:10.5Z", datetime(2012, 2, 29, 13, 45, 10, 500_000)),
    ],
)
def test_the_year_comes_first(text, moment):
    assert dates_of(pl.Series([text, None])).to_list() == [moment, None]


@pytest.mark.parametrize("text", ["03/04/2012", "2012-13-01", "2011-02-29", "maple", "2012"])
def test_what_could_be_two_days_or_none_is_no_date(text):
    assert dates_of(pl.Series(["2012-01-01", text])) is None
    assert dates_of(pl.Series([text])) is None


def test_the_last_day_of_a_year_is_beside_the_first_of_the_next():
    days = pl.Series("d", [date(2012, 12, 31), date(2013, 1, 1), date(2012, 7, 1)])
    _, sine, cosine = numbers_of_dates(days)
    end, start, summer = zip(sine, cosine, strict=True)
    assert math.dist(end, start) < 0.02
    assert math.dist(summer, start) > 1.99


def test_a_time_is_a_place_in_the_day():
    moments = pl.Series("t", [datetime(2012, 1, 1, hour) for hour in (0, 6, 12)])
    *_, sine, cosine = numbers_of_dates(moments)
    assert sine.to_list() == pytest.approx([0.0, 1.0, 0.0])
    assert cosine.to_list() == pytest.approx([1.0, 0.0, -1.0])


DAYS = pl.date_range(date(2012, 1, 1), date(2015, 12, 31), eager=True)


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        (DAYS.dt.month(), "month"),
        (DAYS.dt.quarter(), "month"),
        (DAYS.dt.year() > 2013, "year"),
        (DAYS.dt.weekday() > 5, "weekday"),
        (DAYS.dt.strftime("%m-%d").is_between("03-21", "09-22"), "day of the year"),
        (DAYS.dt.day() > 15, "day of the year"),
        (pl.Series([i % 5 for i in range(len(DAYS))]), None),
    ],
)
def test_the_part_of_a_date_that_tells_the_label_is_found(labels, part):
    assert part_that_determines(labels, DAYS) == part


def test_values_that_occur_once_determine_nothing():
    assert not determines(pl.Series([1, 2, 3, 4]), pl.Series(["a", "a", "b", "b"]))
    assert determines(pl.Series([1, 1, 2, 2]), pl.Series(["a", "a", "b", "b"]))
    assert not determines(pl.Series([1, 1, 2, 2]), pl.Series(["a", "b", "b", "b"]))
    assert not determines(pl.Series([1, 1, 1, 1]), pl.Series(["a", "a", "a", "a"]))
