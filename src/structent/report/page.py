"""The page: a template filled with tables and figures."""

from __future__ import annotations

import os
import shlex
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from structent._files import save_bytes
from structent.plots import drawing_of
from structent.report.figures import (
    confusion_figures,
    differences_figure,
    learning_curve_figure,
    null_figure,
    reliability_figures,
    structure_figure,
)
from structent.report.tables import (
    facts,
    facts_of_test,
    folds_table,
    gains_table,
    levels_table,
    scores_table,
    severity_table,
    weights_table,
)
from structent.studies.comparison import Comparison
from structent.studies.significance import StructureTest
from structent.studies.test import PartitionGain


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    model_file: str | os.PathLike[str] | None = None,
) -> None:
    """Write what a comparison found as one HTML file, all or not at all.

    Parameters
    ----------
    comparison
        What was found.
    path
        The file to write.
    model_file
        Where the better model was saved, if it was: the page then says how to use it.
    """
    save_bytes(path, report_html(comparison, model_file=model_file).encode())


def report_html(comparison: Comparison, *, model_file: str | os.PathLike[str] | None = None) -> str:
    """Return the page that :func:`write_report` writes; equal comparisons give equal pages."""
    return filled(
        "report.html.j2",
        comparison=comparison,
        found=comparison.verdict,
        task=comparison.task,
        plan=comparison.plan,
        facts=facts(comparison),
        structure_summary=drawing_of(comparison.structure).summary,
        model=None if model_file is None else _usage(comparison, model_file),
        **_tables(comparison),
        **_figures(comparison),
    )


def _tables(comparison: Comparison) -> dict[str, Any]:
    return {
        "levels": levels_table(comparison),
        "scores": scores_table(comparison),
        "severity": severity_table(comparison),
        "weights": weights_table(comparison),
        "folds": folds_table(comparison),
    }


def _figures(comparison: Comparison) -> dict[str, Any]:
    return {
        "structure_figure": structure_figure(comparison),
        "differences_figure": differences_figure(comparison),
        "learning_curve_figure": learning_curve_figure(comparison),
        "confusion_figures": confusion_figures(comparison),
        "reliability_figures": reliability_figures(comparison),
    }


def _usage(comparison: Comparison, model_file: str | os.PathLike[str]) -> dict[str, str]:
    """Return how to use a saved model, in Python and on the command line."""
    name = os.fspath(model_file)
    data = comparison.task.data
    python = (
        "from structent import StructuredBoostingClassifier\n\n"
        f"model = StructuredBoostingClassifier.load({name!r})\n"
        "proba = model.predict_proba(table[list(model.feature_names_in_)])  # table: new rows\n"
        "model.classes_  # what the columns of proba stand for"
    )
    shell = f"structent predict {shlex.quote(name)} {shlex.quote(data)} -o predictions.parquet"
    return {"name": Path(name).name, "python": python, "shell": shell}


def write_structure_test(
    found: StructureTest,
    path: str | os.PathLike[str],
    *,
    data: str,
    target: str,
    n_rows: int,
    gains: tuple[PartitionGain, ...] = (),
    notes: tuple[str, ...] = (),
) -> None:
    """Write what a test found as one HTML file, all or not at all.

    Parameters
    ----------
    found
        What was found.
    path
        The file to write.
    data, target, n_rows
        The name of the table, its label column, and how many rows there were.
    gains
        What each partition adds, if that was asked.
    notes
        What was done to the table, one sentence each.
    """
    html = structure_test_html(
        found, data=data, target=target, n_rows=n_rows, gains=gains, notes=notes
    )
    save_bytes(path, html.encode())


def structure_test_html(
    found: StructureTest,
    *,
    data: str,
    target: str,
    n_rows: int,
    gains: tuple[PartitionGain, ...] = (),
    notes: tuple[str, ...] = (),
) -> str:
    """Return the page that :func:`write_structure_test` writes; equal tests give equal pages."""
    return filled(
        "significance.html.j2",
        found=found,
        data=data,
        target=target,
        notes=(*notes, *found.notes),
        facts=facts_of_test(found, data, target, n_rows),
        null_figure=null_figure(found),
        differences_figure=differences_figure(found),
        gains=gains_table(gains),
        structure_summary=drawing_of(found.structure).summary,
        structure_figure=structure_figure(found),
        levels=levels_table(found),
    )


_TEMPLATES = "templates"


def filled(template: str, **values: Any) -> str:
    """Return a page: a template of ours with these values; text is escaped."""
    environment = Environment(
        loader=PackageLoader("structent.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _own_text("sort.js")
    return environment.get_template(template).render(
        style=Markup(_own_text("style.css")),  # noqa: S704  our own file
        script=Markup(script),  # noqa: S704  our own file
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        **values,
    )


def _own_text(name: str) -> str:
    file = resources.files("structent.report") / _TEMPLATES / name
    return file.read_text(encoding="utf-8")
