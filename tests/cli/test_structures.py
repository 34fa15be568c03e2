"""``structent structure``, and structures by name wherever a command takes one."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from structent import RandomPartition, StructuredBoostingClassifier, circular, ordinal
from structent.datasets import seattle_weather_file
from structent.structure import catalog
from tests.estimators.problems import planted_problem

NUMBERS = ["--features", "precipitation,temp_max,temp_min,wind"]
SEATTLE = [seattle_weather_file(), "--target", "month", *NUMBERS]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def shown(structent_command, *arguments):
    code, out, err = structent_command("structure", "show", *arguments)
    assert code == 0, err
    return out.strip()


def test_the_structure_of_a_model_is_shown_and_written(structent_command):
    train = ["train", *SEATTLE, "--structure", "circular:width=4", "--save", "months.structent"]
    code, _, err = structent_command(*train, "--jobs", "1", "--quiet")
    assert code == 0, err
    year = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    assert shown(structent_command, "months.structent") == str(circular(year, width=4))
    Path("months.structent").rename("months of seattle")  # whatever its name
    assert shown(structent_command, "months of seattle") == str(circular(year, width=4))
    convert = ["structure", "convert", "months of seattle", "-o", "year.json"]
    code, _, err = structent_command(*convert)
    assert code == 0, err
    assert RandomPartition.load("year.json") == circular(year, width=4)
    code, out, err = structent_command("entropy", *SEATTLE, "--structure", "months of seattle")
    assert (code, "Structured entropy of month" in out) == (0, True), err


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ("circular:width=3", "a,b,c,d", circular(["a", "b", "c", "d"], width=3)),
        ("circular:width=2", "mar, jan, feb", circular(["mar", "jan", "feb"], width=2)),
        ("ordinal:weight=0.25", "2,10,3", ordinal([2, 10, 3], singleton_weight=0.25)),
        ("ordinal", '"b, or so",a', ordinal(["b, or so", "a"])),
        ("ordinal:order=x|z|y", "x,y,z", ordinal(["x", "z", "y"])),
        ("months", "1,2", catalog.months()),
    ],
)
def test_classes_are_given_in_their_order(structent_command, spec, classes, expected):
    assert shown(structent_command, spec, "--classes", classes) == str(expected)
    convert = ["structure", "convert", spec, "--classes", classes, "-o", "s.json"]
    code, _, err = structent_command(*convert)
    assert code == 0, err
    assert RandomPartition.load("s.json").classes == expected.classes  # numbers are numbers


@pytest.mark.parametrize("name", ["months", "cifar100", "us-states", "california_counties"])
def test_the_catalog_is_shown_by_name(structent_command, name):
    structure = getattr(catalog, name.replace("-", "_"))()
    assert f"{len(structure.classes)} classes: " in shown(structent_command, name)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("entropy", []),
        ("train", ["--save", "m", "--jobs", "1"]),
        ("test", ["--permutations", "1", "--folds", "3", "--jobs", "1", "--model", "linear"]),
        ("compare", ["--folds", "3", "--repeats", "1", "--jobs", "1", "--model", "linear"]),
    ],
)
def test_the_catalog_is_a_structure_in_every_command(structent_command, command, options):
    """One of the twelve months has no row here, and keeps its place."""
    days = pl.read_csv(seattle_weather_file()).filter(pl.col("month") != "nov")[::4]
    days.write_csv("days.csv")
    about = ["days.csv", "--target", "month", "--structure", "months", *NUMBERS, *options]
    code, _, err = structent_command(command, *about)
    assert code == 0, err
    assert "1 class of the structure has no row, but gets a probability: 'nov'" in err
    code, out, err = structent_command(
        "structure", "check", "months", "days.csv", "--target", "month"
    )
    assert (code, out) == (0, "12 classes; every label of days.csv is one of them.\n"), err


def test_columns_are_matched_by_name_whatever_their_order(structent_command):
    rng = np.random.default_rng(0)
    label = np.resize([0, 1, 2], 90)
    table = pl.DataFrame(
        {
            'leaf "long"': label + rng.normal(size=90),
            "leaf, wide": -label + rng.normal(size=90),
            "colour": rng.choice(["red", "blue"], size=90),
            "grade": label,
        }
    )
    table.write_csv("rows.csv")
    turned = table.select(reversed(table.columns)).with_columns(more=pl.lit(1.5))
    turned.write_csv("turned.csv")
    turned.write_parquet("turned.parquet")
    train = ["train", "rows.csv", "--target", "grade", "--structure", "ordinal", "--save", "m"]
    code, _, err = structent_command(*train, "--jobs", "1", "--quiet")
    assert code == 0, err
    found = []
    for name in ("rows.csv", "turned.csv", "turned.parquet"):
        code, _, err = structent_command("predict", "m", name, "-o", "out.csv")
        assert code == 0, err
        found.append(pl.read_csv("out.csv"))
        code, out, err = structent_command("evaluate", "m", name, "--json")
        assert code == 0, err
        accuracy = (found[-1]["prediction"] == table["grade"]).mean()
        assert json.loads(out)["rows"][-1]["accuracy"] == pytest.approx(accuracy)
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


# What users do wrong

ABOUT = [seattle_weather_file(), "--target", "month"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["structure", "show", "circular:width=3"],
         "circular:width=3 needs to know the classes, got none; list them, as in --classes a,b,c,"),
        (["structure", "show", "ordinal", "--classes", "a,b", "--data", *ABOUT],
         "the classes come from --classes or from --data, got both"),
        (["structure", "show", "ordinal", "--data", "x.csv"],
         "--data and --target belong together, got one of them"),
        (["structure", "show", "months", "--classes", "1,13"],
         "13 is not a class of the structure; did you mean 3 or 1?"),
        (["structure", "show", "circle:width=3", "--classes", "a,b,c"],
         "'circle:width=3' is not a structure; did you mean circular:width=3?"),
        (["structure", "check", "monhts", *ABOUT], "'monhts' is not a structure; did you mean mon"),
        (["train", *ABOUT, "--structure", "learn", "--save", "m"],
         "the model that it saves can be used as the structure"),
        (["compare", *ABOUT, "--structure", "learn", "--allow-blocks"],
         "--allow-blocks needs a structure with named blocks, got learn"),
        (["compare", *ABOUT, "--structure", "months", "--group", "weather", "--folds", "7",
          *NUMBERS], "--folds must be between 3 and 5, the number of groups, got 7"),
        (["entropy", seattle_weather_file(), "--target", "weather", "--structure", "ordinal"],
         "write 'ordinal:order=drizzle|fog|rain|snow|sun' with all labels in their order"),
        (["predict", "plain", seattle_weather_file(), "-o", "o.csv"],
         "the model file must list its columns, got plain, which does not; train it with"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)  # fmt: skip
def test_advice_is_for_the_command_line(structent_command, arguments, sentence):
    if "plain" in arguments:  # a model that knows nothing of tables
        structure, features, labels = planted_problem(100)
        model = StructuredBoostingClassifier(structure, n_estimators=3, max_depth=2)
        model.fit(features, labels).save("plain")
    code, out, err = structent_command(*arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    # No calls, keyword arguments or names of Python.
    assert not re.search(r"\w\(\)|=(True|None)\b|Python|n_folds|allow_blocks|random_state", err)
