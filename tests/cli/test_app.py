"""The command line, run as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import structent
from structent.cli.app import COMMANDS, loaded
from structent.datasets import load_seattle_weather, seattle_weather_file
from structent.estimators.files import estimator_of

COMMAND = Path(sys.executable).parent / "structent"
MONTHS = load_seattle_weather().structure
SEATTLE = str(seattle_weather_file())
ABOUT_MONTHS = [SEATTLE, "--target", "month", "--structure", "circular:width=3"]
NUMBERS = ["--features", "precipitation,temp_max,temp_min,wind"]


def run(*arguments, **options):
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """A small table of plants, whose genus is a column of its own."""
    rng = np.random.default_rng(0)
    genus_of = {"oak": "tree", "ash": "tree", "rose": "flower", "lily": "flower"}
    species = rng.choice(list(genus_of), size=160)
    centre = {"oak": 0.0, "ash": 0.6, "rose": 3.0, "lily": 3.6}
    size = np.array([centre[name] for name in species]) + rng.normal(size=160)
    path = tmp_path_factory.mktemp("plants") / "plants.csv"
    pl.DataFrame(
        {
            "species": species,
            "genus": [genus_of[name] for name in species],
            "size": size,
            "noise": rng.normal(size=160),
            "plot": np.arange(160) // 4,
        }
    ).write_csv(path)
    return path


QUICK = ["--folds", "3", "--repeats", "1", "--jobs", "2"]


# The main job

FINDINGS = ("Use it", "Do not use it", "Undecided")
LOADERS = {
    each.__name__: each.load
    for each in (structent.StructuredBoostingClassifier, structent.StructuredLogisticRegression)
}


def test_compare_prints_the_table_and_the_verdict_last(structent_command, plants, tmp_path):
    report, model = tmp_path / "report.html", tmp_path / "model.structent"
    code, out, err = structent_command(
        "compare", plants, "--target", "species", "--structure", "hierarchy:columns=genus",
        "--group", "plot", "--report", report, "--save", model, *QUICK,
    )  # fmt: skip
    assert code == 0, err
    ends = [out.rindex(f"{finding}:") for finding in FINDINGS if f"\n{finding}:" in out]
    (verdict,) = [" ".join(out[end:].split()) for end in ends]
    assert "95 %" in verdict or "validation rows chose no structure" in verdict
    for shown in ("genus", "class", "log loss", "scrambled copies", "no structure"):
        assert shown in out
    assert "<html" in report.read_text()
    loaded = LOADERS[estimator_of(model)](model)
    # The column that defines the structure gives the label away, and the group is no feature.
    assert loaded.feature_names_in_.tolist() == ["size", "noise"]


def test_compare_as_json_is_for_machines(structent_command, plants):
    code, out, _ = structent_command(
        "compare", plants, "--target", "species", "--structure", "hierarchy:columns=genus",
        "--json", *QUICK,
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert found["verdict"]["finding"].capitalize() in FINDINGS
    assert set(found["scores"]) == {"none", "structure", "scrambled"}
    assert (found["folds"], found["repeats"]) == (3, 1)
    assert found["against_none"]["low"] <= found["against_none"]["mean"]


def test_compare_writes_the_probabilities_of_the_rows_that_it_tested(
    structent_command, plants, tmp_path
):
    tested = tmp_path / "tested.csv"
    code, out, err = structent_command(
        "compare", plants, "--target", "species", "--structure", "hierarchy:columns=genus",
        "--predictions", tested, "--json", *QUICK,
    )  # fmt: skip
    assert code == 0, err
    found, table = json.loads(out), pl.read_csv(tested)
    assert len(table) == found["rows"]
    assert table["label"].to_list() == pl.read_csv(plants)["species"].to_list()
    for arm in ("no structure", "the structure"):
        of_arm = [name for name in table.columns if name.startswith(f"{arm}: ")]
        assert [name.partition(": ")[2] for name in of_arm] == sorted(set(table["label"]))
        assert np.allclose(table.select(of_arm).to_numpy().sum(axis=1), 1)
    assert sorted(set(table["split"])) == [0, 1, 2]


def test_the_table_of_probabilities_must_be_of_a_known_kind(structent_command, plants, tmp_path):
    about = ["compare", plants, "--target", "species", "--structure", "hierarchy:columns=genus"]
    code, _, err = structent_command(*about, "--predictions", tmp_path / "tested.xlsx")
    assert code != 0
    assert "the output must end in .parquet or .csv, got tested.xlsx" in " ".join(err.split())
    code, _, err = structent_command(*about, "--predictions", plants)
    assert "would replace" in err


def test_folds_and_repeats_are_told_apart(structent_command, plants):
    about = ["compare", plants, "--target", "species", "--structure", "hierarchy:columns=genus"]
    code, out, err = structent_command(*about, "--folds", "3", "--repeats", "2", "--jobs", "2")
    assert code == 0, err
    assert "3 folds x 2 repeats" in " ".join(out.split())
    assert "6 folds" not in out
    assert "±" in out
    assert "+-" not in out


def test_compare_learns_the_structure_in_every_split(structent_command, plants, tmp_path):
    report, model = tmp_path / "report.html", tmp_path / "model.structent"
    code, out, err = structent_command(
        "compare", plants, "--target", "species", "--structure", "learn:levels=1", "--features",
        "size,noise", "--report", report, "--save", model, *QUICK,
    )  # fmt: skip
    assert code == 0, err
    assert "level 1" in out
    assert "learned again from the training rows of every split" in report.read_text()
    loaded = LOADERS[estimator_of(model)](model)
    assert set(loaded.structure.level_of) == {"level 1", "class"}


def test_only_compare_learns_a_structure(structent_command, plants, tmp_path):
    about = [plants, "--target", "species", "--structure"]
    code, _, err = structent_command("train", *about, "learn", "--save", tmp_path / "model")
    assert code != 0
    assert "only structent compare takes the structure 'learn'" in " ".join(err.split())
    code, _, err = structent_command("compare", *about, "learn:width=3")
    assert code != 0
    assert "learn takes the options levels, got 'width'" in " ".join(err.split())


@pytest.mark.slow
def test_the_demo_answers_both_questions_and_says_what_to_type_next(tmp_path):
    result = run("demo", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "Use it: the structure lowers log loss by" in said
    # The second act says what it says; it never claims a gain.
    second = said.partition("2. Can the weather of a day in Seattle tell the month")[2]
    assert second.count("95 %") == 1
    assert "Use it" not in second
    for name in ("hours", "months"):
        report = tmp_path / f"structent-demo-{name}.html"
        assert f"The report: {report.name}" in said
        assert report.stat().st_size > 10_000
    assert "structent predict model.structent new.csv" in said
    assert "Traceback" not in result.stderr


# A model of one's own


def test_a_model_is_trained_used_and_scored(structent_command, tmp_path):
    model, out = tmp_path / "months.structent", tmp_path / "predictions.parquet"
    code, text, _ = structent_command("train", *ABOUT_MONTHS, *NUMBERS, "--save", model, "--quiet")
    assert code == 0
    assert "validation log loss" in text
    code, _, _ = structent_command("predict", model, SEATTLE, "-o", out, "--confidence", "0.6")
    assert code == 0
    predictions = pl.read_parquet(out)
    assert len(predictions) == 1461
    assert set(predictions["prediction"]) <= set(MONTHS.classes)
    assert (predictions["answer_probability"] >= 0.6 - 1e-12).all()
    shares = predictions.select([f"probability of {label}" for label in MONTHS.classes])
    np.testing.assert_allclose(shares.sum_horizontal(), 1)
    code, text, _ = structent_command("evaluate", model, SEATTLE, "--json")
    scores = {row["level"]: row for row in json.loads(text)["rows"]}
    truth = pl.read_csv(SEATTLE)["month"]
    accuracy = (predictions["prediction"] == truth).mean()
    assert scores["class"]["accuracy"] == pytest.approx(accuracy)


def test_a_level_is_named_where_the_structure_has_it(structent_command, plants, tmp_path):
    model, out = tmp_path / "plants.structent", tmp_path / "plants.csv"
    structent_command(
        "train", plants, "--target", "species", "--structure", "hierarchy:columns=genus",
        "--features", "size,noise", "--save", model, "--weights", "0.4",
    )  # fmt: skip
    code, _, err = structent_command("predict", model, plants, "-o", out, "--level", "genus")
    assert code == 0, err
    assert set(pl.read_csv(out)["genus"]) <= {"tree", "flower"}


# Structures and entropy


def test_structures_are_shown_checked_and_converted(structent_command, tmp_path):
    about = ["--data", SEATTLE, "--target", "month"]
    code, out, _ = structent_command("structure", "show", "circular:width=3", *about)
    assert code == 0
    assert "jan..mar (3), apr..jun (3)" in out
    saved = tmp_path / "months.json"
    structent_command("structure", "convert", "circular:width=3", "-o", saved, *about)
    assert structent.RandomPartition.load(saved) == MONTHS
    code, out, _ = structent_command("structure", "check", saved, SEATTLE, "--target", "month")
    assert (code, out) == (0, "12 classes; every label of seattle_weather.csv is one of them.\n")
    code, out, _ = structent_command("structure", "show", saved)
    assert "12 classes" in out


def test_features_are_ranked_by_what_they_tell(structent_command):
    code, out, _ = structent_command("entropy", *ABOUT_MONTHS, *NUMBERS, "--json")
    assert code == 0
    told = json.loads(out)["told_by_feature"]
    assert list(told.values()) == sorted(told.values(), reverse=True)
    assert list(told)[-1] in ("wind", "precipitation")
    twelfths = np.bincount(MONTHS.encode(pl.read_csv(SEATTLE)["month"].to_list())) / 1461
    wanted = structent.structured_entropy(twelfths, MONTHS)
    assert json.loads(out)["entropy"] == pytest.approx(wanted)


# What users do wrong


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["compare", "no.csv", "--target", "x", "--structure", "ordinal"], "no file no.csv"),
        (["compare", SEATTLE, "--target", "mnth", "--structure", "ordinal"],
         "did you mean 'month'"),
        (["compare", SEATTLE, "--target", "month", "--structure", "circle"], "circle"),
        (["compare", *ABOUT_MONTHS, "--metric", "f1"], "--metric must be log-loss or accuracy"),
        (["compare", *ABOUT_MONTHS, "--report", "no/such/folder/r.html"], "no folder"),
        (["compare", *ABOUT_MONTHS, "--features", "wnd"], "did you mean 'wind'"),
        (["compare", *ABOUT_MONTHS, *NUMBERS, "--folds", "1"], "--folds must be between 3"),
        (["predict", "no.structent", SEATTLE, "-o", "x.parquet"], "got no file no.structent"),
        (["predict", SEATTLE, SEATTLE, "-o", "x.parquet"], "it is not a zip file"),
        (["predict", SEATTLE, SEATTLE, "-o", "x.xlsx"], "must end in .parquet or .csv"),
        (["structure", "show", "circular:width=3"], "list them, as in --classes a,b,c, or name a"),
        (["train", *ABOUT_MONTHS, "--save", "m", "--weights", "most"], "--weights must be own"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_every_mistake_is_one_sentence(
    structent_command, arguments, sentence, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    code, out, err = structent_command(*arguments)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in out + err
    last = err.strip().split("\n")[-1]
    assert last.startswith("structent: ")
    assert list(tmp_path.iterdir()) == []


def test_labels_outside_the_structure_are_listed(structent_command, tmp_path):
    saved = tmp_path / "half.json"
    MONTHS.restrict(["jan", "feb", "mar"]).save(saved)
    code, _, err = structent_command(
        "compare", SEATTLE, "--target", "month", "--structure", saved, *NUMBERS
    )
    assert code == 2
    assert "'apr'" in err


def test_what_fails_while_running_has_another_exit_code(structent_command, monkeypatch):
    def fails(*_arguments, **_options):
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("structent.cli.compare.compare_rows", fails)
    code, _, err = structent_command("compare", *ABOUT_MONTHS, *NUMBERS)
    assert code == 1
    assert "failed while running: RuntimeError: the disk is on fire" in err


def test_breaking_off_leaves_no_half_written_file(tmp_path):
    written = ["--report", "r.html", "--save", "m"]
    process = subprocess.Popen(
        # With so many repeats it takes minutes on any machine; --quiet leaves out the note on that.
        [COMMAND, "compare", *ABOUT_MONTHS, *NUMBERS, *written, "--repeats", "200", "--quiet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "structent: interrupted; no file was left incomplete\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit(130)])
def test_an_interrupt_that_a_library_took_for_itself_breaks_off(
    structent_command, monkeypatch, ending
):
    def compare_rows(*_arguments, **_options):
        raise ending

    def break_off(_program):
        raise SystemExit("broken off")

    monkeypatch.setattr("structent.cli.failures.break_off", break_off)
    monkeypatch.setattr("structent.cli.compare.compare_rows", compare_rows)
    code, _, _ = structent_command("compare", *ABOUT_MONTHS, *NUMBERS)
    assert code == "broken off"


def test_it_tells_its_version():
    result = run("--version")
    assert result.stdout == f"structent {structent.__version__}\n"
    assert result.returncode == 0


def test_python_runs_the_package_as_the_command():
    command = [sys.executable, "-m", "structent", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"structent {structent.__version__}\n")


# What it lists


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_it_is_and_has_is_told_without_loading_what_commands_need(option):
    code = (
        "import sys\n"
        "from structent.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: print(ended.code, *sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, option], capture_output=True, text=True, check=True
    )
    exit_code, *modules = result.stderr.split()
    assert exit_code == "0"
    heavy = {"numpy", "scipy", "numba", "sklearn", "xgboost", "polars", "matplotlib", "jinja2"}
    assert heavy & set(modules) == set()


def test_without_a_command_it_shows_what_there_is(structent_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, err = structent_command()
    for name in COMMANDS:
        # The list has the sentence by which the command itself begins its help.
        sentence = loaded(name).help.split("\n")[0]
        (line,) = [line for line in (out + err).split("\n") if f"│ {name} " in line]
        assert sentence in line
    assert "reproduce" not in out + err  # the paper is not in the package: python -m paper


@pytest.mark.parametrize("name", ["compare", "structure"])
def test_every_command_explains_itself(structent_command, name):
    code, out, _ = structent_command(name, "--help")
    assert code == 0
    assert f"structent {name} [OPTIONS]" in out
    for shown in {"compare": ["--target", "--budget"], "structure": ["show", "convert"]}[name]:
        assert shown in out


def test_a_wrong_command_is_refused_in_a_sentence(structent_command):
    code, _, err = structent_command("dmeo")
    assert code == 2
    assert "No such command 'dmeo'" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_flags_without_a_type(structent_command, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = structent_command(name, "--help")
    assert code == 0
    for example in COMMANDS[name].examples:
        assert example in " ".join(out.split())
        assert example.startswith(f"structent {name}")
    assert "<bool>" not in out


@pytest.mark.parametrize("name", [(), ("structure", "show")])
def test_no_help_has_a_type_beside_a_flag(structent_command, name):
    code, out, _ = structent_command(*name, "--help")
    assert code == 0
    assert "--help" in out
    assert "<bool>" not in out
