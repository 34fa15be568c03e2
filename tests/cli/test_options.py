"""Options are checked before anything is run, and called by their own names."""

import polars as pl
import pytest

from structent.datasets import seattle_weather_file

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
