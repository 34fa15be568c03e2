"""What the command line tells the report."""

import shlex
from pathlib import Path

import polars as pl
import pytest

from structent import LabelGraph, SpanningTreePartitions
from structent.structure import catalog
from tests.report.test_page import Page
from tests.studies.made import made_comparison


@pytest.fixture
def plants(tmp_path, monkeypatch):
    """A table with an awkward name, and a comparison that is made up at once."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {"y <b>": ["a", "b", "b", "a", "b", "a"] * 10, "x": [0.5, 1.5, 0.25, 2.5] * 15}
    ).write_csv("my plants.csv")
    found = made_comparison(catalog.months())
    monkeypatch.setattr("structent.cli.compare.compare_rows", lambda *_, **__: found)


ASKED = ["my plants.csv", "--target", "y <b>", "--structure", "trivial", "--report", "r.html"]


@pytest.mark.usefixtures("plants")
def test_the_report_has_the_command_as_a_shell_takes_it(structent_command):
    code, _, err = structent_command("compare", *ASKED, "--jobs", "1")
    assert code == 0, err
    text = Page(Path("r.html").read_text(encoding="utf-8")).text
    command = shlex.join(["structent", "compare", *ASKED, "--jobs", "1"])
    assert f"{command} --save model.structent" in text
    assert "the structure trivial help to predict y <b> in my plants.csv?" in text


@pytest.mark.usefixtures("plants")
def test_the_terminal_names_the_unit_of_severity_on_a_graph(structent_command, monkeypatch):
    path = SpanningTreePartitions(LabelGraph([("a", "b"), ("b", "c")]), 2, 0.5)
    found = made_comparison(path)
    monkeypatch.setattr("structent.cli.compare.compare_rows", lambda *_, **__: found)
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = structent_command("compare", *ASKED)
    assert code == 0, err
    assert "Mistake severity (edges of the graph): " in out
