"""``structent structure`` and ``structent entropy``: look at structures, and measure with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Group as Lines
from rich.table import Table

from structent._typing import Label
from structent.cli import options
from structent.cli.options import Columns, read_question
from structent.cli.output import Output, caution_lines, check_outputs
from structent.entropy import structured_entropy, structured_mutual_information_from_labels
from structent.errors import StructentError
from structent.inputs import (
    Specified,
    columns_of,
    files_of,
    has_classes_of_the_data,
    open_table,
    parse_structure,
    with_order,
    write_structure,
)
from structent.structure import RandomPartition
from structent.structure.labels import as_typed

Spec = Annotated[
    str,
    typer.Argument(
        help="A short form, such as circular:width=3, a name, such as months, a structure file, or "
        "a model."
    ),
]
OfData = Annotated[Path | None, typer.Option("--data", help="The table with the labels.")]
OfTarget = Annotated[str | None, typer.Option("--target", help="Its column of labels.")]
OfClasses = Annotated[
    str | None,
    typer.Option("--classes", help="The classes in their order, separated by commas."),
]

app = typer.Typer(
    help="Look at structures, check and convert them.", no_args_is_help=True, add_completion=False
)


@app.command()
def show(
    spec: Spec, data: OfData = None, target: OfTarget = None, classes: OfClasses = None
) -> None:
    """Print the partitions of a structure, their weights and their blocks."""
    output = Output(as_json=False, quiet=False)
    specified = _specified(spec, data, target, classes, output)
    structure = specified.structure
    drawn = structure if isinstance(structure, RandomPartition) else structure.sample(0)
    if drawn is not structure:
        output.notes("A new partition is drawn in every round; this is the first.")
    output.console.print(str(drawn))


@app.command()
def check(spec: Spec, data: Path, target: options.Target) -> None:
    """Compare the classes of a structure with the labels of a table."""
    output = Output(as_json=False, quiet=False)
    specified = _specified(spec, data, target, None, output)
    output.console.print(
        f"{len(specified.structure.classes)} classes; every label of {data.name} is one of them."
    )


@app.command()
def convert(
    spec: Spec,
    out: Annotated[Path, typer.Option("-o", "--output", help="A .json, .csv or .nwk file.")],
    data: OfData = None,
    target: OfTarget = None,
    classes: OfClasses = None,
) -> None:
    """Write a structure as JSON, or a hierarchy as a table of levels or as Newick."""
    output = Output(as_json=False, quiet=False)
    check_outputs({"--output": out}, [*files_of(spec), *([] if data is None else [data])])
    specified = _specified(spec, data, target, classes, output)
    write_structure(specified.structure, out)
    output.console.print(f"{out}: {len(specified.structure.classes)} classes")


def entropy(  # noqa: PLR0913  a command has many options
    data: options.Data,
    *,
    target: options.Target,
    structure: options.Structure,
    features: options.Features = None,
    keep: options.Keep = None,
    drop: options.Drop = None,
    target_is_class: options.TargetIsClass = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure the entropy of the labels, and what each feature tells about them."""
    output = Output(as_json=as_json, quiet=quiet)
    columns = Columns(features, keep, drop)
    question = read_question(data, target, structure, columns, target_is_class=target_is_class)
    output.notes(*question.notes)
    relation = question.specified.structure
    if not isinstance(relation, RandomPartition):
        output.notes("A new partition is drawn in every round; this is measured with the first.")
        relation = relation.sample(0)
    labels = question.table.labels
    counts = np.bincount(relation.encode(labels), minlength=relation.n_classes)
    whole = float(structured_entropy(counts / counts.sum(), relation))
    told = {
        name: structured_mutual_information_from_labels(column.to_list(), labels, relation)
        for name, column in question.table.features.to_dict().items()
    }
    ranked = dict(sorted(told.items(), key=lambda item: -item[1]))
    output.result(
        Lines(_ranking(target, whole, ranked), *caution_lines(question.cautions)),
        {"entropy": whole, "told_by_feature": ranked, **question.as_data()},
    )


def _ranking(target: str, whole: float, told: dict[str, float]) -> Table:
    table = Table(title=f"Structured entropy of {target}: {whole:.4f} nats")
    table.add_column("feature")
    table.add_column("tells, in nats", justify="right")
    table.add_column("share", justify="right")
    for name, value in told.items():
        share = value / whole if whole > 0 else 0.0
        table.add_row(name, f"{value:.4f}", f"{share:.1%}")
    return table


def _specified(
    spec: str, data: Path | None, target: str | None, classes: str | None, output: Output
) -> Specified:
    """Return the structure of the labels in a table, of the classes given, or by itself."""
    if (data is None) != (target is None):
        raise StructentError("--data and --target belong together, got one of them")
    if classes is not None and data is not None:
        raise StructentError("the classes come from --classes or from --data, got both")
    if data is not None and target is not None:
        table = open_table(data, [target, *columns_of(spec)])
        labels = table.labels(target).classes
        specified = parse_structure(spec, labels, table=table, target=target)
    elif classes is not None:
        names = _typed(options.separated(classes))
        specified = parse_structure(with_order(spec, names), names)
    elif has_classes_of_the_data(spec):
        raise StructentError(
            f"{spec} needs to know the classes, got none; list them, as in --classes a,b,c, or "
            "name a table that has them with --data and --target"
        )
    else:
        specified = parse_structure(spec)
    output.notes(*specified.notes)
    return specified


def _typed(names: list[str]) -> list[Label]:
    """Return classes as whole numbers if all of them are, as when a table is read."""
    return as_typed(names, [0]) if names else []
