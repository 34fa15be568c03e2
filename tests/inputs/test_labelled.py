"""Tables made ready to learn from, and the notes that say what became of each column."""

from dataclasses import asdict
from datetime import date, timedelta

import polars as pl
import pytest

from structent import StructentError
from structent.datasets import load_seattle_weather, seattle_weather_file
from structent.inputs import FeatureColumn, features_and_labels, read_features, read_labels
from structent.inputs.labelled import label_column

ROWS = 40
LABELS = ["oak", "elm", "fir", "ash"] * 10


def written(tmp_path, **columns):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": LABELS, **columns}).write_parquet(path)
    return path


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
        seattle_weather_file(), "month", features=list(weather.feature_names)
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


def test_a_date_that_tells_the_label_is_left_out_or_refused_if_asked_for(tmp_path):
    months = {"oak": 1, "elm": 4, "fir": 7, "ash": 10}
    days = [date(2012, months[label], 1 + i // 4) for i, label in enumerate(LABELS)]
    path = written(tmp_path, day=days, a=mixed(9))
    assert features_and_labels(path, "y").feature_names == ("a",)
    assert features_and_labels(path, "y").notes == (
        "'day' left out: its month determines the labels",
    )
    with pytest.raises(StructentError, match="got 'day', whose month determines the labels"):
        features_and_labels(path, "y", features=["day", "a"])


def test_columns_of_the_structure_and_the_group_are_no_features(tmp_path):
    path = written(tmp_path, genus=["G"] * ROWS, site=mixed(5), a=mixed(9))
    table = features_and_labels(path, "y", group="site", excluded=["genus"])
    assert table.feature_names == ("a",)
    assert table.groups.tolist() == mixed(5)
    for name in ("y", "genus", "site"):
        with pytest.raises(StructentError, match=f"defines the structure, got '{name}'"):
            features_and_labels(path, "y", features=[name], group="site", excluded=["genus"])


def test_the_labels_are_no_groups(tmp_path):
    path = written(tmp_path, a=mixed(9))
    with pytest.raises(StructentError, match="another column than the target, got 'y' for both"):
        features_and_labels(path, "y", group="y")


def test_what_is_the_same_in_every_row_is_left_out(tmp_path):
    path = written(tmp_path, a=mixed(9), one=[1] * ROWS, none=[None] * ROWS)
    table = features_and_labels(path, "y")
    assert table.feature_names == ("a",)
    assert table.notes == ("'one', 'none' left out: they have one value in every row",)


def test_rows_without_a_label_or_a_group_are_left_out_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,g,a\noak,1,1\n,1,2\nelm,,3\nelm,2,4\n,,5\n")
    table = features_and_labels(path, "y", group="g")
    assert table.features["a"].to_list() == [1, 4]
    assert table.groups.tolist() == [1, 2]
    assert table.notes == (
        "2 rows without a label in 'y' left out",
        "1 row without a group in 'g' left out",
    )


def test_a_column_that_goes_with_the_label_is_suspicious(tmp_path):
    kind = {"oak": 1, "elm": 1, "fir": 2, "ash": 1}
    coarser = [kind[label] for label in LABELS]
    finer = [LABELS.index(label) * 2 + (i // 4) % 2 for i, label in enumerate(LABELS)]
    table = features_and_labels(written(tmp_path, coarser=coarser, finer=finer), "y")
    assert table.feature_names == ("coarser", "finer")
    assert table.notes == (
        "suspicious: every label has one value in 'coarser', which may define it",
        "suspicious: every value in 'finer' has one label, which it gives away",
    )


def test_a_column_without_a_name_is_row_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",y,a\n" + "".join(f"{i},{LABELS[i]},{mixed(9)[i]}\n" for i in range(ROWS)))
    table = features_and_labels(path, "y")
    assert table.feature_names == ("a",)
    assert table.notes == ("the column without a name left out: it should be row numbers",)


def test_text_that_does_not_repeat_itself_is_refused_with_advice(tmp_path):
    path = written(tmp_path, name=[f"tree {i}" for i in range(ROWS)], a=mixed(9), b=mixed(7))
    message = (
        r"got 'name' \(text with 40 values in 40 rows\); "
        r"choose other columns with --features, such as a,b$"
    )
    with pytest.raises(StructentError, match=message):
        features_and_labels(path, "y")
    assert features_and_labels(path, "y", features=["b"]).feature_names == ("b",)


@pytest.mark.parametrize("columns", [{}, {"one": [1] * ROWS, "two": ["x"] * ROWS}])
def test_without_a_feature_that_varies_there_is_nothing_to_learn(columns, tmp_path):
    with pytest.raises(StructentError, match="there must be a feature to learn from, got none"):
        features_and_labels(written(tmp_path, **columns), "y")


def test_a_feature_of_a_date_must_not_meet_a_column_of_its_name(tmp_path):
    days = [date(2012, 1, 1) + timedelta(days=37 * i) for i in range(ROWS)]
    path = written(tmp_path, **{"d": days, "d year": mixed(9)})
    with pytest.raises(StructentError, match="different names, got 'd year' as a column and"):
        features_and_labels(path, "y")


def test_missing_columns_are_named(tmp_path):
    path = written(tmp_path, site=mixed(5))
    for arguments in ({"features": ["sit"]}, {"group": "sit"}, {"excluded": ["sit"]}):
        with pytest.raises(StructentError, match="no column 'sit'; did you mean 'site'"):
            features_and_labels(path, "y", **arguments)


def test_a_later_table_gives_the_same_features(tmp_path):
    days = [str(date(2012, 1, 1) + timedelta(days=3 * i)) for i in range(ROWS)]
    colours = ["red" if i % 3 else "blue" for i in range(ROWS)]
    path = written(tmp_path, day=days, colour=colours, a=[str(i) if i else "NA" for i in mixed(9)])
    table = features_and_labels(path, "y")
    as_saved = [FeatureColumn(**asdict(column)) for column in table.columns]
    assert read_features(path, as_saved).equals(table.features)
    # The year is constant in the first table, so it is no feature of any.
    assert table.feature_names == ("day day sine", "day day cosine", "colour", "a")


def labels_of(values, tmp_path, dtype=None):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": pl.Series(values, dtype=dtype)}).write_parquet(path)
    return read_labels(path, "y")


@pytest.mark.parametrize("values", [["oak", "elm", "oak"], [3, 1, 2], [True, False, True]])
def test_labels_are_as_in_the_table(values, tmp_path):
    labels = labels_of(values, tmp_path)
    assert labels.values.tolist() == values
    assert labels.classes == tuple(sorted(set(values)))
    assert labels.notes == ()


def test_categories_are_text(tmp_path):
    assert labels_of(["b", "a"], tmp_path, pl.Categorical).values.tolist() == ["b", "a"]


def test_whole_numbers_written_as_decimals_are_whole(tmp_path):
    labels = labels_of([1.0, float("nan"), 2.0, None], tmp_path)
    assert list(map(repr, labels.values.tolist())) == ["1", "2"]
    assert labels.notes == (
        "the labels in 'y' are whole numbers written as decimals and were read as such",
        "2 rows without a label in 'y' left out",
    )


def test_a_word_for_a_missing_number_is_no_class():
    column, _ = label_column(pl.Series("y", ["1", "NA", "2"]))
    assert column.to_list() == [1, None, 2]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.5, 2.0], "got decimals such as 1.5 in column 'y'; predicting numbers is regression"),
        ([1e300, 2.0], "got decimals such as 1e+300"),
        ([date(2012, 1, 1), date(2012, 1, 2)], "got Date in column 'y'"),
        (["oak", "oak"], r"at least two different labels, got \['oak'\]"),
        (pl.Series([None, None], dtype=pl.String), r"at least two different labels, got \[\]"),
    ],
)
def test_what_cannot_be_a_target_is_refused(values, reason, tmp_path):
    with pytest.raises(StructentError, match=reason.replace("+", r"\+")):
        labels_of(values, tmp_path)
