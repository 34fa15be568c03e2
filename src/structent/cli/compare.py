"""``structent compare``: does knowing the structure help?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from structent._checks import checked_integer
from structent.cli import options
from structent.cli.models import save_model
from structent.cli.options import Columns, read_question
from structent.cli.output import (
    Output,
    caution_lines,
    check_outputs,
    check_table,
    command_line,
    write_table,
)
from structent.errors import StructentError
from structent.inputs import files_of
from structent.structure import SpanningTreePartitions
from structent.structure.learned import MOST_LEVELS
from structent.structure.short_forms import Options
from structent.studies import Comparison, LearnedStructure
from structent.studies import compare as compare_rows
from structent.studies.comparison import ARMS, METRICS, KeptModel
from structent.studies.models import shown_model
from structent.studies.plan import FEWEST_FOLDS, Plan
from structent.studies.wording import chosen_sentence, kept_sentence, next_steps

LEAST_MINUTES = 0.1
METRIC_NAMES = {"log-loss": "log loss", "accuracy": "accuracy"}


def compare(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.ComparedStructure,
    model: options.ModelKind = "auto",
    features: options.Features = None,
    keep: options.Keep = None,
    drop: options.Drop = None,
    group: options.Group = None,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Folds of the cross-validation; by default the size of the table decides."
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Repeats of the cross-validation with other folds; by default the size of the "
            "table decides.",
            callback=options.whole_number(1, 1000),
        ),
    ] = None,
    metric: Annotated[str, typer.Option(help="What decides: log-loss or accuracy.")] = "log-loss",
    budget: Annotated[
        float | None,
        typer.Option(
            help="Stop after this many minutes and report the splits that are done. By default "
            "only large tables have a limit, which is shown at the start.",
            callback=_checked_budget,
        ),
    ] = None,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Also train on smaller parts of the rows.")
    ] = False,
    target_is_class: options.TargetIsClass = False,
    allow_blocks: options.AllowBlocks = False,
    save: options.Save = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Write the probabilities that the models gave to test rows to this .csv or "
            ".parquet file."
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train with and without the structure, and say whether to use it."""
    output = Output(as_json=as_json, quiet=quiet)
    if metric not in METRIC_NAMES:
        raise StructentError(f"--metric must be log-loss or accuracy, got {metric!r}")
    if predictions is not None:
        check_table(predictions)
    outputs = {"--save": save, "--report": report, "--predictions": predictions}
    check_outputs(outputs, [data, *files_of(structure)])
    to_learn = _to_learn(structure, allow_blocks=allow_blocks)
    known = structure if to_learn is None else "trivial"  # until it is learned
    columns = Columns(features, keep, drop)
    question = read_question(
        data, target, known, columns, group, target_is_class=target_is_class,
        allow_blocks=allow_blocks,
    )  # fmt: skip
    if folds is not None:
        options.check_folds(folds, at_least=FEWEST_FOLDS, table=question.table)
    output.notes(*question.notes, cautions=question.cautions)
    with output.progress() as on_progress:
        found = compare_rows(
            question.table.features, question.table.labels,
            question.specified.structure if to_learn is None else to_learn, model=model,
            groups=question.table.groups, random_state=seed, n_jobs=jobs, progress=on_progress,
            metric=METRIC_NAMES[metric], n_folds=folds, n_repeats=repeats,
            budget=None if budget is None else 60 * budget, on_plan=_plan_told(output, budget),
            learning_curve=learning_curve, allow_blocks=allow_blocks,
        )  # fmt: skip
        kept = None
        if save is not None:
            on_progress("the model to keep", 0, 1)
            best = found.best_model(n_jobs=jobs)
            save_model(best, save, question, target)
            kept = KeptModel(save, kept_sentence(found, best))
    if report is not None:
        found.to_html(
            report, data=data.name, target=target, structure_name=structure, group=group,
            notes=question.notes, cautions=question.cautions, kept=kept, command=command_line(),
        )  # fmt: skip
    if predictions is not None:
        write_table(_tested_rows(found), predictions)
    facts = found.to_dict(notes=question.notes)
    shown_lines = shown(
        found, data=data.name, target=target, report=report, kept=kept, cautions=question.cautions
    )
    saved = {} if kept is None else {"saved": str(kept.path), "saved_model": kept.sentence}
    output.result(
        shown_lines, {"verdict": facts["verdict"], **question.as_data(), **facts, **saved}
    )


def _tested_rows(found: Comparison) -> pl.DataFrame:
    """Return the rows that were tested and are known by their class, each in its first split."""
    classes = list(map(str, found.task.classes))
    columns: dict[str, Any] = {
        "split": found.split_of,
        "label": [classes[place] for place in found.labels],
    }
    for arm, proba in found.proba.items():
        columns |= {f"{ARMS[arm]}: {name}": proba[:, place] for place, name in enumerate(classes)}
    return pl.DataFrame(columns)


def _checked_budget(minutes: float | None) -> float | None:
    if minutes is not None and not minutes >= LEAST_MINUTES:  # NaN is not either
        raise StructentError(
            f"--budget must be at least {LEAST_MINUTES:g} minutes, because a shorter comparison "
            f"finds nothing, got {minutes:g}; leave it out for the default"
        )
    return minutes


def _to_learn(structure: str, *, allow_blocks: bool) -> LearnedStructure | None:
    """Return what ``learn`` or ``learn:levels=3`` asks for, None for any other structure."""
    kind, _, rest = structure.partition(":")
    if kind != "learn":
        return None
    if allow_blocks:
        raise StructentError(f"--allow-blocks needs a structure with named blocks, got {structure}")
    asked = Options(kind, rest)
    asked.check_names("levels")
    n_levels = asked.integer("levels", LearnedStructure.n_levels)
    checked_integer(n_levels, "levels of learn", at_least=1, at_most=MOST_LEVELS)
    return LearnedStructure(n_levels=n_levels)


def _plan_told(output: Output, budget: float | None) -> Callable[[Plan], None]:
    """Return a function that prints the expected time at the start, if it is minutes."""

    def tell(plan: Plan) -> None:
        end = plan.cap if budget is None else budget
        if plan.cap is not None:
            output.notes(
                f"This takes about {plan.minutes:,.0f} minutes on two cores. It stops after "
                f"{end:g} minutes and reports what is done by then (--budget changes that)."
            )

    return tell


def shown(
    found: Comparison,
    *,
    data: str,
    target: str,
    report: Path | None = None,
    kept: KeptModel | None = None,
    cautions: Sequence[str] = (),
) -> Lines:
    """Return the lines for the terminal: tables, cautions, and the verdict last."""
    task, plan = found.task, found.plan
    lines: list[Any] = [
        Text(
            f"{data}: {task.n_rows:,} rows, {len(task.features)} features, "
            f"{len(task.classes)} classes of {target!r}; {shown_model(found.model)}; "
            f"{plan.cross_validation}"
        ),
        _level_table(found),
        *(Text(line) for line in (*_raced(found), *_references(found), chosen_sentence(found))),
    ]
    if task.rare:
        names = ", ".join(map(str, task.rare[:10]))
        lines.append(
            Text(
                f"Classes with fewer rows than folds, scored in the splits that test them: {names}."
            )
        )
    if kept is not None:
        lines.append(Text(f"The model: {kept.path}. {kept.sentence}"))
    if report is not None:
        lines.append(Text(f"The report: {report}"))
    lines += caution_lines([*(f"Reduced: {line}" for line in found.reduced), *cautions])
    lines.append(Text(found.verdict.sentence, style="bold"))
    lines += [Text(line) for line in next_steps(found)]
    return Lines(*lines)


def _level_table(found: Comparison) -> Table:
    table = Table(title="Means over the splits")
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
    is_graph = isinstance(found.structure, SpanningTreePartitions)
    table.caption = f"Mistake severity{' (edges of the graph)' if is_graph else ''}: {severity}"
    return table


def _raced(found: Comparison) -> list[str]:
    """Return which kind of model was better without structure, where both were tried."""
    if not found.raced:
        return []
    losses = ", ".join(f"{name} {loss:.4f}" for name, loss in found.raced.items())
    return [f"Without structure, validation log loss on the first split: {losses}."]


def _references(found: Comparison) -> list[str]:
    references = found.references
    if not references.n_splits:
        return []
    losses = ", ".join(f"{name} {loss:.4f}" for name, loss in references.log_losses.items())
    splits = "split" if references.n_splits == 1 else f"{references.n_splits} splits"
    ours = f"ours without structure {references.ours:.4f}"
    return [f"For comparison, log loss on the first {splits}: {ours}, scikit-learn's {losses}."]
