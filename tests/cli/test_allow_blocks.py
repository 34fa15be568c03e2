"""Commands on a table whose label column holds names of blocks."""

import json

import numpy as np
import polars as pl
import pytest

from structent.estimators.boosting import StructuredBoostingClassifier

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
