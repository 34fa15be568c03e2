"""Options are checked before anything is run, and the table that they name is opened once."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from structent.datasets import seattle_weather_file
from structent.inputs import features_and_labels
from structent.inputs.table import label_column

ABOUT = [
    seattle_weather_file(), "--target", "month", "--structure", "circular:width=3", "--features",
    "precipitation,temp_max,temp_min,wind", "--quiet",
]  # fmt: skip
TRAIN = ["train", *ABOUT, "--save", "m.structent"]


def refused(structent_command, *arguments):
    """Return the one sentence by which a command is refused."""
    code, out, err = structent_command(*arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("structent: ")
    assert err.count("\n") == 1
    return err.removeprefix("structent: ").strip()


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.glob("*.structent")) == []


@pytest.mark.parametrize("command", [["compare", *ABOUT], ["test", *ABOUT], TRAIN])
@pytest.mark.parametrize(
    ("option", "value", "bounds"),
    [
        ("--seed", "-1", "between 0 and 4294967295"),
        ("--seed", "4294967296", "between 0 and 4294967295"),
        ("--jobs", "0", "between 1 and 1024"),
        ("--jobs", "-5", "between 1 and 1024"),
    ],
)
def test_seed_and_jobs_have_bounds_in_every_command(
    structent_command, command, option, value, bounds
):
    sentence = refused(structent_command, *command, option, value)
    assert sentence == f"{option} must be {bounds}, got {value}"


@pytest.mark.parametrize("command", ["compare", "test"])
@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--repeats", "0", "--repeats must be between 1 and 1000, got 0"),
        ("--folds", "1", "and 1461, the number of rows, got 1"),
        ("--folds", "2000", "and 1461, the number of rows, got 2000"),
        ("--group", "month", "the group must be another column than the target, got 'month'"),
    ],
)
def test_cross_validation_has_repeats_folds_and_groups(
    structent_command, command, option, value, sentence
):
    found = refused(structent_command, command, *ABOUT, option, value)
    assert sentence in found
    if option == "--folds":
        fewest = {"compare": 3, "test": 2}[command]
        assert found.startswith(f"--folds must be between {fewest} and")


@pytest.mark.parametrize("minutes", ["nan", "-1", "0"])
def test_a_budget_is_some_time(structent_command, minutes):
    sentence = refused(structent_command, "compare", *ABOUT, "--budget", minutes)
    assert sentence == f"--budget must be a number of minutes above 0, got {minutes}"


def test_levels_to_learn_are_one_at_the_least(structent_command):
    sentence = refused(structent_command, "compare", *ABOUT, "--structure", "learn:levels=0")
    assert sentence == "levels of learn must be between 1 and 1000, got 0"


@pytest.mark.parametrize("command", ["compare", "test", "entropy", "train"])
@pytest.mark.parametrize("features", [",", "", " , "])
def test_features_that_name_no_column_are_not_all_columns(structent_command, command, features):
    save = ["--save", "m.structent"] if command == "train" else []
    sentence = refused(structent_command, command, *ABOUT, *save, "--features", features)
    assert sentence == (
        f"--features must name columns, separated by commas, got {features!r}; "
        "leave it out for all columns"
    )


@pytest.mark.parametrize("weights", ["1.5", "-1", "nan"])
def test_weights_are_between_0_and_1(structent_command, weights):
    sentence = refused(structent_command, *TRAIN, "--weights", weights)
    assert sentence == f"--weights must be between 0 and 1, got {weights}"


def test_calibration_leaves_rows_to_train_on(structent_command):
    sentence = refused(structent_command, *TRAIN, "--calibrate", "0.999")
    assert sentence == (
        "training needs two classes or more, one of them with two rows or more, got classes with "
        "[1] rows; hold back fewer by --calibrate"
    )


def test_a_table_with_one_row_a_class_is_too_small_to_train_on(structent_command, tmp_path):
    pl.DataFrame({"size": ["S", "M", "L"], "x": [1.0, 2.0, 3.0]}).write_csv(tmp_path / "t.csv")
    sentence = refused(
        structent_command, "train", "t.csv", "--target", "size", "--structure",
        "ordinal:order=S|M|L", "--save", "m.structent",
    )  # fmt: skip
    assert sentence.endswith("got classes with [1, 1, 1] rows; give more rows")


# The table


@pytest.fixture
def plants():
    """A small table of plants, as CSV and as Parquet, whose genus is a column of its own."""
    rng = np.random.default_rng(0)
    species = np.resize(["oak", "ash", "rose", "lily"], 60)
    genus = np.where(np.isin(species, ["oak", "ash"]), "tree", "flower")
    sizes = (species == "oak") + 2.0 * (genus == "tree") + rng.normal(size=60)
    plot = np.arange(60) // 4
    table = pl.DataFrame({"species": species, "genus": genus, "size": sizes, "plot": plot})
    table.write_csv("plants.csv")
    table.write_parquet("plants.parquet")


@pytest.fixture
def readings(monkeypatch):
    """What is opened, and what polars is asked to read: pairs of the reader and its source."""
    found = []

    def recorded(name, function):
        def call(source, *arguments, **options):
            found.append((name, source))
            return function(source, *arguments, **options)

        return call

    monkeypatch.setattr(Path, "open", recorded("open", Path.open))
    for name in ("read_csv", "scan_csv", "read_parquet", "scan_parquet"):
        monkeypatch.setattr(pl, name, recorded(name, getattr(pl, name)))
    return found


def assert_opened_once(readings, table):
    """Say that a table was opened once, and read from there, but for the header of a CSV."""
    opened = [source for reader, source in readings if reader == "open"]
    assert opened.count(Path(table)) == 1
    readers = {reader: source for reader, source in readings if reader != "open"}
    assert not any(isinstance(source, str | Path) for source in readers.values())
    scan = "scan_csv" if table.endswith(".csv") else "scan_parquet"
    assert [reader for reader, _ in readings if reader not in ("open", "read_csv")] == [scan]
    assert len([reader for reader, _ in readings if reader == "read_csv"]) == (scan == "scan_csv")


ABOUT_PLANTS = ["--target", "species", "--structure", "hierarchy:columns=genus"]


@pytest.mark.parametrize("table", ["plants.csv", "plants.parquet"])
@pytest.mark.parametrize(
    "command",
    [
        ["compare", *ABOUT_PLANTS],
        ["compare", *ABOUT_PLANTS, "--features", "size", "--group", "plot"],
        ["compare", "--target", "species", "--structure", "learn", "--features", "size"],
        ["test", *ABOUT_PLANTS, "--features", "size", "--group", "plot"],
        ["entropy", *ABOUT_PLANTS],
        ["structure", "check", "hierarchy:columns=genus", "--target", "species"],
        ["structure", "show", "hierarchy:columns=genus", "--target", "species", "--data"],
    ],
)
@pytest.mark.usefixtures("plants")
def test_every_command_opens_its_table_once(
    structent_command, monkeypatch, readings, command, table
):
    def stop(*_arguments, **_options):
        raise RuntimeError("the table has been read")

    monkeypatch.setattr("structent.cli.compare.compare_rows", stop)
    monkeypatch.setattr("structent.cli.test.structure_test", stop)
    code, _, err = structent_command(*command, table)
    assert code == 0 or "the table has been read" in err, err
    assert_opened_once(readings, table)


@pytest.mark.usefixtures("plants")
def test_models_open_their_tables_once(structent_command, readings):
    for table, *command in (
        ["plants.csv", "train", *ABOUT_PLANTS, "--features", "size", "--save", "m", "plants.csv"],
        ["plants.parquet", "evaluate", "m", "plants.parquet"],
        ["plants.csv", "predict", "m", "plants.csv", "-o", "predictions.csv"],
    ):
        readings.clear()
        code, _, err = structent_command(*command)
        assert code == 0, err
        assert_opened_once(readings, table)


@pytest.mark.usefixtures("plants")
def test_only_the_columns_that_are_needed_are_loaded(structent_command, monkeypatch):
    loaded = []

    def keep(table, *arguments, **options):
        loaded.append(table.frame.columns)
        return features_and_labels(table, *arguments, **options)

    monkeypatch.setattr("structent.cli.options.features_and_labels", keep)
    code, _, err = structent_command("entropy", "plants.csv", *ABOUT_PLANTS, "--features", "size")
    assert code == 0, err
    assert loaded == [["species", "size", "genus"]]


@pytest.mark.usefixtures("plants")
def test_labels_are_converted_once(structent_command, monkeypatch):
    converted = []

    def keep(column):
        converted.append(column.name)
        return label_column(column)

    monkeypatch.setattr("structent.inputs.table.label_column", keep)
    code, _, err = structent_command("entropy", "plants.csv", *ABOUT_PLANTS)
    assert code == 0, err
    assert converted == ["species"]


def test_rows_are_scored_with_their_own_labels_where_some_have_none(structent_command):
    rng = np.random.default_rng(0)
    grades = np.arange(90) % 3
    sizes = grades + rng.normal(scale=0.1, size=90)
    pl.DataFrame({"grade": grades, "size": sizes}).write_csv("whole.csv")
    with_gaps = np.where(np.arange(90) % 10 == 0, "NA", grades.astype(str))
    pl.DataFrame({"grade": with_gaps, "size": sizes}).write_csv("gaps.csv")
    about = ["--target", "grade", "--structure", "ordinal", "--save", "m", "--quiet"]
    structent_command("train", "whole.csv", *about)
    code, out, err = structent_command("evaluate", "m", "gaps.csv", "--json")
    assert code == 0, err
    classes = json.loads(out)["rows"][-1]
    assert classes["n_rows"] == 81
    assert classes["accuracy"] > 0.95
