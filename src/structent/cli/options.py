"""The options that commands share, and the table and structure that most of them name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from structent._checks import checked_integer
from structent.errors import StructentError
from structent.inputs import (
    ColumnRemark,
    LabelledTable,
    Specified,
    columns_of,
    features_and_labels,
    has_classes_of_the_data,
    open_table,
    parse_structure,
)
from structent.inputs.features import with_option

MOST_NUMBERS = 100  # different whole numbers; more are classes only if the user says so
_MOST_REMARKS = 8


def whole_number(
    at_least: int, at_most: int
) -> Callable[[typer.CallbackParam, int | None], int | None]:
    """Return a callback that refuses a number out of bounds and names the option."""

    def checked(option: typer.CallbackParam, value: int | None) -> int | None:
        if value is None:
            return None
        return checked_integer(value, option.opts[0], at_least=at_least, at_most=at_most)

    return checked


def one_of(*values: str) -> Callable[[typer.CallbackParam, str], str]:
    """Return a callback that refuses any other word and names the option."""

    def checked(option: typer.CallbackParam, value: str) -> str:
        if value not in values:
            raise StructentError(
                f"{option.opts[0]} must be {', '.join(values[:-1])} or {values[-1]}, got {value!r}"
            )
        return value

    return checked


Data: TypeAlias = Annotated[
    Path, typer.Argument(help="A table: CSV, TSV or Parquet; CSV and TSV may be gzipped.")
]
Target: TypeAlias = Annotated[str, typer.Option(help="The label column.")]
_SHORT_FORMS = (
    "How the labels are related: circular:width=3, ordinal, hierarchy:columns=A,B, "
    "graph:edges.csv,blocks=10, a name (months, cifar100, us-states, california-counties), "
)
Structure: TypeAlias = Annotated[
    str,
    typer.Option(help=f"{_SHORT_FORMS}or a file (JSON, YAML, CSV, Newick, nodes.dmp, a model)."),
]
ComparedStructure: TypeAlias = Annotated[
    str,
    typer.Option(
        "--structure",
        help=f"{_SHORT_FORMS}a file (JSON, YAML, CSV, Newick, nodes.dmp, a model), or learn, which "
        "learns one from the training rows.",
    ),
]
Features: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The feature columns, separated by commas; by default all others."),
]
Keep: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Learn from this column even if it gives the label away; may be repeated."),
]
Drop: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Do not learn from this column; may be repeated.")
]
Group: TypeAlias = Annotated[
    str | None, typer.Option(help="Rows with the same value in this column share a fold.")
]
Repeats: TypeAlias = Annotated[
    int,
    typer.Option(
        help="Repeats of the cross-validation with other folds.", callback=whole_number(1, 1000)
    ),
]
Seed: TypeAlias = Annotated[
    int, typer.Option(help="Seed of all random choices.", callback=whole_number(0, 2**32 - 1))
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="How many processors to use; by default all.", callback=whole_number(1, 1024)
    ),
]
TargetIsClass: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--target-is-class",
        help=f"Each number is a class, even if there are more than {MOST_NUMBERS}.",
    ),
]
AllowBlocks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-blocks",
        help="Labels may also be names of blocks, for rows whose class is unknown; needs a "
        "structure file with named blocks.",
    ),
]
ModelKind: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        help="boosting, linear, or auto: the one that is better without structure.",
        callback=one_of("boosting", "linear", "auto"),
    ),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Save: TypeAlias = Annotated[Path | None, typer.Option(help="Save the model to this file.")]
Model: TypeAlias = Annotated[Path, typer.Argument(help="A model that structent saved.")]


@dataclass(frozen=True)
class Columns:
    """Which columns to learn from, as options name them."""

    features: str | None = None
    keep: Sequence[str] | None = None
    drop: Sequence[str] | None = None

    @property
    def feature_names(self) -> list[str] | None:
        """The columns to learn from, None for all."""
        if self.features is None:
            return None
        names = separated(self.features)
        if not names:
            raise StructentError(
                "--features must name columns, separated by commas, got "
                f"{self.features!r}; leave it out for all columns"
            )
        return names


@dataclass(frozen=True, eq=False)
class Question:
    """A table ready to learn from, and the structure of its labels."""

    table: LabelledTable
    specified: Specified
    allow_blocks: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table and the structure, one sentence each."""
        return (*self.table.notes, *self.specified.notes)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What belongs beside every result: columns that give the label away, or nearly do."""
        return (
            *_remarks("Left out", self.table.left_out, "To keep {them}: ", "--keep"),
            *_remarks("Suspicious", self.table.suspicious, "To leave {them} out: ", "--drop"),
        )

    def as_data(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "left_out": [asdict(remark) for remark in self.table.left_out],
            "suspicious": [asdict(remark) for remark in self.table.suspicious],
        }


def _remarks(
    title: str, remarks: Sequence[ColumnRemark], advice: str, option: str
) -> tuple[str, ...]:
    """Return a line for each column, and one that says which option changes that."""
    if not remarks:
        return ()
    shown = remarks[:_MOST_REMARKS]
    lines = [f"{title}: {remark.column!r} ({remark.reason})" for remark in shown]
    if len(remarks) > len(shown):
        lines.append(f"{title}: {len(remarks) - len(shown)} more columns, which --json lists")
    them = "it" if len(remarks) == 1 else "them"
    options = with_option(option, [remark.column for remark in shown])
    return (*lines, advice.format(them=them) + options)


def read_question(
    data: Path,
    target: str,
    structure: str,
    columns: Columns,
    group: str | None = None,
    *,
    target_is_class: bool = False,
    allow_blocks: bool = False,
) -> Question:
    """Return the table and the structure that a user names; the table is opened once."""
    chosen = columns.feature_names
    needed = None  # all columns, since all may be features
    if chosen is not None:
        needed = [target, *chosen, *columns_of(structure), *([] if group is None else [group])]
    table = open_table(data, needed)
    if not target_is_class and has_classes_of_the_data(structure):
        _check_are_classes(table.labels(target).classes, target)
    specified = parse_structure(
        structure,
        table.labels(target).classes,
        table=table,
        target=target,
        allow_blocks=allow_blocks,
    )
    labelled = features_and_labels(
        table, target, features=chosen, group=group, excluded=specified.columns_used,
        keep=columns.keep or (), drop=columns.drop or (),
    )  # fmt: skip
    return Question(labelled, specified, allow_blocks)


def _check_are_classes(labels: Sequence[Any], target: str) -> None:
    """Refuse a target with so many different whole numbers that they are probably amounts."""
    if len(labels) > MOST_NUMBERS and type(labels[0]) is int:
        raise StructentError(
            f"the target must be classes, got {len(labels):,} different whole numbers in "
            f"{target!r}, from {labels[0]} to {labels[-1]}, which look like amounts; put them into "
            "bins in a new column and make that the target, or add --target-is-class if every "
            "number is a class"
        )


def check_folds(folds: int, *, at_least: int, table: LabelledTable) -> None:
    """Refuse a number of folds that the rows, or their groups, cannot be dealt into."""
    what, units = ("rows", table.labels) if table.groups is None else ("groups", set(table.groups))
    checked_integer(
        folds, "--folds", at_least=at_least, at_most=len(units), reason=f", the number of {what}"
    )


def separated(text: str) -> list[str]:
    """Return the parts of a list separated by commas; parts that contain a comma are quoted.

    Examples
    --------
    >>> separated('rain, "leaf, long"')
    ['rain', 'leaf, long']
    """
    try:
        rows = list(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:
        raise StructentError(
            f"columns must be separated by commas, got {text!r}: {error}; put a name that has "
            "commas or line breaks in double quotes"
        ) from None
    return [part.strip() for row in rows for part in row if part.strip()]
