"""``structent test``: does the structure help more than its scrambled copies?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from structent.cli import options
from structent.cli.options import Columns, Question, read_question
from structent.cli.output import Output, caution_lines, check_outputs
from structent.inputs import files_of
from structent.structure import RandomPartition
from structent.studies import PartitionGain, StructureTest, partition_gains, structure_test
from structent.studies.comparison import ARMS
from structent.studies.plan import FEWEST_FOLDS

_MOST_LEFT_OUT = 12  # partitions: each costs as much as a scrambled copy


def structure_significance(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    model: options.ModelKind = "auto",
    features: options.Features = None,
    keep: options.Keep = None,
    drop: options.Drop = None,
    group: options.Group = None,
    permutations: Annotated[
        int,
        typer.Option(
            help="How many scrambled copies of the structure to try.",
            callback=options.whole_number(1, 100_000),
        ),
    ] = 199,
    folds: Annotated[
        int | None, typer.Option(help="Folds of the cross-validation; by default as in compare.")
    ] = None,
    repeats: options.Repeats = 1,
    level: Annotated[float, typer.Option(help="The level of significance.")] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .jsonl file for finished results; the same command continues from it."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    target_is_class: options.TargetIsClass = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Test whether the structure helps more than the same structure with its classes scrambled."""
    output = Output(as_json=as_json, quiet=quiet)
    check_outputs({"--out": out, "--report": report}, [data, *files_of(structure)])
    columns = Columns(features, keep, drop)
    question = read_question(
        data, target, structure, columns, group, target_is_class=target_is_class
    )
    if folds is not None:
        options.check_folds(folds, at_least=FEWEST_FOLDS, table=question.table)
    output.notes(*question.notes, cautions=question.cautions)
    table = question.table
    rows = table.features, table.labels, question.specified.structure
    with output.progress() as on_progress:
        asked: dict[str, Any] = {
            "groups": table.groups, "random_state": seed, "n_jobs": jobs, "progress": on_progress,
            "model": model, "n_folds": folds, "n_repeats": repeats, "keep_in": out,
        }  # fmt: skip
        found = structure_test(*rows, n_permutations=permutations, level=level, **asked)
        gains: tuple[PartitionGain, ...] = ()
        if _can_leave_out(found.structure):
            gains = partition_gains(*rows, **asked)
    if report is not None:
        found.to_html(
            report, data=data.name, target=target, notes=question.notes,
            cautions=question.cautions, gains=gains,
        )  # fmt: skip
    facts = found.to_dict(notes=question.notes, gains=gains)
    verdict = {name: facts[name] for name in ("finding", "sentence")}
    output.result(
        _shown(found, gains, question, data.name, report),
        {**verdict, **question.as_data(), **facts},
    )


def _can_leave_out(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and structure.n_partitions <= _MOST_LEFT_OUT


def _shown(
    found: StructureTest, gains: tuple[PartitionGain, ...], question: Question, data: str,
    report: Path | None,
) -> Lines:  # fmt: skip
    """Return the lines for the terminal: losses, partitions, and the verdict last."""
    copies = "copy" if found.p.n_drawn == 1 else "copies"
    lines: list[Any] = [
        Text(
            f"{data}: {len(question.table.labels):,} rows, {len(found.structure.classes)} classes; "
            f"{found.cross_validation}, {found.p.n_drawn:,} scrambled {copies}"
        ),
        _losses_table(found),
    ]
    if gains:
        lines.append(_gains_table(gains))
    lines += [Text(note) for note in found.notes]
    if report is not None:
        lines.append(Text(f"The report: {report}"))
    lines += caution_lines(question.cautions)
    lines += [Text(found.sentence_against_none), Text(found.sentence, style="bold")]
    return Lines(*lines)


def _losses_table(found: StructureTest) -> Table:
    table = Table(title="Mean log loss over the folds")
    table.add_column("model")
    table.add_column("log loss", justify="right")
    null = found.null
    for name, loss in (
        (ARMS["structure"], f"{found.loss:.4f}"),
        (ARMS["none"], f"{found.losses_without.mean():.4f}"),
        (f"{ARMS['scrambled']}, mean", f"{null.mean():.4f}"),
        (f"{ARMS['scrambled']}, best to worst", f"{null.min():.4f} to {null.max():.4f}"),
    ):
        table.add_row(name, loss)
    return table


def _gains_table(gains: tuple[PartitionGain, ...]) -> Table:
    table = Table(
        title="What each partition adds: log loss with it minus without it; below 0 it helps"
    )
    table.add_column("left out")
    for column in ("weight", "difference", "95 % interval"):
        table.add_column(column, justify="right", no_wrap=True)
    for gain in gains:
        difference = gain.difference
        interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
        table.add_row(gain.name, f"{gain.weight:.3f}", f"{difference.mean:+.4f}", interval)
    return table
