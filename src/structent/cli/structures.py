"""``structent structure`` and ``structent entropy``: look at structures, and measure with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from structent.cli import options
from structent.cli.options import read_question
from structent.cli.output import Output, check_can_write
from structent.entropy import structured_entropy, structured_mutual_information_from_labels
from structent.errors import StructentError
from structent.inputs import (
    Specified,
    columns_of,
    open_table,
    parse_structure,
    structure_from_file,
    write_structure,
)
from structent.structure import RandomPartition

Spec = Annotated[str, typer.Argument(help="A short form, such as circular:width=3, or a file.")]
OfData = Annotated[Path | None, typer.Option("--data", help="The table with the labels.")]
OfTarget = Annotated[str | None, typer.Option("--target", help="Its column of labels.")]

app = typer.Typer(
    help="Look at structures, check and convert them.", no_args_is_help=True, add_completion=False
)


@app.command()
def show(spec: Spec, data: OfData = None, target: OfTarget = None) -> None:
    """Print the partitions of a structure, their weights and their blocks."""
    output = Output(as_json=False, quiet=False)
    specified = _specified(spec, data, target, output)
    structure = specified.structure
    drawn = structure if isinstance(structure, RandomPartition) else structure.sample(0)
    if drawn is not structure:
        output.notes("A new partition is drawn in every round; this is the first.")
    output.console.print(str(drawn))


@app.command()
def check(spec: Spec, data: Path, target: options.Target) -> None:
    """Compare the classes of a structure with the labels of a table."""
    output = Output(as_json=False, quiet=False)
    specified = _specified(spec, data, target, output)
    output.console.print(
        f"{len(specified.structure.classes)} classes; every label of {data.name} is one of them."
    )


@app.command()
def convert(
    spec: Spec,
    out: Annotated[Path, typer.Option("-o", "--output", help="A .json or .csv file.")],
    data: OfData = None,
    target: OfTarget = None,
) -> None:
    """Write a structure as JSON, or a hierarchy as a table of its levels."""
    output = Output(as_json=False, quiet=False)
    check_can_write(out)
    specified = _specified(spec, data, target, output)
    write_structure(specified.structure, out)
    output.console.print(f"{out}: {len(specified.structure.classes)} classes")


def entropy(
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    features: options.Features = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure the entropy of the labels, and what each feature tells about them."""
    output = Output(as_json=as_json, quiet=quiet)
    question = read_question(data, target, structure, features)
    output.notes(*question.notes)
    relation = question.specified.structure
    if not isinstance(relation, RandomPartition):
        output.notes("A new partition is drawn in every round; the first is measured with.")
        relation = relation.sample(0)
    labels = question.table.labels
    counts = np.bincount(relation.encode(labels), minlength=relation.n_classes)
    whole = float(structured_entropy(counts / counts.sum(), relation))
    told = {
        name: structured_mutual_information_from_labels(column.to_list(), labels, relation)
        for name, column in question.table.features.to_dict().items()
    }
    ranked = dict(sorted(told.items(), key=lambda item: -item[1]))
    output.result(_ranking(target, whole, ranked), {"entropy": whole, "told_by_feature": ranked})


def _ranking(target: str, whole: float, told: dict[str, float]) -> Table:
    table = Table(title=f"Structured entropy of {target}: {whole:.4f} nats")
    table.add_column("feature")
    table.add_column("tells, in nats", justify="right")
    table.add_column("share", justify="right")
    for name, value in told.items():
        share = value / whole if whole > 0 else 0.0
        table.add_row(name, f"{value:.4f}", f"{share:.1%}")
    return table


def _specified(spec: str, data: Path | None, target: str | None, output: Output) -> Specified:
    if (data is None) != (target is None):
        raise StructentError("--data and --target belong together, got one of them")
    if data is None or target is None:
        if not Path(spec).exists():
            raise StructentError(
                f"there is no file {spec}; if that is a short form, give the labels it is for: "
                "--data and --target"
            )
        structure, notes = structure_from_file(spec, ())
        specified = Specified(structure, notes=notes)
    else:
        table = open_table(data, [target, *columns_of(spec)])
        classes = table.labels(target).classes
        specified = parse_structure(spec, classes, table=table, target=target)
    output.notes(*specified.notes)
    return specified
