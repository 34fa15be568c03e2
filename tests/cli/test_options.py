"""Options are checked before anything is run, and the table that they name is opened once."""

import html
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from structent import StructuredBoostingClassifier
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
        assert found.startswith("--folds must be between 3 and")


@pytest.mark.parametrize("minutes", ["nan", "-1", "0", "0.01"])
def test_a_budget_in_which_nothing_can_be_said_is_refused_at_once(
    structent_command, monkeypatch, minutes
):
    monkeypatch.setattr("structent.cli.compare.read_question", None)  # not even the table is read
    sentence = refused(structent_command, "compare", *ABOUT, "--budget", minutes)
    assert sentence == (
        "--budget must be at least 0.1 minutes, because a shorter comparison finds nothing, "
        f"got {minutes}; leave it out for the default"
    )


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
        "[1] rows; hold out fewer with --calibrate"
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


# Columns that give the label away


@pytest.fixture
def months_with_leaks():
    """Months with their weather, an id, a code of the month and its season."""
    rng = np.random.default_rng(0)
    month = np.resize(range(1, 13), 120)
    table = {
        "month": month,
        "my id": rng.permutation(120),
        "code": month * 5 % 13,
        "season": np.array(["winter", "spring", "summer", "autumn"])[month % 12 // 3],
        "temperature": -np.cos(month * np.pi / 6) + rng.normal(scale=0.4, size=120),
    }
    pl.DataFrame(table).write_csv("months.csv")


CAUTIONS = [
    "Left out: 'my id' (different in every row, as an id is)",
    "Left out: 'code' (each of its 12 values has one label)",
    "To keep them: --keep 'my id' --keep code",
    "Suspicious: 'season' (each label has one value of it, so it may be made from the label)",
    "To leave it out: --drop season",
]
AS_DATA = {
    "left_out": [
        {"column": "my id", "reason": "different in every row, as an id is"},
        {"column": "code", "reason": "each of its 12 values has one label"},
    ],
    "suspicious": [
        {
            "column": "season",
            "reason": "each label has one value of it, so it may be made from the label",
        }
    ],
}
ABOUT_MONTHS = ["months.csv", "--target", "month", "--structure", "circular:width=3", "--jobs", "1"]
QUICKLY = {
    "compare": ["--folds", "3", "--repeats", "1", "--model", "linear"],
    "test": ["--folds", "3", "--permutations", "1", "--model", "linear"],
    "train": ["--save", "m"],
}


@pytest.mark.parametrize("command", QUICKLY)
@pytest.mark.usefixtures("months_with_leaks")
def test_what_gives_the_label_away_is_left_out_and_told_beside_the_result(
    structent_command, command
):
    code, out, err = structent_command(command, *ABOUT_MONTHS, *QUICKLY[command], "--quiet")
    assert code == 0, err
    assert CAUTIONS[0] in out.splitlines()  # whole, so that it can be pasted
    told = out[out.index(CAUTIONS[0]) :].splitlines()
    assert told[: len(CAUTIONS)] == CAUTIONS
    after = {"compare": ":", "test": "Against no structure", "train": "m: "}[command]
    assert after in told[len(CAUTIONS)]
    code, out, _ = structent_command(command, *ABOUT_MONTHS, *QUICKLY[command], "--json")
    found = json.loads(out)
    assert {name: found[name] for name in AS_DATA} == AS_DATA


@pytest.mark.parametrize("command", ["compare", "test"])
@pytest.mark.usefixtures("months_with_leaks")
def test_the_report_tells_it_beside_the_verdict(structent_command, command):
    arguments = [*ABOUT_MONTHS, *QUICKLY[command], "--report", "r.html"]
    code, _, err = structent_command(command, *arguments)
    assert code == 0, err
    # Before the work is done, too: it may take long.
    assert err.splitlines()[-len(CAUTIONS) :] == CAUTIONS
    header = html.unescape(Path("r.html").read_text().partition("</header>")[0])
    assert re.findall(r"<li>(.*)</li>", header) == CAUTIONS


@pytest.mark.usefixtures("months_with_leaks")
def test_columns_are_kept_and_dropped_by_name(structent_command):
    asked = ["--keep", "my id", "--keep", "code", "--drop", "season"]
    code, out, err = structent_command("train", *ABOUT_MONTHS, "--save", "m", *asked)
    assert code == 0, err
    model = StructuredBoostingClassifier.load("m")
    assert model.feature_names_in_.tolist() == ["my id", "code", "temperature"]
    assert [line.partition(" (")[0] for line in out.splitlines()][:3] == [
        "Suspicious: 'my id'",
        "Suspicious: 'code'",
        "To leave them out: --drop 'my id' --drop code",
    ]


def test_features_with_commas_are_named_in_quotes(structent_command):
    rng = np.random.default_rng(0)
    table = {
        "y": np.resize(["a", "b"], 60),
        "x, cm": rng.normal(size=60),
        'x "z"': rng.normal(size=60),
    }
    pl.DataFrame(table).write_parquet("t.parquet")
    about = ["entropy", "t.parquet", "--target", "y", "--structure", "trivial", "--json"]
    code, out, err = structent_command(*about, "--features", '"x, cm", "x ""z"""')
    assert code == 0, err
    assert set(json.loads(out)["told_by_feature"]) == {"x, cm", 'x "z"'}


@pytest.mark.usefixtures("months_with_leaks")
def test_many_remarks_are_counted(structent_command):
    table = pl.read_csv("months.csv")
    codes = {f"code {i}": table["code"] * i for i in range(1, 12)}
    table.with_columns(**codes).write_csv("months.csv")
    code, out, err = structent_command("entropy", *ABOUT_MONTHS[:-2])
    assert code == 0, err
    assert out.count("Left out: '") == 8
    assert "Left out: 5 more columns, which --json lists\n" in out


# Numbers that are no classes


@pytest.fixture
def prices():
    """A hundred and one prices, twice each, and text that is different in nearly every row."""
    rng = np.random.default_rng(0)
    price = np.resize(1000 + 7 * np.arange(101), 202)
    names = [f"name {min(i, 199)}" for i in range(202)]
    table = {"price": price, "name": names, "size": rng.normal(size=202)}
    pl.DataFrame(table).write_csv("prices.csv")


@pytest.mark.parametrize(
    ("command", "structure"),
    [
        ("compare", "ordinal"),
        ("compare", "learn"),
        ("test", "circular:width=2"),
        ("train", "trivial"),
        ("entropy", "ordinal"),
    ],
)
@pytest.mark.usefixtures("prices")
def test_hundreds_of_numbers_are_refused_with_advice(structent_command, command, structure):
    save = ["--save", "m.structent"] if command == "train" else []
    about = ["prices.csv", "--target", "price", "--structure", structure, "--features", "size"]
    assert refused(structent_command, command, *about, *save) == (
        "the target must be classes, got 101 different whole numbers in 'price', from 1000 to "
        "1700, which look like amounts; put them into bins in a new column and make that the "
        "target, or add --target-is-class if every number is a class"
    )


@pytest.mark.usefixtures("prices")
def test_numbers_are_classes_if_the_user_or_the_structure_says_so(structent_command):
    about = ["entropy", "prices.csv", "--target", "price", "--features", "size", "--structure"]
    code, _, err = structent_command(*about, "ordinal", "--target-is-class")
    assert code == 0, err
    order = "|".join(str(1000 + 7 * i) for i in range(101))
    code, _, err = structent_command(*about, f"ordinal:order={order}")
    assert code == 0, err


@pytest.mark.usefixtures("prices")
def test_warnings_of_libraries_stay_in_python():
    about = ["--target", "name", "--structure", "trivial", "--features", "size", "--jobs", "1"]
    command = [sys.executable, "-m", "structent", "train", "prices.csv", *about, "--save", "m"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Warning" not in result.stderr


def test_a_model_that_could_go_on_says_so_in_words_of_the_command(structent_command, monkeypatch):
    monkeypatch.setattr(
        "structent.cli.models.StructuredBoostingClassifier",
        partial(StructuredBoostingClassifier, n_estimators=3, max_depth=2),
    )
    code, out, err = structent_command(*TRAIN[:-1], "m")
    assert code == 0, err
    assert " ".join(out.split()).endswith("; it was still improving after 3 rounds, the limit")
    assert "n_estimators" not in out + err
