"""Features from columns: of what kind each is, what it becomes, and the notes on it."""

import math
from dataclasses import asdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructentError
from structent.datasets import load_seattle_weather, seattle_weather_file
from structent.inputs import (
    ColumnRemark,
    FeatureColumn,
    Table,
    features_and_labels,
    features_from,
    open_table,
)

ROWS = 40
LABELS = ["oak", "elm", "fir", "ash"] * 10


def written(tmp_path, **columns):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": LABELS, **columns}).write_parquet(path)
    return open_table(path)


def mixed(n_values):
    """Values that have nothing to do with the labels."""
    return [(i // 4 + i * 7) % n_values for i in range(ROWS)]


def test_numbers_and_bools_are_features_as_they_are(tmp_path):
    columns = {"a": [float(i) for i in mixed(9)], "b": [i % 3 == 0 for i in range(ROWS)]}
    table = features_and_labels(written(tmp_path, **columns), "y")
    assert table.features.to_dict(as_series=False) == columns
    assert table.labels.tolist() == LABELS
    assert (table.groups, table.notes) == (None, ())


def test_the_month_of_seattle_is_learned_from_its_weather_alone():
    weather = load_seattle_weather()
    table = features_and_labels(
        open_table(seattle_weather_file()), "month", features=list(weather.feature_names)
    )
    assert table.feature_names == weather.feature_names
    assert table.features.to_numpy().tolist() == weather.features.tolist()
    assert table.labels.tolist() == weather.labels.tolist()


def test_text_that_repeats_itself_becomes_categories(tmp_path):
    colours = [["red", "blue", None][i] for i in mixed(3)]
    table = features_and_labels(written(tmp_path, colour=colours), "y")
    assert table.features["colour"].dtype == pl.Categorical
    assert table.features["colour"].to_list() == colours
    assert table.notes == ("the text in 'colour' became 3 categories",)


def test_dates_become_numbers(tmp_path):
    days = [date(2012, 1, 1) + timedelta(days=37 * i) for i in range(ROWS)]
    table = features_and_labels(written(tmp_path, sown=days), "y")
    assert table.feature_names == ("sown year", "sown day sine", "sown day cosine")
    assert table.notes == (
        "the dates in 'sown' became 'sown year', 'sown day sine', 'sown day cosine'",
    )


@pytest.fixture
def with_leaks(tmp_path):
    """A date whose month is the label, a code of the label, an id, and an ordinary column."""
    place = {"oak": 1, "elm": 4, "fir": 7, "ash": 10}
    days = [date(2012, place[label], 1 + i // 4) for i, label in enumerate(LABELS)]
    codes = [100 - place[label] for label in LABELS]
    return written(tmp_path, day=days, code=codes, number=range(ROWS), a=mixed(9))


LEAKS = (
    ColumnRemark("day", "its month determines the label"),
    ColumnRemark("code", "each of its 4 values has one label"),
    ColumnRemark("number", "different in every row, as an id is"),
)


@pytest.mark.parametrize("features", [None, ["day", "code", "number", "a"]])
def test_what_gives_the_label_away_is_left_out_though_named(with_leaks, features):
    table = features_and_labels(with_leaks, "y", features=features)
    assert (table.feature_names, table.left_out) == (("a",), LEAKS)
    assert (table.notes, table.suspicious) == ((), ())


def test_what_gives_the_label_away_is_kept_if_asked_for_and_then_suspicious(with_leaks):
    table = features_and_labels(with_leaks, "y", keep=["code", "day"])
    assert table.feature_names == ("day day sine", "day day cosine", "code", "a")
    assert (table.left_out, table.suspicious) == (LEAKS[2:], LEAKS[:2])


def test_a_column_to_keep_is_one_of_the_features(with_leaks):
    with pytest.raises(StructentError, match="has no column 'cod'; did you mean 'code'"):
        features_and_labels(with_leaks, "y", keep=["cod"])
    for options in ({"features": ["a"]}, {"drop": ["code"]}, {"group": "code"}):
        with pytest.raises(StructentError, match="must be one of the features, got 'code'"):
            features_and_labels(with_leaks, "y", keep=["code"], **options)


def test_columns_to_drop_are_no_features(with_leaks):
    table = features_and_labels(with_leaks, "y", drop=["day", "number"])
    assert (table.feature_names, table.left_out) == (("a",), LEAKS[1:2])
    assert features_and_labels(
        with_leaks, "y", features=["a", "code"], drop=["code"]
    ).feature_names == ("a",)
    with pytest.raises(StructentError, match="has no column 'dya'; did you mean 'day'"):
        features_and_labels(with_leaks, "y", drop=["dya"])


def test_where_nothing_is_left_the_way_to_keep_it_is_told(with_leaks):
    with pytest.raises(StructentError, match=r"one label\); to keep them: --keep day --keep code$"):
        features_and_labels(with_leaks, "y", features=["day", "code"])


def test_rows_of_one_group_are_no_proof(tmp_path):
    """Trees of one plot have one height: a model is judged on other plots."""
    plots = [LABELS.index(label) for label in LABELS]
    opened = written(tmp_path, height=[plot + 0.25 for plot in plots], plot=plots, a=mixed(9))
    alone = features_and_labels(opened, "y")
    assert [remark.column for remark in alone.left_out] == ["height", "plot"]
    grouped = features_and_labels(opened, "y", group="plot")
    assert (grouped.feature_names, grouped.left_out) == (("height", "a"), ())


def test_columns_of_the_structure_and_the_group_are_no_features(tmp_path):
    opened = written(tmp_path, genus=["G"] * ROWS, site=mixed(5), a=mixed(9))
    table = features_and_labels(opened, "y", group="site", excluded=["genus"])
    assert table.feature_names == ("a",)
    assert table.groups.tolist() == mixed(5)
    for name in ("y", "genus", "site"):
        with pytest.raises(StructentError, match=f"defines the structure, got '{name}'"):
            features_and_labels(opened, "y", features=[name], group="site", excluded=["genus"])


def test_the_labels_are_no_groups(tmp_path):
    opened = written(tmp_path, a=mixed(9))
    with pytest.raises(StructentError, match="another column than the target, got 'y' for both"):
        features_and_labels(opened, "y", group="y")


def test_what_is_the_same_in_every_row_is_left_out(tmp_path):
    opened = written(tmp_path, a=mixed(9), one=[1] * ROWS, none=[None] * ROWS)
    table = features_and_labels(opened, "y")
    assert table.feature_names == ("a",)
    assert table.notes == ("'one', 'none' left out: they have one value in every row",)


def test_rows_without_a_label_or_a_group_are_left_out_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,g,a\noak,1,1\n,1,2\nelm,,3\nelm,2,4\n,,5\n")
    table = features_and_labels(open_table(path), "y", group="g")
    assert table.features["a"].to_list() == [1, 4]
    assert table.groups.tolist() == [1, 2]
    assert table.notes == (
        "2 rows without a label in 'y' left out",
        "1 row without a group in 'g' left out",
    )


def test_a_column_that_goes_with_the_label_is_suspicious(tmp_path):
    kind = {"oak": 1, "elm": 1, "fir": 2, "ash": 2}
    coarser = [kind[label] for label in LABELS]
    finer = [LABELS.index(label) * 2 + (i // 4) % 2 for i, label in enumerate(LABELS)]
    table = features_and_labels(written(tmp_path, coarser=coarser, finer=finer), "y")
    assert table.feature_names == ("coarser",)
    assert table.suspicious == (
        ColumnRemark("coarser", "each label has one value of it, so it may be made from the label"),
    )
    assert table.left_out == (ColumnRemark("finer", "each of its 8 values has one label"),)


def test_a_column_without_a_name_is_row_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",y,a\n" + "".join(f"{i},{LABELS[i]},{mixed(9)[i]}\n" for i in range(ROWS)))
    table = features_and_labels(open_table(path), "y")
    assert table.feature_names == ("a",)
    assert table.left_out == (ColumnRemark("", "without a name, as row numbers are"),)
    assert features_and_labels(open_table(path), "y", keep=[""]).feature_names == ("", "a")


def test_text_that_hardly_repeats_itself_is_refused_with_advice(tmp_path):
    names = [f"tree {max(i, 1)}" for i in range(ROWS)]  # one of them twice
    opened = written(tmp_path, **{"my name": names, "a": mixed(9), "b": mixed(7)})
    message = r"got 'my name' \(text with 39 values in 40 rows\); leave it out: --drop 'my name'$"
    with pytest.raises(StructentError, match=message):
        features_and_labels(opened, "y")
    assert features_and_labels(opened, "y", drop=["my name"]).feature_names == ("a", "b")


def test_text_that_never_repeats_itself_is_an_id_and_cannot_be_kept(tmp_path):
    opened = written(tmp_path, name=[f"tree {i}" for i in range(ROWS)], a=mixed(9))
    table = features_and_labels(opened, "y")
    assert table.left_out == (ColumnRemark("name", "different in every row, as an id is"),)
    with pytest.raises(StructentError, match=r"got 'name' \(text with 40 values in 40 rows\)"):
        features_and_labels(opened, "y", keep=["name"])


@pytest.mark.parametrize("columns", [{}, {"one": [1] * ROWS, "two": ["x"] * ROWS}])
def test_without_a_feature_that_varies_there_is_nothing_to_learn(columns, tmp_path):
    with pytest.raises(StructentError, match="there must be a feature to learn from, got"):
        features_and_labels(written(tmp_path, **columns), "y")


def test_a_feature_of_a_date_must_not_meet_a_column_of_its_name(tmp_path):
    days = [date(2012, 1, 1) + timedelta(days=37 * i) for i in range(ROWS)]
    opened = written(tmp_path, **{"d": days, "d year": mixed(9)})
    with pytest.raises(StructentError, match="different names, got 'd year' as a column and"):
        features_and_labels(opened, "y")


def test_missing_columns_are_named(tmp_path):
    opened = written(tmp_path, site=mixed(5))
    for arguments in ({"features": ["sit"]}, {"group": "sit"}, {"excluded": ["sit"]}):
        with pytest.raises(StructentError, match="no column 'sit'; did you mean 'site'"):
            features_and_labels(opened, "y", **arguments)


def test_a_later_table_gives_the_same_features(tmp_path):
    days = [str(date(2012, 1, 1) + timedelta(days=3 * i)) for i in range(ROWS)]
    colours = ["red" if i % 3 else "blue" for i in range(ROWS)]
    opened = written(
        tmp_path, day=days, colour=colours, a=[str(i) if i else "NA" for i in mixed(9)]
    )
    table = features_and_labels(opened, "y")
    as_saved = [FeatureColumn(**asdict(column)) for column in table.columns]
    assert features_from(opened, as_saved).equals(table.features)
    # The year is constant in the first table, so it is no feature of any.
    assert table.feature_names == ("day day sine", "day day cosine", "colour", "a")


# One column


def table_of(**columns):
    """A table that never was a file."""
    frame = pl.DataFrame(columns)
    return Table(Path("t.csv"), tuple(frame.columns), frame)


def made_of(column, kind):
    """Return the features that a column of a later table becomes."""
    names = ("x", "x year", "x day sine", "x day cosine", "x hour sine", "x hour cosine")
    return features_from(table_of(x=column), [FeatureColumn("x", kind, names)])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pl.Series([1, 2]), "number"),
        (pl.Series([True, False]), "number"),
        (pl.Series([Decimal("1.5"), Decimal("2.5")]), "number"),
        (pl.Series(["1", "NA", "2"]), "number"),
        (pl.Series(["2012-01-01", None, "2012-01-02"]), "date"),
        (pl.Series(["a", "b"] * 5), "category"),
        (pl.Series(["a", "b"] * 5, dtype=pl.Categorical), "category"),
        (pl.Series([str(i % 50) + "x" for i in range(1000)]), "category"),
    ],
)
def test_the_kind_of_a_column_is_what_it_holds(column, kind):
    labels = [f"label {i % 7 % 3}" for i in range(len(column))]
    (found,) = features_and_labels(table_of(x=column, y=labels), "y").columns
    assert found.kind == kind


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["a", "b"] * 4),  # too few rows of each
        pl.Series([str(i % 51) + "x" for i in range(1000)]),
        pl.Series([[1], [2]]),
    ],
)
def test_what_neither_is_a_number_nor_repeats_itself_is_no_feature(column):
    labels = [f"label {i % 2}" for i in range(len(column))]
    with pytest.raises(StructentError, match="must be numbers, dates or text that repeats itself"):
        features_and_labels(table_of(x=column, y=labels), "y")


def test_a_column_without_any_value_fits_every_kind():
    nothing = pl.Series("x", [None, None])
    assert made_of(nothing, "number")["x"].dtype == pl.Float64
    assert made_of(nothing, "category")["x"].dtype == pl.Categorical
    assert made_of(nothing, "date").null_count().row(0) == (2, 2, 2)


def test_decimals_are_floats():
    feature = made_of(pl.Series([Decimal("1.5")]), "number")["x"]
    assert (feature.dtype, feature[0]) == (pl.Float64, 1.5)


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (pl.Series(["tall"]), "number", "'x' must hold numbers, got String such as 'tall'"),
        (pl.Series([[1]]), "number", r"'x' must hold numbers, got List\(Int64\)"),
        (pl.Series([1.0, float("inf")]), "number", "must hold finite numbers, got infinity"),
        (pl.Series(["soon"]), "date", "must hold dates such as 2012-02-29, got String such"),
    ],
)
def test_a_column_that_is_not_of_its_kind_is_refused(column, kind, reason):
    with pytest.raises(StructentError, match=reason):
        made_of(column, kind)


# Dates


@given(st.lists(st.dates(), min_size=1))
def test_iso_text_is_the_dates_it_says(days):
    text = pl.Series([day.isoformat() for day in days])
    assert made_of(text, "date").equals(made_of(pl.Series(days), "date"))


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
    assert made_of(pl.Series([text, None]), "date").equals(
        made_of(pl.Series([moment, None]), "date")
    )


@pytest.mark.parametrize("text", ["03/04/2012", "2012-13-01", "2011-02-29", "maple", "2012"])
@pytest.mark.parametrize("others", [[], ["2012-01-01"]])
def test_what_could_be_two_days_or_none_is_no_date(text, others):
    with pytest.raises(StructentError, match="must hold dates such as 2012-02-29"):
        made_of(pl.Series([*others, text]), "date")


def test_the_last_day_of_a_year_is_beside_the_first_of_the_next():
    days = pl.Series([date(2012, 12, 31), date(2013, 1, 1), date(2012, 7, 1)])
    places = made_of(days, "date").select("x day sine", "x day cosine")
    end, start, summer = places.rows()
    assert math.dist(end, start) < 0.02
    assert math.dist(summer, start) > 1.99


def test_a_time_is_a_place_in_the_day():
    moments = made_of(pl.Series([datetime(2012, 1, 1, hour) for hour in (0, 6, 12)]), "date")
    assert moments["x hour sine"].to_list() == pytest.approx([0.0, 1.0, 0.0])
    assert moments["x hour cosine"].to_list() == pytest.approx([1.0, 0.0, -1.0])


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
    other = pl.Series([i * 7 % 11 for i in range(len(DAYS))])
    found = features_and_labels(table_of(day=DAYS, other=other, y=labels), "y")
    assert [remark.reason for remark in found.left_out] == (
        [] if part is None else [f"its {part} determines the label"]
    )
