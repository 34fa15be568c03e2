"""``train``, ``predict`` and ``evaluate``: both kinds of models, answers that can be trusted."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from structent import StructuredBoostingClassifier, StructuredLogisticRegression
from structent.cli import main
from tests.estimators.problems import planted_problem

ABOUT = ["--target", "species", "--structure", "hierarchy:columns=genus", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of plants to learn from, one to answer, and models with and without calibration."""
    folder = tmp_path_factory.mktemp("answers")
    structure, features, labels = planted_problem(900)
    genus = structure.level("group").partitions[0].coarsen(labels)
    columns = {f"size {i}": features[:, i] for i in range(3)}
    table = pl.DataFrame({"species": labels, "genus": genus, **columns})
    table[:400].write_csv(folder / "plants.csv")
    table[400:].write_csv(folder / "new.csv")
    for name, options in (("calibrated", ["--calibrate", "0.4"]), ("plain", [])):
        train = ["train", folder / "plants.csv", *ABOUT, "--quiet", "--save", folder / name]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["structent", *map(str, [*train, *options])])
            with pytest.raises(SystemExit):
                main()
    return folder


def test_models_are_trained_and_used_without_another_booster(folder, tmp_path):
    code = (
        "import sys\n"
        "sys.modules.update(xgboost=None, lightgbm=None)\n"
        "from structent.cli import main\n"
        "main()"
    )
    model = tmp_path / "model.structent"
    for command in (
        ["train", folder / "plants.csv", *ABOUT, "--save", model],
        ["predict", model, folder / "new.csv", "-o", tmp_path / "new.csv"],
        ["compare", folder / "plants.csv", *ABOUT, "--folds", "3", "--repeats", "1"],
    ):
        result = subprocess.run(
            [sys.executable, "-c", code, *map(str, command)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
    assert StructuredBoostingClassifier.load(model).engine == "structent"


def test_the_rows_held_back_are_stated(structent_command, folder, tmp_path):
    train = [
        "train",
        folder / "plants.csv",
        *ABOUT,
        "--calibrate",
        "0.25",
        "--save",
        tmp_path / "m",
    ]
    code, out, err = structent_command(*train)
    assert code == 0, err
    # A terminal breaks lines where it likes.
    assert "answers calibrated on 100 of 400 rows, held out for that" in " ".join(out.split())
    code, out, _ = structent_command(*train, "--json")
    assert json.loads(out)["calibration_rows"] == 100
    assert len(StructuredBoostingClassifier.load(tmp_path / "m").block_scores_) == 100


def test_without_the_option_no_row_is_held_back(structent_command, folder, tmp_path):
    save = tmp_path / "m"
    code, out, _ = structent_command(
        "train", folder / "plants.csv", *ABOUT, "--save", save, "--json"
    )
    assert (code, json.loads(out)["calibration_rows"]) == (0, 0)
    assert StructuredBoostingClassifier.load(save).block_scores_ is None


@pytest.mark.parametrize("name", ["calibrated", "plain"])
def test_answers_are_those_of_the_model(structent_command, folder, tmp_path, name):
    out = tmp_path / "answers.csv"
    code, _, err = structent_command(
        "predict", folder / name, folder / "new.csv", "-o", out, "--confidence", "0.9"
    )
    assert code == 0, err
    answers = pl.read_csv(out)
    model = StructuredBoostingClassifier.load(folder / name)
    features = pl.read_csv(folder / "new.csv").select(model.feature_names_in_.tolist())
    wanted = model.predict_blocks(features, confidence=0.9)
    assert answers["answer"].to_list() == list(wanted.names)
    np.testing.assert_allclose(answers["answer_probability"], wanted.probability)


def test_what_answers_can_be_trusted_for_is_said(structent_command, folder, tmp_path):
    def note(name, confidence):
        out = tmp_path / "answers.csv"
        _, _, err = structent_command(
            "predict", folder / name, folder / "new.csv", "-o", out, "--confidence", confidence
        )
        return " ".join(err.split())

    assert "at least 90 % of new rows, if these are like the 160" in note("calibrated", "0.9")
    assert "160 calibration rows are too few for a confidence of 0.999" in note(
        "calibrated", "0.999"
    )
    assert "train --calibrate 0.2 makes a model" in note("plain", "0.9")


def test_coverage_size_and_depth_are_reported(structent_command, folder):
    evaluate = ["evaluate", folder / "calibrated", folder / "new.csv", "--confidence", "0.9"]
    code, out, err = structent_command(*evaluate, "--json")
    assert code == 0, err
    found = json.loads(out)["answers"]
    model = StructuredBoostingClassifier.load(folder / "calibrated")
    new = pl.read_csv(folder / "new.csv")
    sets = model.predict_blocks(new.select(model.feature_names_in_.tolist()), confidence=0.9).sets
    hits = [label in members for label, members in zip(new["species"], sets, strict=True)]
    assert (found["confidence"], found["n"]) == (0.9, 500)
    assert found["coverage"] == pytest.approx(np.mean(hits))
    assert found["average_size"] == pytest.approx(np.mean([len(members) for members in sets]))
    of_size = {1: 2, 4: 1, 12: 0}  # a species, a genus of four, all
    assert found["average_depth"] == pytest.approx(np.mean([of_size[len(m)] for m in sets]))
    _, out, _ = structent_command(*evaluate)
    assert "log loss" in out
    for shown in ("answers at confidence 0.9", "coverage", "average size", "average depth"):
        assert shown in out


def test_the_scores_of_levels_stay_as_they_are_without_the_option(structent_command, folder):
    code, out, _ = structent_command("evaluate", folder / "plain", folder / "new.csv", "--json")
    assert code == 0
    assert "answers" not in json.loads(out)


# What users do wrong


def refused(structent_command, *arguments):
    code, _, err = structent_command(*arguments)
    assert code == 2
    assert "Traceback" not in err
    return " ".join(err.split())


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        ("20", "--calibrate must be between 0 and 1, got 20"),
        ("0", "leave rows to train on and to calibrate on, got 0, which is 0 of 400 rows"),
        ("1", "got 1, which is 400 of 400 rows"),
    ],
)
def test_a_share_that_leaves_nothing_is_refused(
    structent_command, folder, tmp_path, share, sentence
):
    train = ["train", folder / "plants.csv", *ABOUT, "--save", tmp_path / "m"]
    assert sentence in refused(structent_command, *train, "--calibrate", share)
    assert list(tmp_path.iterdir()) == []


def test_a_structure_that_changes_cannot_be_calibrated(structent_command, folder, tmp_path):
    species = sorted(set(pl.read_csv(folder / "plants.csv")["species"]))
    edges = pl.DataFrame({"a": species[:-1], "b": species[1:]})
    edges.write_csv(tmp_path / "edges.csv")
    train = [
        "train", folder / "plants.csv", "--target", "species", "--features", "size 0,size 1",
        "--structure", f"graph:{tmp_path / 'edges.csv'},blocks=3", "--save", tmp_path / "m",
    ]  # fmt: skip
    found = refused(structent_command, *train, "--calibrate", "0.2")
    assert "--calibrate needs a structure that is fixed" in found
    code, _, err = structent_command(*train, "--quiet", "--jobs", "1")
    assert code == 0, err
    for command in (["predict", "-o", tmp_path / "a.csv"], ["evaluate"]):
        found = refused(
            structent_command, command[0], tmp_path / "m", folder / "new.csv", *command[1:],
            "--confidence", "0.9",
        )  # fmt: skip
        assert "--confidence needs a model whose structure is fixed" in found
    code, out, err = structent_command("evaluate", tmp_path / "m", folder / "plants.csv", "--json")
    assert code == 0, err
    scores = json.loads(out)
    assert [row["level"] for row in scores["rows"]] == ["blocks", "class"]
    assert 1 <= scores["mistake_severity"] < len(species)  # edges of a path


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_confidence_must_be_a_probability(structent_command, folder, tmp_path, command):
    output = ["-o", tmp_path / "a.csv"] if command == "predict" else []
    found = refused(
        structent_command, command, folder / "plain", folder / "new.csv", *output,
        "--confidence", "90",
    )  # fmt: skip
    assert "--confidence must be between 0 and 1, got 90" in found
    assert list(tmp_path.iterdir()) == []


def test_rows_labelled_by_blocks_cannot_be_calibrated_on(structent_command, tmp_path):
    plants = {"oak": "tree", "ash": "tree", "rose": "flower"}
    pl.DataFrame({"class": list(plants), "kind": list(plants.values())}).write_csv(
        tmp_path / "kinds.csv"
    )
    labels = [*plants, "tree"] * 10
    sizes = [i / 7 for i in range(40)]
    pl.DataFrame({"plant": labels, "size": sizes}).write_csv(tmp_path / "plants.csv")
    found = refused(
        structent_command, "train", tmp_path / "plants.csv", "--target", "plant", "--structure",
        tmp_path / "kinds.csv", "--allow-blocks", "--calibrate", "0.5", "--save", tmp_path / "m",
    )  # fmt: skip
    assert "--calibrate needs the class of every row, not a block: 'tree' is not a class" in found


PARENTS = {"oak": "tree", "elm": "tree", "rose": "flower", "daisy": "flower",
           "tree": "plant", "flower": "plant"}  # fmt: skip
NAMES = ["oak", "elm", "rose", "daisy"]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=80)
    labels = [PARENTS[NAMES[c]] if i % 2 else NAMES[c] for i, c in enumerate(codes)]
    columns = {f"x{j}": (codes == j) + rng.normal(size=80) for j in range(3)}
    pl.DataFrame({**columns, "label": labels}).write_csv(tmp_path / "table.csv")
    (tmp_path / "plants.json").write_text(json.dumps(PARENTS))
    return tmp_path


def test_a_model_is_trained_and_evaluated_on_names_of_blocks(table, structent_command):
    data, model = table / "table.csv", table / "model"
    asked = ["--target", "label", "--structure", table / "plants.json", "--allow-blocks"]
    code, _, errors = structent_command("train", data, *asked, "--save", model, "--jobs", 1)
    assert code == 0, errors
    assert StructuredBoostingClassifier.load(model).classes_.tolist() == sorted(NAMES)
    code, out, errors = structent_command("evaluate", model, data, "--allow-blocks", "--json")
    assert code == 0, errors
    assert [row["n_rows"] for row in json.loads(out)["rows"]][-2:] == [80, 40]


def test_names_of_blocks_need_a_structure_that_names_them(table, structent_command):
    code, _, errors = structent_command(
        "train", table / "table.csv", "--target", "label", "--structure", "ordinal",
        "--allow-blocks", "--save", table / "model",
    )  # fmt: skip
    assert code != 0
    assert "the structure must be a file" in " ".join(errors.split())


# Linear models


@pytest.fixture
def any_table(tmp_path):
    """A table with text, missing values and very different scales, and one to answer."""
    rng = np.random.default_rng(0)
    place = rng.integers(6, size=500)
    columns = {
        "species": [f"species {each}" for each in place],
        "genus": [f"genus {each // 2}" for each in place],
        "size": np.where(rng.random(500) < 0.1, np.nan, 1e6 * (place + rng.normal(size=500))),
        "ratio": 1e-5 * rng.normal(size=500),
        "colour": np.array(["red", "blue", None])[(place + rng.integers(2, size=500)) % 3],
    }
    table = pl.DataFrame(columns).with_columns(pl.col("size").fill_nan(None))
    table[:400].write_csv(tmp_path / "plants.csv")
    new = table[400:].with_columns(colour=pl.lit("mauve")).select(reversed(table.columns))
    new.write_csv(tmp_path / "new.csv")
    return tmp_path


def test_a_linear_model_is_trained_on_any_table_and_used(structent_command, any_table):
    model, out = any_table / "model.structent", any_table / "answers.csv"
    train = ["train", any_table / "plants.csv", *ABOUT, "--model", "linear", "--save", model]
    code, said, err = structent_command(*train, "--calibrate", "0.3")
    assert code == 0, err
    said = " ".join(said.split())
    assert "a linear model of 5 columns and 6 classes, sharing nothing, C = 32" in said
    assert "; answers calibrated on 120 of 400" in said
    use = [model, any_table / "new.csv", "--confidence", "0.8"]
    code, _, err = structent_command("predict", *use, "-o", out, "--level", "genus")
    assert code == 0, err
    loaded = StructuredLogisticRegression.load(model)
    features = pl.read_csv(any_table / "new.csv").select(loaded.feature_names_in_.tolist())
    answers, proba = pl.read_csv(out), loaded.predict_proba(features)
    np.testing.assert_array_equal(
        answers.select(f"probability of {each}" for each in loaded.classes_).to_numpy(), proba
    )
    assert answers["genus"].to_list() == loaded.predict_level(features, "genus").tolist()
    wanted = loaded.predict_blocks(features, confidence=0.8)
    assert answers["answer"].to_list() == list(wanted.names)
    code, said, err = structent_command("evaluate", *use, "--json")
    assert code == 0, err
    assert json.loads(said)["answers"]["n"] == 100
    code, said, err = structent_command("structure", "show", model)
    assert (code, said.split("\n")[0].startswith("6 classes: species 0")) == (0, True), err


def test_the_weights_of_a_linear_model_are_those_that_were_asked_for(structent_command, any_table):
    train = ["train", any_table / "plants.csv", *ABOUT, "--model", "linear", "--json"]
    for weights, expected in (("own", [0.5, 0.5]), ("0.2", [0.8, 0.2]), ("1", [0.0, 1.0])):
        code, out, err = structent_command(
            *train, "--weights", weights, "--save", any_table / "model"
        )
        assert code == 0, err
        found = json.loads(out)
        assert found["weights"] == pytest.approx(expected)
        assert (found["columns"], found["iterations"] > 0) == (5, True)


@pytest.mark.parametrize("model", ["boosting", "linear"])
def test_related_classes_share_as_much_as_was_asked_for(structent_command, any_table, model):
    train = ["train", any_table / "plants.csv", *ABOUT, "--model", model, "--json"]
    for sharing in (0, 0.4):
        code, out, err = structent_command(
            *train, "--sharing", sharing, "--save", any_table / "model"
        )
        assert code == 0, err
        assert json.loads(out)["sharing"] == pytest.approx(sharing)
        if model == "linear":
            fitted = StructuredLogisticRegression.load(any_table / "model")
            assert fitted.prior_ == pytest.approx([sharing, 1 - sharing])
        else:
            fitted = StructuredBoostingClassifier.load(any_table / "model")
            assert fitted.leaf_smoothing_ == sharing


@pytest.mark.parametrize("sharing", ["1", "-0.1", "most", "nan"])
def test_a_share_that_cannot_be_is_refused(structent_command, any_table, sharing):
    train = ["train", any_table / "plants.csv", *ABOUT, "--save", any_table / "m"]
    found = refused(structent_command, *train, "--sharing", sharing)
    assert f"--sharing must be auto or a number from 0 to below 1, got '{sharing}'" in found


def test_a_kind_of_model_that_there_is_not_is_refused(structent_command, any_table):
    train = ["train", any_table / "plants.csv", *ABOUT, "--save", any_table / "m"]
    found = refused(structent_command, *train, "--model", "network")
    assert "--model must be boosting or linear, got 'network'" in found


def test_a_linear_model_needs_a_structure_that_is_fixed(structent_command, any_table):
    species = [f"species {place}" for place in range(6)]
    pl.DataFrame({"a": species[:-1], "b": species[1:]}).write_csv(any_table / "edges.csv")
    found = refused(
        structent_command, "train", any_table / "plants.csv", "--target", "species",
        "--structure", f"graph:{any_table / 'edges.csv'},blocks=3", "--drop", "genus",
        "--model", "linear", "--save", any_table / "m",
    )  # fmt: skip
    assert "--model linear needs a structure that is fixed" in found
    assert "use --model boosting" in found


def test_a_linear_model_that_python_saved_does_not_say_which_columns_it_wants(
    structent_command, any_table
):
    table = pl.read_csv(any_table / "plants.csv")
    model = StructuredLogisticRegression(encode=True)
    model.fit(table.select("size", "ratio", "colour"), table["species"].to_numpy())
    model.save(any_table / "model.structent")
    found = refused(
        structent_command, "evaluate", any_table / "model.structent", any_table / "new.csv"
    )
    assert "the model file must list its columns, got model.structent" in found


# Model files that were changed


RECIPE = {
    "target": "species",
    "columns": [{"name": f"size {i}", "kind": "number", "features": [f"size {i}"]} for i in (0, 1)],
}


@pytest.mark.parametrize(
    "recipe",
    [
        "",
        "[" * 10_000,
        "[]",
        "{}",
        json.dumps({**RECIPE, "target": ["species"]}),
        json.dumps({**RECIPE, "columns": "size 0"}),
        json.dumps({**RECIPE, "columns": [{**RECIPE["columns"][0], "kind": "sound"}] * 2}),
        json.dumps({**RECIPE, "columns": [{**RECIPE["columns"][0], "kind": {}}] * 2}),
        json.dumps({**RECIPE, "columns": [{**RECIPE["columns"][0], "features": [1, 2]}]}),
        json.dumps({**RECIPE, "columns": RECIPE["columns"][:1]}),
        json.dumps({**RECIPE, "columns": RECIPE["columns"][::-1]}),
    ],
)
def test_a_model_that_names_no_columns_is_refused(structent_command, tmp_path, recipe):
    rows = pl.DataFrame({"size 0": np.arange(20) % 7, "size 1": np.arange(20) % 5})
    model = StructuredBoostingClassifier(n_estimators=1, n_jobs=1, early_stopping_rounds=None)
    model.fit(rows, np.arange(20) % 2)
    path, table = tmp_path / "model.structent", tmp_path / "table.csv"
    rows.write_csv(table)
    for text, expected in ((json.dumps(RECIPE), 0), (recipe, 2)):
        model.save(path, attachments={"table.json": text})
        code, _, error = structent_command("predict", path, table, "-o", tmp_path / "new.csv")
        assert code == expected, error
    assert "must list the columns that it needs" in " ".join(error.split())
