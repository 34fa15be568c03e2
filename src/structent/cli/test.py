"""``structent test``: does the structure help more than its scrambled copies?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from structent.cli import options
from structent.cli.options import read_question
from structent.cli.output import Output, check_can_write, shown_folds
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.report import write_structure_test
from structent.structure import RandomPartition
from structent.studies import PartitionGain, StructureTest, partition_gains, structure_test
from structent.studies.comparison import Difference

_MOST_LEFT_OUT = 12  # partitions: each costs as much as a scrambled copy


def structure_significance(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    features: options.Features = None,
    group: options.Group = None,
    permutations: Annotated[
        int,
        typer.Option(
            help="Scrambled copies of the structure.", callback=options.whole_number(1, 100_000)
        ),
    ] = 199,
    folds: options.Folds = 5,
    repeats: options.Repeats = 1,
    level: Annotated[float, typer.Option(help="The level of significance asked for.")] = 0.05,
    out: Annotated[
        Path | None,
        typer.Option(help="A .jsonl file that keeps what is finished, to go on from later."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Where to write the HTML report.")] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Test whether the structure helps more than the same structure with its classes scrambled."""
    output = Output(as_json=as_json, quiet=quiet)
    for path in (out, report):
        check_can_write(path)
    question = read_question(data, target, structure, features, group)
    options.check_folds(folds, at_least=2, n_rows=len(question.table.labels))
    output.notes(*question.notes)
    table = question.table
    # Larger steps than those of compare: there are hundreds of models to train.
    model = StructuredBoostingClassifier(
        learning_rate=0.3, early_stopping_rounds=10, random_state=seed, n_jobs=1
    )
    asked: dict[str, Any] = {
        "groups": table.groups, "n_folds": folds, "n_repeats": repeats, "seed": seed,
        "n_jobs": jobs, "keep_in": out,
    }  # fmt: skip
    with output.progress() as on_progress:
        found = structure_test(
            model, table.features, table.labels, question.specified.structure,
            n_permutations=permutations, level=level, on_progress=on_progress, **asked,
        )  # fmt: skip
        gains: tuple[PartitionGain, ...] = ()
        if _can_leave_out(found.structure):
            gains = partition_gains(
                model, table.features, table.labels, found.structure, on_progress=on_progress,
                **asked,
            )  # fmt: skip
    if report is not None:
        write_structure_test(
            found, report, data=data.name, target=target, n_rows=len(table.labels), gains=gains,
            notes=question.notes,
        )  # fmt: skip
    copies = "copy" if found.p.n_drawn == 1 else "copies"
    about = (
        f"{data.name}: {len(table.labels):,} rows, {len(found.structure.classes)} classes; "
        f"{shown_folds(folds, repeats)}, {found.p.n_drawn:,} scrambled {copies}"
    )
    output.result(_shown(about, found, gains, report), _as_data(found, gains))


def _can_leave_out(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and structure.n_partitions <= _MOST_LEFT_OUT


def _shown(
    about: str, found: StructureTest, gains: tuple[PartitionGain, ...], report: Path | None
) -> Lines:
    """Return what a person reads: the losses, the partitions, and the verdict last."""
    lines: list[Any] = [Text(about), _losses_table(found)]
    if gains:
        lines.append(_gains_table(gains))
    lines += [Text(note) for note in found.notes]
    if report is not None:
        lines.append(Text(f"The report: {report}"))
    lines += [Text(found.sentence_against_none), Text(found.sentence, style="bold")]
    return Lines(*lines)


def _losses_table(found: StructureTest) -> Table:
    table = Table(title="Mean log loss over the folds")
    table.add_column("model")
    table.add_column("log loss", justify="right")
    null = found.null
    for name, loss in (
        ("the structure", f"{found.loss:.4f}"),
        ("no structure", f"{found.losses_without.mean():.4f}"),
        ("scrambled copies, mean", f"{null.mean():.4f}"),
        ("scrambled copies, best to worst", f"{null.min():.4f} to {null.max():.4f}"),
    ):
        table.add_row(name, loss)
    return table


def _gains_table(gains: tuple[PartitionGain, ...]) -> Table:
    table = Table(title="What partitions add: log loss with them minus without, below 0 they help")
    table.add_column("left out")
    for column in ("weight", "difference", "95 % interval"):
        table.add_column(column, justify="right", no_wrap=True)
    for gain in gains:
        difference = gain.difference
        interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
        table.add_row(gain.name, f"{gain.weight:.3f}", f"{difference.mean:+.4f}", interval)
    return table


def _as_data(found: StructureTest, gains: tuple[PartitionGain, ...]) -> dict[str, Any]:
    """Return the test as plain data, for machines."""
    low, high = found.effect_interval
    return {
        "finding": found.finding,
        "sentence": found.sentence,
        "notes": list(found.notes),
        "p_value": found.p_value,
        "level": found.level,
        "scrambled_copies": found.p.n_drawn,
        "as_good": found.p.n_as_good,
        "stopped_early": found.p.is_stopped_early,
        "orbit_size": found.orbit_size,
        "effect": {"mean": found.effect, "low": low, "high": high},
        "loss": found.loss,
        "null_losses": found.null.tolist(),
        "against_none": _difference(found.against_none) | {"p_value": found.p_value_against_none},
        "partitions": [
            {"left_out": gain.name, "weight": gain.weight} | _difference(gain.difference)
            for gain in gains
        ],
        "seconds": found.seconds,
        "seed": found.seed,
    }


def _difference(difference: Difference) -> dict[str, float]:
    return {"mean": difference.mean, "low": difference.low, "high": difference.high}
