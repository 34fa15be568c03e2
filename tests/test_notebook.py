"""How values look in a notebook, and on one line: short, complete, and with every name escaped."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from structent import SpanningTreePartitions, circular, hierarchy, ordinal, trivial
from structent.decisions import answer_report, hedge
from structent.metrics import level_report
from structent.structure import catalog
from tests.studies.made import made_comparison
from tests.studies.made_tests import made_test

WILD = ["<b>oak</b>", 'elm "old"', "rose & co"]
GARDEN = hierarchy(
    {name: ("<tree>" if place < 2 else "flower",) for place, name in enumerate(WILD)}
)
PROBA = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])


@pytest.mark.requires("matplotlib")
@pytest.mark.parametrize(
    "structure",
    [
        GARDEN, circular(range(12), width=3), ordinal(["S", "M", "L"]), trivial(WILD),
        SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
    ],
)  # fmt: skip
def test_structures_are_drawn(structure):
    html = structure._repr_html_()
    assert html.startswith("<svg")
    root = ET.fromstring(html)  # noqa: S314  our own picture
    words = " ".join(text.strip() for text in root.itertext())
    assert str(structure.classes[0]).split()[0] in words


def test_without_matplotlib_they_are_text():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import structent as s;"
        "print(s.hierarchy({'<oak>': ('tree',), 'rose': ('flower',)})._repr_html_())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("<pre>")
    assert "&lt;oak&gt;" in said.stdout


def test_a_report_is_a_table_with_its_names_escaped():
    report = level_report(WILD, PROBA, GARDEN, classes=WILD)
    root = ET.fromstring(f"<div>{report._repr_html_()}</div>")  # noqa: S314
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert [row[0] for row in rows] == ["level", *(row.level for row in report.rows)]
    assert rows[-1][2] == f"{report.rows[-1].log_loss:.4f}"
    assert len(repr(report)) < 120


def test_answers_show_the_first_rows():
    answers = hedge(np.repeat(PROBA, 10, axis=0), GARDEN, 0.7, classes=WILD)
    root = ET.fromstring(f"<div>{answers._repr_html_()}</div>")  # noqa: S314
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert [row[0] for row in rows[1:]] == list(answers.names[:10])
    assert "10 of 30 rows" in " ".join(root.itertext())
    assert (
        repr(answers) == f"<HedgedPredictions of 30 rows, {answers.average_size:.2f} classes each>"
    )


def test_a_report_on_answers_is_a_table():
    answers = hedge(PROBA, GARDEN, 0.7, classes=WILD)
    report = answer_report(WILD, answers)
    root = ET.fromstring(f"<div>{report._repr_html_()}</div>")  # noqa: S314
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert [row[0] for row in rows[1:]] == [row.level for row in report.rows]
    assert repr(report) == f"<AnswerReport of 3 answers, coverage {report.coverage:.4f}>"


def test_a_comparison_begins_with_its_verdict():
    found = made_comparison(GARDEN)
    root = ET.fromstring(f"<div>{found._repr_html_()}</div>")  # noqa: S314
    assert root.find("p/b").text == found.verdict.sentence
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert len(rows) == 1 + 3 * len(found.levels)
    assert rows[1][2] == f"{found.mean('none', found.levels[0], 'log loss'):.4f}"
    assert found.verdict.sentence in repr(found)
    assert len(repr(found)) < 200


def test_a_test_begins_with_its_sentence():
    found = made_test(GARDEN)
    root = ET.fromstring(f"<div>{found._repr_html_()}</div>")  # noqa: S314
    assert root.find("p/b").text == found.sentence
    assert found.sentence in repr(found)


@pytest.mark.requires("matplotlib")
def test_plots_make_their_own_figure_where_they_are_given_none():
    from matplotlib import pyplot

    from structent import plots

    pyplot.switch_backend("agg")
    comparison = made_comparison(GARDEN, learning_curve=True)
    axes = [
        plots.draw_structure(GARDEN),
        plots.plot_similarity(GARDEN),
        plots.plot_confusion(WILD, PROBA, GARDEN, classes=WILD),
        plots.plot_reliability(WILD, PROBA, GARDEN, "class", classes=WILD),
        plots.plot_gain(comparison),
        plots.plot_differences(comparison),
        plots.plot_learning_curve(comparison.learning_curve),
        plots.plot_null_distribution(made_test(GARDEN)),
    ]
    assert len({id(ax.figure) for ax in axes}) == len(axes)
    for ax in axes:
        ax.figure.canvas.draw()
    pyplot.close("all")
