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
from structent.studies.comparison import ARMS, METRICS, Comparison
from structent.studies.significance import PartitionGain, StructureTest

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
    model_file: str | os.PathLike[str] | None = None,
) -> str:
    """Return the page of a comparison, as HTML; equal comparisons give equal pages.

    Parameters
    ----------
    comparison
        What was found.
    data, target, group, notes, cautions, model_file
        As in :meth:`Comparison.to_html <structent.studies.Comparison.to_html>`.
    """
    return _filled(
        "report.html.j2",
        found=comparison.verdict,
        data=data,
        target=target,
        notes=(*notes, *comparison.task.notes),
        cautions=cautions,
        task=comparison.task,
        plan=comparison.plan,
        facts=facts(comparison, data, target, group),
        structure_summary=drawing_of(comparison.structure).summary,
        structure_figure=structure_figure(comparison),
        levels=levels_table(comparison),
        scores=scores_table(comparison),
        severity=severity_table(comparison),
        weights=weights_table(comparison),
        differences_figure=differences_figure(comparison, comparison.metric),
        folds=folds_table(comparison),
        learning_curve_figure=learning_curve_figure(comparison),
        confusion_figures=confusion_figures(comparison),
        reliability_figures=reliability_figures(comparison),
        model=None if model_file is None else _usage(model_file, data),
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


def _usage(model_file: str | os.PathLike[str], data: str) -> dict[str, str]:
    """Return how to use a saved model, in Python and on the command line."""
    name = os.fspath(model_file)
    python = (
        "from structent import StructuredBoostingClassifier\n\n"
        f"model = StructuredBoostingClassifier.load({name!r})\n"
        "proba = model.predict_proba(table[list(model.feature_names_in_)])  # table: new rows\n"
        "model.classes_  # what the columns of proba stand for"
    )
    shell = f"structent predict {shlex.quote(name)} {shlex.quote(data)} -o predictions.parquet"
    return {"name": Path(name).name, "python": python, "shell": shell}


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


class Cell(NamedTuple):
    """What a cell shows, and the number or text by which it is sorted."""

    text: str
    value: float | str


class Table(NamedTuple):
    """A table whose columns can be sorted; the first cell of a row names it."""

    caption: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]


def facts(
    comparison: Comparison, data: str, target: str, group: str | None
) -> list[tuple[str, str]]:
    """Return what was compared and on what, as names and values."""
    task, plan = comparison.task, comparison.plan
    found = [
        ("Data", data),
        ("Target", f"{target}, {len(task.classes):,} classes"),
        ("Rows", f"{task.n_used:,} used of {task.n_rows:,} with a label"),
        ("Features", f"{len(task.features):,}: {_some(task.features)}"),
        ("Cross-validation", plan.cross_validation),
        ("Scrambled copies", f"{plan.n_copies} in each fold"),
        ("Seed", str(comparison.seed)),
        ("Time", f"{comparison.seconds:,.1f} seconds"),
        ("Versions", _versions()),
    ]
    if group is not None:
        found.insert(4, ("Rows kept together by", group))
    return found


def levels_table(comparison: Comparison | StructureTest) -> Table | None:
    """Return the partitions of the structure, level by level; None for a sampler."""
    structure = comparison.structure
    if not isinstance(structure, RandomPartition):
        return None
    rows = []
    for name, partitions in structure.levels.items():
        weight = structure.weights[[level == name for level in structure.level_of]].sum()
        n_blocks = max(map(len, partitions))
        rows.append(
            [_text(name), _count(len(partitions)), _count(n_blocks), Cell(f"{weight:.3f}", weight)]
        )
    return Table("Levels of the structure", ("Level", "Partitions", "Blocks", "Weight"), rows)


def scores_table(comparison: Comparison) -> Table:
    """Return the scores of each arm at each level."""
    rows = []
    for level in comparison.levels:
        for arm in ARMS:
            scores = comparison.scores[arm].by_level[:, comparison.levels.index(level)]
            rows.append([_text(level), _text(ARMS[arm]), *(_spread(column) for column in scores.T)])
    units = {"log loss": "log loss (nats)"}
    columns = tuple(units.get(metric, metric).capitalize() for metric in METRICS)
    caption = "Scores at each level: mean ± standard deviation over the folds"
    return Table(caption, ("Level", "Model", *columns), rows)


def severity_table(comparison: Comparison) -> Table:
    """Return how far from the truth the mistakes of each arm are."""
    rows = [[_text(ARMS[arm]), _spread(comparison.scores[arm].severity)] for arm in ARMS]
    caption = "Mistake severity: the mean distance of mistakes from the true class"
    return Table(caption, ("Model", "Mistake severity"), rows)


def weights_table(comparison: Comparison) -> Table:
    """Return how often each weight of the singletons was chosen."""
    candidates = sorted({*comparison.plan.singleton_weights, *comparison.chosen.tolist(), 1.0})
    rows = []
    for weight in candidates:
        n = int((comparison.chosen == weight).sum())
        meaning = f"{weight:g} (no structure)" if weight == 1.0 else f"{weight:g}"
        rows.append([Cell(meaning, weight), Cell(f"{n} of {len(comparison.chosen)}", n)])
    caption = "How often validation rows chose each weight of the single classes"
    return Table(caption, ("Weight of single classes", "Chosen"), rows)


def folds_table(comparison: Comparison) -> Table:
    """Return the paired differences and the chosen weight of each fold."""
    columns = (
        "Fold",
        "Repeat",
        "Against no structure",
        "Against scrambled copies",
        "Weight chosen",
    )
    by_fold = zip(
        comparison.against_none.per_fold.tolist(),
        comparison.against_scrambled.per_fold.tolist(),
        comparison.chosen.tolist(),
        strict=True,
    )
    rows = []
    for number, (none, scrambled, weight) in enumerate(by_fold):
        repeat, fold = divmod(number, comparison.plan.n_folds)
        chosen = Cell(f"{weight:g}", weight)
        rows.append(
            [_count(fold + 1), _count(repeat + 1), _signed(none), _signed(scrambled), chosen]
        )
    caption = f"Difference in each fold of the {measured(comparison.metric)}: below 0 is better"
    return Table(caption, columns, rows)


def facts_of_test(found: StructureTest, data: str, target: str) -> list[tuple[str, str]]:
    """Return what was tested and how, as names and values."""
    many = "more than can be listed" if found.orbit_size is None else f"{found.orbit_size:,}"
    rows = [] if found.n_rows is None else [("Rows", f"{found.n_rows:,}")]
    return [
        ("Data", data),
        ("Target", f"{target}, {len(found.structure.classes):,} classes"),
        *rows,
        ("Cross-validation", found.cross_validation),
        ("Scrambled copies", f"{found.p.n_drawn:,}, {found.p.n_as_good:,} of them as good"),
        ("Structures that scrambling can give", many),
        ("Level of significance", f"{found.level:g}"),
        ("Seed", str(found.seed)),
        ("Time", f"{found.seconds:,.1f} seconds"),
        ("Versions", _versions()),
    ]


def gains_table(gains: Sequence[PartitionGain]) -> Table | None:
    """Return what each partition adds, by leaving it out."""
    if not gains:
        return None
    rows = [
        [
            _text(gain.name),
            Cell(f"{gain.weight:.3f}", gain.weight),
            _signed(gain.difference.mean),
            _signed(gain.difference.low),
            _signed(gain.difference.high),
        ]
        for gain in gains
    ]
    columns = ("Left out", "Weight", "Difference", "Low", "High")
    caption = "Log loss with the partition minus that without it: below 0 it helps"
    return Table(caption, columns, rows)


def _text(text: str) -> Cell:
    return Cell(text, text)


def _count(n: int) -> Cell:
    return Cell(f"{n:,}", n)


def _signed(value: float) -> Cell:
    return Cell(f"{value:+.4f}", value)


def _spread(values: FloatArray) -> Cell:
    """Return mean and standard deviation over the folds that have a value."""
    # A fold without mistakes has no severity of mistakes.
    known = values[~np.isnan(values)]
    if not len(known):
        return Cell("none", "")
    mean = float(known.mean())
    if len(known) == 1:
        return Cell(f"{mean:.4f}", mean)
    return Cell(f"{mean:.4f} ± {known.std(ddof=1):.4f}", mean)


def _some(names: tuple[str, ...]) -> str:
    rest = len(names) - 30
    return ", ".join(names[:30]) + (f" and {rest} more" if rest > 0 else "")


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # an extra that is not installed
            continue
    return ", ".join(found)
