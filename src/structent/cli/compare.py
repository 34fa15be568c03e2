"""``structent compare``: does knowing the structure help?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from structent._checks import checked_integer
from structent.cli import options
from structent.cli.models import save_model
from structent.cli.options import Columns, Question, read_question
from structent.cli.output import Output, caution_lines, check_outputs
from structent.datasets import seattle_weather_file
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.inputs import files_of
from structent.structure.learned import MOST_LEVELS
from structent.structure.short_forms import Options
from structent.studies import Comparison, LearnedStructure
from structent.studies import compare as compare_rows
from structent.studies.compare import FEWEST_FOLDS, drawn_rows
from structent.studies.comparison import ARMS, METRICS

LEAST_MINUTES = 0.1
METRIC_NAMES = {"log-loss": "log loss", "accuracy": "accuracy"}


def compare(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.ComparedStructure,
    features: options.Features = None,
    keep: options.Keep = None,
    drop: options.Drop = None,
    group: options.Group = None,
    folds: options.Folds = 5,
    repeats: options.Repeats = 2,
    metric: Annotated[str, typer.Option(help="What decides: log-loss or accuracy.")] = "log-loss",
    budget: Annotated[
        float, typer.Option(help="The minutes that it may take.", callback=_checked_budget)
    ] = 10.0,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Train on parts of the rows, too.")
    ] = False,
    target_is_class: options.TargetIsClass = False,
    allow_blocks: options.AllowBlocks = False,
    save: options.Save = None,
    report: Annotated[Path | None, typer.Option(help="Where to write the HTML report.")] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train with and without the structure, and say whether knowing it helps."""
    output = Output(as_json=as_json, quiet=quiet)
    if metric not in METRIC_NAMES:
        raise StructentError(f"--metric must be log-loss or accuracy, got {metric!r}")
    check_outputs({"--save": save, "--report": report}, [data, *files_of(structure)])
    to_learn = _to_learn(structure, allow_blocks=allow_blocks)
    known = structure if to_learn is None else "trivial"  # until it is learned
    columns = Columns(features, keep, drop)
    question = read_question(
        data, target, known, columns, group, target_is_class=target_is_class,
        allow_blocks=allow_blocks,
    )  # fmt: skip
    options.check_folds(folds, at_least=FEWEST_FOLDS, table=question.table)
    output.notes(*question.notes, cautions=question.cautions)
    with output.progress() as on_progress:
        found = compare_rows(
            question.table.features, question.table.labels,
            question.specified.structure if to_learn is None else to_learn,
            groups=question.table.groups, random_state=seed, n_jobs=jobs, progress=on_progress,
            metric=METRIC_NAMES[metric], n_folds=folds, n_repeats=repeats, budget=60 * budget,
            learning_curve=learning_curve, allow_blocks=allow_blocks,
        )  # fmt: skip
        if save is not None:
            on_progress("the model to keep", 0, 1)
            save_model(_better_model(found, question, seed, jobs), save, question, target)
    if report is not None:
        found.to_html(
            report, data=data.name, target=target, group=group, notes=question.notes,
            cautions=question.cautions, model_file=save,
        )  # fmt: skip
    facts = found.to_dict(notes=question.notes)
    files = {"The model": save, "The report": report}
    output.result(
        shown(found, data=data.name, target=target, files=files, cautions=question.cautions),
        {"verdict": facts["verdict"], **question.as_data(), **facts},
    )


def demo(
    report: Annotated[Path, typer.Option(help="Where to write the HTML report.")] = Path(
        "structent-demo.html"
    ),
) -> None:
    """Does it help to know that months form a circle? On 1,461 days of Seattle's weather."""
    compare(
        seattle_weather_file(),
        target="month",
        structure="circular:width=3",
        features="precipitation,temp_max,temp_min,wind",
        repeats=1,
        budget=0.75,
        report=report,
    )


def _checked_budget(minutes: float) -> float:
    if not minutes >= LEAST_MINUTES:  # NaN is not either
        raise StructentError(
            f"--budget must be at least {LEAST_MINUTES:g} minutes, the least in which a comparison "
            f"can say anything, got {minutes:g}; leave it out for the default"
        )
    return minutes


def _to_learn(structure: str, *, allow_blocks: bool) -> LearnedStructure | None:
    """Return what ``learn`` or ``learn:levels=3`` asks for, None for any other structure."""
    kind, _, rest = structure.partition(":")
    if kind != "learn":
        return None
    if allow_blocks:
        raise StructentError(
            f"--allow-blocks needs a structure that says what a block is, got {structure}"
        )
    asked = Options(kind, rest)
    asked.check_names("levels")
    n_levels = asked.integer("levels", LearnedStructure.n_levels)
    checked_integer(n_levels, "levels of learn", at_least=1, at_most=MOST_LEVELS)
    return LearnedStructure(n_levels=n_levels)


def _better_model(
    found: Comparison, question: Question, seed: int, jobs: int | None
) -> StructuredBoostingClassifier:
    """Return the model that did better, trained on all rows that were compared.

    It has the structure only if that helps, with the weight of the singletons that was chosen most
    often.
    """
    weight = 1.0
    if found.verdict.finding == "helps":
        values, counts = np.unique(found.chosen, return_counts=True)
        weight = float(values[counts.argmax()])
    model = StructuredBoostingClassifier(
        found.structure, weights=weight, learning_rate=0.1, random_state=seed, n_jobs=jobs,
        allow_blocks=question.allow_blocks,
    )  # fmt: skip
    table = question.table
    kept = drawn_rows(len(table.labels), found.task.n_used, seed)
    return model.fit(table.features[kept], table.labels[kept])


def shown(
    found: Comparison,
    *,
    data: str,
    target: str,
    files: Mapping[str, Path | None] = MappingProxyType({}),
    cautions: Sequence[str] = (),
) -> Lines:
    """Return what a person reads: the table, what was cut, what to beware of, the verdict last."""
    task, plan = found.task, found.plan
    lines: list[Any] = [
        Text(
            f"{data}: {task.n_used:,} rows, {len(task.features)} features, "
            f"{len(task.classes)} classes of {target!r}; {plan.cross_validation}"
        ),
        _level_table(found),
        Text(_chosen(found)),
    ]
    lines += [Text(f"Reduced to fit the time budget: {cut}.", style="yellow") for cut in plan.cuts]
    if task.rare:
        names = ", ".join(map(str, task.rare[:10]))
        lines.append(Text(f"Classes with fewer rows than folds, scored where they fall: {names}."))
    lines += [Text(f"{what}: {path}") for what, path in files.items() if path is not None]
    lines += caution_lines(cautions)
    lines.append(Text(found.verdict.sentence, style="bold"))
    return Lines(*lines)


def _level_table(found: Comparison) -> Table:
    table = Table(title="Means over the folds")
    table.add_column("level")
    table.add_column("model")
    for metric in METRICS:
        table.add_column(metric, justify="right")
    for level in found.levels:
        for arm in ARMS:
            cells = [f"{found.mean(arm, level, metric):.4f}" for metric in METRICS]
            table.add_row(level if arm == "none" else "", ARMS[arm], *cells)
        table.add_section()
    severity = " / ".join(f"{found.scores[arm].severity.mean():.3f}" for arm in ARMS)
    table.caption = f"Mistake severity: {severity}"
    return table


def _chosen(found: Comparison) -> str:
    values, counts = np.unique(found.chosen, return_counts=True)
    parts = [f"{value:g} in {count}" for value, count in zip(values, counts, strict=True)]
    return (
        f"Weight of the singletons that validation rows chose: {', '.join(parts)} of the "
        f"{len(found.chosen)} splits."
    )
