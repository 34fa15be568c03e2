"""The page: a template filled with tables and figures."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from structent.comparison.result import Comparison
from structent.plots import drawing_of
from structent.report.figures import (
    confusion_figures,
    differences_figure,
    learning_curve_figure,
    reliability_figures,
    structure_figure,
)
from structent.report.tables import (
    facts,
    folds_table,
    levels_table,
    scores_table,
    severity_table,
    weights_table,
)
from structent.report.template import filled
from structent.structure.files import save_bytes


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
