"""What a command writes never replaces what it reads."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

ABOUT = ["--target", "y", "--structure"]
# Each command with an output that is to be replaced by the name of an input.
COMMANDS = {
    "compare --save": ["compare", "data.csv", *ABOUT, "tree.json", "--save", "OUT"],
    "compare --report": ["compare", "data.csv", *ABOUT, "tree.json", "--report", "OUT"],
    "test --out": ["test", "data.csv", *ABOUT, "tree.json", "--out", "OUT"],
    "test --report": ["test", "data.csv", *ABOUT, "tree.json", "--report", "OUT"],
    "train --save": ["train", "data.csv", *ABOUT, "tree.json", "--save", "OUT"],
    "predict --output": ["predict", "model.csv", "data.csv", "-o", "OUT"],
    "structure --output": [
        *("structure", "convert", "tree.json", "--data", "data.csv", "--target", "y", "-o", "OUT")
    ],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A table, a structure, a graph and a model, in the folder where commands are run."""
    monkeypatch.chdir(tmp_path)
    labels = np.resize(["oak", "elm", "rose", "lily"], 60)
    sizes = np.random.default_rng(0).normal(size=60)
    pl.DataFrame({"y": labels, "size": sizes}).write_csv("data.csv")
    Path("tree.json").write_text('{"tree": ["oak", "elm"], "flower": ["rose", "lily"]}')
    Path("edges.csv").write_text("from,to\noak,elm\nelm,rose\nrose,lily\n")
    Path("model.csv").write_text("a model, whatever it is called")
    return tmp_path


def refused(structent_command, command, out):
    before = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    code, stdout, err = structent_command(*(out if word == "OUT" else word for word in command))
    assert (code, stdout) == (2, ""), err
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    return err.removeprefix("structent: ").strip()


def linked(folder, name, how):
    """Return another name of a file."""
    if how == "relative":
        (folder / "below").mkdir()
        return f"below/../{name}"
    if how == "absolute":
        return str(folder / name)
    other = f"other{Path(name).suffix}"
    Path(other).symlink_to(name) if how == "symlink" else Path(other).hardlink_to(name)
    return other


@pytest.mark.parametrize("how", ["relative", "absolute", "symlink", "hard link"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_its_table(structent_command, folder, name, how):
    other = linked(folder, "data.csv", how)
    option = name.split()[1]
    assert refused(structent_command, COMMANDS[name], other) == (
        f"{option} {other} would replace data.csv, which is read; name another file to write"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_replaces_its_structure_or_model(structent_command, name):
    read = "model.csv" if "predict" in name else "tree.json"
    found = refused(structent_command, COMMANDS[name], read)
    assert f"would replace {read}, which is read" in found


def test_a_graph_is_a_file_that_is_read(structent_command):
    command = ["train", "data.csv", *ABOUT, "graph:edges.csv,blocks=2", "--save", "OUT"]
    assert "replace edges.csv, which" in refused(structent_command, command, "edges.csv")


def test_the_names_of_a_taxonomy_are_a_file_that_is_read(structent_command):
    for name in ("nodes.dmp", "names.dmp"):
        Path(name).write_text("1 | 1 | a line of a taxonomy\n")
    command = ["train", "data.csv", *ABOUT, "nodes.dmp", "--save", "OUT"]
    assert "replace names.dmp, which" in refused(structent_command, command, "names.dmp")


@pytest.mark.parametrize("how", ["relative", "absolute"])
def test_two_outputs_are_two_files(structent_command, folder, how):
    report = linked(folder, "both", how)
    command = [*COMMANDS["compare --save"], "--report", report]
    found = refused(structent_command, command, "both")
    assert found == (
        f"--report {report} would replace the file that --save writes; name another file to write"
    )


def test_a_file_that_is_not_read_may_be_replaced(structent_command):
    code, _, err = structent_command("structure", "convert", "tree.json", "-o", "data.csv")
    assert code == 0, err
    assert Path("data.csv").read_text().startswith("class,level 1\n")
