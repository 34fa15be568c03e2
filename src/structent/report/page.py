"""The pages: what a comparison or a test found, as one file of tables and figures each."""

from __future__ import annotations

import os
import platform
import shlex
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from structent._files import save_bytes
from structent._typing import FloatArray
from structent.plots import drawing_of
from structent.report.figures import (
    confusion_figures,
    differences_figure,
    learning_curve_figure,
    measured,
    null_figure,
    reliability_figures,
    structure_figure,
)
from structent.structure import RandomPartition
from structent.studies.comparison import ARMS, METRICS, Comparison, KeptModel
from structent.studies.models import shown_model
from structent.studies.plan import NONE
from structent.studies.significance import PartitionGain, StructureTest
from structent.studies.wording import chosen_sentence, next_steps, shown_candidate

_PACKAGES = ("structent", "numpy", "scipy", "numba", "scikit-learn", "xgboost", "lightgbm")
_TEMPLATES = "templates"


def comparison_page(
    comparison: Comparison,
    *,
    data: str,
    target: str,
    group: str | None = None,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
    kept: KeptModel | None = None,
) -> str:
    """Return the page of a comparison, as HTML; equal comparisons give equal pages.

    Parameters
    ----------
    comparison
        What was found.
    data, target, group, notes, cautions, kept
        As in :meth:`Comparison.to_html <structent.studies.Comparison.to_html>`.
    """
    return _filled(
        "report.html.j2",
        found=comparison.verdict,
        data=data,
        target=target,
        notes=(*notes, *comparison.task.notes),
        cautions=(*comparison.reduced, *cautions),
        next_steps=next_steps(comparison),
        task=comparison.task,
        plan=comparison.plan,
        facts=facts(comparison, data, target, group),
        structure_summary=drawing_of(comparison.structure).summary,
        structure_figure=structure_figure(comparison),
        levels=levels_table(comparison),
        scores=scores_table(comparison),
        severity=severity_table(comparison),
        chosen=chosen_table(comparison),
        chosen_sentence=chosen_sentence(comparison),
        references=references_table(comparison),
        differences_figure=differences_figure(comparison, comparison.metric),
        splits=splits_table(comparison),
        learning_curve_figure=learning_curve_figure(comparison),
        confusion_figures=confusion_figures(comparison),
        reliability_figures=reliability_figures(comparison),
        model=None if kept is None else _usage(kept, comparison.model, data),
    )


def structure_test_page(
    found: StructureTest,
    *,
    data: str,
    target: str,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
    gains: Sequence[PartitionGain] = (),
) -> str:
    """Return the page of a test, as HTML; equal tests give equal pages.

    Parameters
    ----------
    found
        What was found.
    data, target, notes, cautions, gains
        As in :meth:`StructureTest.to_html <structent.studies.StructureTest.to_html>`.
    """
    return _filled(
        "significance.html.j2",
        found=found,
        data=data,
        target=target,
        notes=(*notes, *found.notes),
        cautions=cautions,
        next_steps=(),
        facts=facts_of_test(found, data, target),
        null_figure=null_figure(found),
        differences_figure=differences_figure(found, "log loss"),
        gains=gains_table(gains),
        structure_summary=drawing_of(found.structure).summary,
        structure_figure=structure_figure(found),
        levels=levels_table(found),
    )


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Write a page, all or not at all."""
    save_bytes(path, page.encode())


_ESTIMATORS = {
    "boosting": "StructuredBoostingClassifier",
    "linear": "StructuredLogisticRegression",
}


def _usage(kept: KeptModel, model: str, data: str) -> dict[str, str]:
    """Return how to use a saved model, in Python and on the command line."""
    name, estimator = os.fspath(kept.path), _ESTIMATORS[model]
    python = (
        f"from structent import {estimator}\n\n"
        f"model = {estimator}.load({name!r})\n"
        "proba = model.predict_proba(table[list(model.feature_names_in_)])  # table: new rows\n"
        "model.classes_  # what the columns of proba stand for"
    )
    shell = f"structent predict {shlex.quote(name)} {shlex.quote(data)} -o predictions.parquet"
    sentence = f"The model is in {Path(name).name}. {kept.sentence}"
    return {"sentence": sentence, "python": python, "shell": shell}


def _filled(template: str, **values: Any) -> str:
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
