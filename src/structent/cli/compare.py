"""``structent compare``: does knowing the structure help?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from structent._checks import checked_integer
from structent.cli import options
from structent.cli.models import save_model
from structent.cli.options import Question, read_question
from structent.cli.output import Output, check_can_write, shown_folds
from structent.datasets import seattle_weather_file
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.report import write_report
from structent.structure.learned import MOST_LEVELS
from structent.structure.short_forms import Options
from structent.studies import Comparison, LearnedStructure
from structent.studies import compare as compare_rows
from structent.studies.compare import FEWEST_FOLDS, drawn_rows
from structent.studies.comparison import ARMS, METRICS, NAME_OF_ARM

METRIC_NAMES = {"log-loss": "log loss", "accuracy": "accuracy"}


def compare(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.ComparedStructure,
    features: options.Features = None,
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
    for path in (save, report):
        check_can_write(path)
    to_learn = _to_learn(structure)
    known = structure if to_learn is None else "trivial"  # until it is learned
    question = read_question(data, target, known, features, group, allow_blocks=allow_blocks)
    options.check_folds(folds, at_least=FEWEST_FOLDS, n_rows=len(question.table.labels))
    output.notes(*question.notes)
    with output.progress() as on_progress:
        found = compare_rows(
            question.table.features, question.table.labels,
            question.specified.structure if to_learn is None else to_learn,
            groups=question.table.groups, data=data.name, target=target, group=group,
            notes=question.notes, metric=METRIC_NAMES[metric], n_folds=folds, n_repeats=repeats,
            budget=60 * budget, learning_curve=learning_curve, seed=seed, n_jobs=jobs,
            on_progress=on_progress, allow_blocks=allow_blocks,
        )  # fmt: skip
        if save is not None:
            on_progress("the model to keep", 0, 1)
            save_model(better_model(found, question, seed, jobs), save, question, target)
    if report is not None:
        write_report(found, report, model_file=save)
    output.result(shown(found, save=save, report=report), as_data(found))


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
    if not minutes > 0:  # nor is NaN
        raise StructentError(f"--budget must be a number of minutes above 0, got {minutes:g}")
    return minutes


def _to_learn(structure: str) -> LearnedStructure | None:
    """Return what ``learn`` or ``learn:levels=3`` asks for, None for any other structure."""
    kind, _, rest = structure.partition(":")
    if kind != "learn":
        return None
    asked = Options(kind, rest)
    asked.check_names("levels")
    n_levels = asked.integer("levels", LearnedStructure.n_levels)
    checked_integer(n_levels, "levels of learn", at_least=1, at_most=MOST_LEVELS)
    return LearnedStructure(n_levels=n_levels)


def better_model(
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


def shown(found: Comparison, *, save: Path | None, report: Path | None) -> Lines:
    """Return what a person reads: the table, what was cut, and the verdict last."""
    task, plan = found.task, found.plan
    lines: list[Any] = [
        Text(
            f"{task.data}: {task.n_used:,} rows, {len(task.features)} features, "
            f"{len(task.classes)} classes of {task.target!r}; "
            f"{shown_folds(plan.n_folds, len(found.chosen) // plan.n_folds)}"
        ),
        _level_table(found),
        Text(_chosen(found)),
    ]
    lines += [Text(f"Cut for want of time: {cut}.", style="yellow") for cut in plan.cuts]
    if task.rare:
        names = ", ".join(map(str, task.rare[:10]))
        lines.append(Text(f"Classes with fewer rows than folds, scored where they fall: {names}."))
    for path, what in ((save, "The model"), (report, "The report")):
        if path is not None:
            lines.append(Text(f"{what}: {path}"))
    lines.append(Text(found.verdict.sentence, style="bold"))
    return Lines(*lines)


def as_data(found: Comparison) -> dict[str, Any]:
    """Return the comparison as plain data, for machines."""
    return {
        "verdict": {"finding": found.verdict.finding, "sentence": found.verdict.sentence},
        "metric": found.metric,
        "against_none": _difference(found.against_none),
        "against_scrambled": _difference(found.against_scrambled),
        "scores": {
            arm: {
                level: {metric: found.mean(arm, level, metric) for metric in METRICS}
                for level in found.levels
            }
            | {"mistake severity": float(found.scores[arm].severity.mean())}
            for arm in ARMS
        },
        "chosen_singleton_weights": found.chosen.tolist(),
        "rows": found.task.n_used,
        "rows_in_table": found.task.n_rows,
        "folds": len(found.chosen),
        "rare_classes": list(found.task.rare),
        "notes": list(found.task.notes),
        "cuts": list(found.plan.cuts),
        "seconds": found.seconds,
        "seed": found.seed,
    }


def _difference(difference: Any) -> dict[str, float]:
    return {"mean": difference.mean, "low": difference.low, "high": difference.high}


def _level_table(found: Comparison) -> Table:
    table = Table(title="Means over the folds")
    table.add_column("level")
    table.add_column("model")
    for metric in METRICS:
        table.add_column(metric, justify="right")
    for level in found.levels:
        for arm in ARMS:
            cells = [f"{found.mean(arm, level, metric):.4f}" for metric in METRICS]
            table.add_row(level if arm == ARMS[0] else "", NAME_OF_ARM[arm], *cells)
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
