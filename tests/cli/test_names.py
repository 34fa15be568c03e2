"""Names of the user's are shown as they are, whatever rich would make of them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from structent import hierarchy
from structent.cli.compare import shown
from structent.cli.output import Output
from structent.studies.comparison import KeptModel
from tests.studies.made import made_comparison

TARGET, GENUS, LEAF = "species [red]", "genus [/latin]", "leaf [cm] :leaves:"
ABOUT = ["plants.csv", "--target", TARGET, "--structure", f"hierarchy:columns={GENUS}"]


@pytest.fixture
def plants(tmp_path, monkeypatch):
    """A table whose names look like markup, in the folder where commands are run."""
    rng = np.random.default_rng(0)
    genus_of = {"oak [x]": "[/tree]", "ash": "[/tree]", "rose": "flower", "lily": "flower"}
    species = rng.choice(list(genus_of), size=60)
    genus = [genus_of[name] for name in species]
    pl.DataFrame({TARGET: species, GENUS: genus, LEAF: rng.normal(size=60)}).write_csv(
        tmp_path / "plants.csv"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("plants")
def test_columns_are_named_as_in_the_table(structent_command):
    code, out, err = structent_command("entropy", *ABOUT)
    assert code == 0, err
    assert f"Structured entropy of {TARGET}:" in out
    assert f"│ {LEAF} │" in out


@pytest.mark.usefixtures("plants")
def test_levels_and_blocks_are_named_as_in_the_table(structent_command):
    code, out, err = structent_command(
        "test", *ABOUT, "--permutations", 1, "--folds", 3, "--jobs", 1, "--quiet"
    )
    assert code == 0, err
    assert f"│ {GENUS}: [/tree], flower │" in out


@pytest.mark.usefixtures("plants")
def test_files_are_named_as_they_were_given(structent_command):
    train = ["train", *ABOUT, "--save", "m[x].structent", "--jobs", 1]
    code, out, err = structent_command(*train)
    assert code == 0, err
    assert out.startswith("m[x].structent: ")
    convert = ["structure", "convert", f"hierarchy:columns={GENUS}", "-o", "s[x].json"]
    code, out, err = structent_command(*convert, "--data", "plants.csv", "--target", TARGET)
    assert (code, out) == (0, "s[x].json: 4 classes\n"), err
    Path("plants.csv").rename("plants :leaves:.csv")
    check = ["structure", "check", "s[x].json", "plants :leaves:.csv", "--target", TARGET]
    code, out, err = structent_command(*check)
    assert (code, out[:42]) == (0, "4 classes; every label of plants :leaves:."), err


def test_a_comparison_names_its_levels(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    plants = {"oak": ("tree",), "ash": ("tree",), "rose": ("flower",), "lily": ("flower",)}
    found = made_comparison(hierarchy(plants, level_names=[GENUS]))
    output = Output(as_json=False, quiet=False)
    names = {"data": "plants.csv", "target": TARGET}
    kept = KeptModel(Path("m[x].structent"), "Trained on all rows.")
    output.result(shown(found, **names, kept=kept), {})
    out = capsys.readouterr().out
    assert f"4 classes of {TARGET!r}; boosted trees" in out
    assert f"│ {GENUS} │" in out
    assert "The model: m[x].structent. Trained on all rows." in out


def test_a_comparison_tells_its_folds_from_its_repeats(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    plants = {"oak": ("tree",), "ash": ("tree",), "rose": ("flower",), "lily": ("flower",)}
    output = Output(as_json=False, quiet=False)
    twice = made_comparison(hierarchy(plants), n_splits=10)  # 5 folds, and 5 others
    output.result(shown(twice, data="t.csv", target="plant"), {})
    out = capsys.readouterr().out
    assert "; 5 folds x 2 repeats\n" in out
    assert "of 10 splits" in out
    assert "10 folds" not in out
    once = made_comparison(hierarchy(plants), n_splits=5)
    output.result(shown(once, data="t.csv", target="plant"), {})
    assert "; 5 folds\n" in capsys.readouterr().out


def test_notes_and_progress_say_what_they_are_told(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # as on a terminal
    output = Output(as_json=False, quiet=False)
    output.notes(f"{LEAF} left out")
    with output.progress() as on_progress:
        on_progress(GENUS, 0, 1)
    err = capsys.readouterr().err
    assert f"{LEAF} left out" in err
    assert GENUS in err
