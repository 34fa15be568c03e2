"""The pages: what a comparison or a test found, as one file of tables and figures each."""

from __future__ import annotations

import json
import math
import os
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from structent._files import save_bytes
from structent.plots import drawing_of
from structent.report.figures import (
    confusion_figures,
    differences_figure,
    gain_figure,
    learning_curve_figure,
    null_figure,
    reliability_figures,
    structure_figure,
)
from structent.report.tables import (
    chosen_table,
    confusions_table,
    facts,
    facts_of_test,
    gains_table,
    levels_table,
    references_table,
    scores_table,
    severity_table,
    splits_table,
    versions,
    within_blocks_table,
)
from structent.studies.comparison import Comparison, KeptModel
from structent.studies.significance import PartitionGain, StructureTest
from structent.studies.wording import chosen_sentence, next_steps

_TEMPLATES = "templates"


def comparison_page(  # noqa: PLR0913  a report names all that it is about
    comparison: Comparison,
    *,
    data: str,
    target: str,
    structure_name: str | None = None,
    group: str | None = None,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
    kept: KeptModel | None = None,
    command: str | None = None,
) -> str:
    """Return the page of a comparison, as HTML; equal comparisons give equal pages.

    Parameters
    ----------
    comparison
        What was found.
    data, target, structure_name, group, notes, cautions, kept, command
        As in :meth:`Comparison.to_html <structent.studies.Comparison.to_html>`.
    """
    about = {"data": data, "target": target, "structure": structure_name, "command": command}
    return _filled(
        "report.html.j2",
        found=comparison.verdict,
        data=data,
        target=target,
        structure_name=structure_name,
        command=command,
        notes=(*notes, *comparison.task.notes),
        reduced=comparison.reduced,
        cautions=cautions,
        next_steps=next_steps(
            comparison, repeats="n_repeats={}" if command is None else "--repeats {}"
        ),
        steps=_steps(comparison, kept, command),
        n_splits=comparison.n_splits,
        metric=comparison.metric,
        gain_figure=gain_figure(comparison),
        task=comparison.task,
        facts=facts(comparison, data, target, group),
        structure_summary=drawing_of(comparison.structure).summary,
        structure_figure=structure_figure(comparison),
        levels=levels_table(comparison),
        scores=scores_table(comparison),
        severity=severity_table(comparison),
        confusions=confusions_table(comparison),
        within_blocks=within_blocks_table(comparison),
        chosen=chosen_table(comparison),
        chosen_sentence=chosen_sentence(comparison),
        references=references_table(comparison),
        differences_figure=differences_figure(comparison, comparison.metric),
        splits=splits_table(comparison),
        learning_curve_figure=learning_curve_figure(comparison),
        confusion_figures=confusion_figures(comparison),
        reliability_figures=reliability_figures(comparison),
        model=None if kept is None else _usage(kept, comparison.model, data),
        result=_as_json({**about, **_all_of(comparison, notes, cautions)}),
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
    result = {
        "data": data,
        "target": target,
        **found.to_dict(notes=notes, gains=gains),
        "cautions": list(cautions),
        "versions": versions(),
    }
    return _filled(
        "significance.html.j2",
        found=found,
        data=data,
        target=target,
        notes=(*notes, *found.notes),
        cautions=cautions,
        facts=facts_of_test(found, data, target),
        null_figure=null_figure(found),
        differences_figure=differences_figure(found, "log loss"),
        gains=gains_table(gains),
        structure_summary=drawing_of(found.structure).summary,
        structure_figure=structure_figure(found),
        levels=levels_table(found),
        result=_as_json(result),
    )


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Write a page, completely or not at all."""
    save_bytes(path, page.encode())


class Step(NamedTuple):
    """Something to do next, and the command or code that does it."""

    what: str
    code: str


_MODEL_FILE = "model.structent"
_ESTIMATORS = {
    "boosting": "StructuredBoostingClassifier",
    "linear": "StructuredLogisticRegression",
}


def _steps(comparison: Comparison, kept: KeptModel | None, command: str | None) -> list[Step]:
    """Return how to save the recommended model, to predict with it, and to run all of it again."""
    use = "with the structure" if comparison.verdict.finding == "use it" else "without structure"
    save = f"Save the recommended model ({use})"
    if command is None:
        return [
            Step(save, f"found.best_model().save({_MODEL_FILE!r})"),
            Step("Predict new rows", "found.best_model().predict_proba(new_rows)"),
            Step("Run it again", f"compare(X, y, structure, random_state={comparison.seed})"),
        ]
    name = _MODEL_FILE if kept is None else os.fspath(kept.path)
    predict = f"structent predict {shlex.quote(name)} new.csv -o predictions.csv"
    steps = [Step("Predict new rows", predict), Step("Run it again", command)]
    if kept is not None:
        return steps
    if command.split()[:2] == ["structent", "compare"]:
        return [Step(save, f"{command} --save {_MODEL_FILE}"), *steps]
    own = f"structent compare table.csv --target label --structure ordinal --save {_MODEL_FILE}"
    return [Step("Compare on your own table", own), *steps]


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


def _all_of(
    comparison: Comparison, notes: Sequence[str], cautions: Sequence[str]
) -> dict[str, Any]:
    """Return all that was found, with the numbers of every split."""
    return {
        **comparison.to_dict(notes=notes),
        "classes": comparison.task.classes,
        "features": comparison.task.features,
        "cautions": cautions,
        "per_split": {
            "against_none": comparison.against_none.per_split,
            "against_scrambled": comparison.against_scrambled.per_split,
            "chosen": [each._asdict() for each in comparison.chosen["structure"]],
            "scores": {arm: each.by_level for arm, each in comparison.scores.items()},
            "mistake_severity": {arm: each.severity for arm, each in comparison.scores.items()},
        },
        "versions": versions(),
    }


def _as_json(result: Mapping[str, Any]) -> Markup:
    """Return data as JSON that may stand inside of HTML: no text in it can end its element."""
    return htmlsafe_json_dumps(_plain(result), dumps=json.dumps, allow_nan=False, sort_keys=False)


def _plain(value: Any) -> Any:
    """Return data that JSON can hold: None for numbers that are not finite, text for labels."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _filled(template: str, **values: Any) -> str:
    """Return a page: a template of ours with these values; text is escaped."""
    environment = Environment(
        loader=PackageLoader("structent.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _own_text("page.js")
    return environment.get_template(template).render(
        style=Markup(_own_text("style.css")),  # noqa: S704  our own file
        script=Markup(script),  # noqa: S704  our own file
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        **values,
    )


def _own_text(name: str) -> str:
    file = resources.files("structent.report") / _TEMPLATES / name
    return file.read_text(encoding="utf-8")
