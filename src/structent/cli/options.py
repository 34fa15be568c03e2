"""The options that commands share, and the table and structure that most of them name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from structent._checks import checked_integer
from structent.errors import StructentError
from structent.inputs import (
    LabelledTable,
    Specified,
    columns_of,
    features_and_labels,
    open_table,
    parse_structure,
)


def whole_number(
    at_least: int, at_most: int
) -> Callable[[typer.CallbackParam, int | None], int | None]:
    """Return what refuses a number out of bounds, by the name of its option."""

    def checked(option: typer.CallbackParam, value: int | None) -> int | None:
        if value is None:
            return None
        return checked_integer(value, option.opts[0], at_least=at_least, at_most=at_most)

    return checked


Data: TypeAlias = Annotated[
    Path, typer.Argument(help="A table: CSV, TSV or Parquet; CSV and TSV may be gzipped.")
]
Target: TypeAlias = Annotated[str, typer.Option(help="The column of the labels.")]
_SHORT_FORMS = (
    "How the labels are related: circular:width=3, ordinal, hierarchy:columns=A,B, "
    "graph:edges.csv,blocks=10, "
)
Structure: TypeAlias = Annotated[
    str, typer.Option(help=f"{_SHORT_FORMS}or a file (JSON, YAML, CSV, Newick).")
]
ComparedStructure: TypeAlias = Annotated[
    str,
    typer.Option(
        "--structure",
        help=f"{_SHORT_FORMS}a file (JSON, YAML, CSV, Newick), or learn: from the training rows.",
    ),
]
Features: TypeAlias = Annotated[
    str | None, typer.Option(help="The columns to learn from, separated by commas; else all.")
]
Group: TypeAlias = Annotated[
    str | None, typer.Option(help="A column: rows with the same value belong together.")
]
Folds: TypeAlias = Annotated[int, typer.Option(help="Folds of the cross-validation.")]
Repeats: TypeAlias = Annotated[
    int,
    typer.Option(help="How often to repeat it, with other folds.", callback=whole_number(1, 1000)),
]
Seed: TypeAlias = Annotated[
    int, typer.Option(help="Seeds all that is drawn.", callback=whole_number(0, 2**32 - 1))
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="How many processors to use; all if not given.", callback=whole_number(1, 1024)
    ),
]
AllowBlocks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-blocks",
        help="A label may also name a block, where the class of a row is not known; needs a "
        "structure file that names the blocks.",
    ),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
Save: TypeAlias = Annotated[Path | None, typer.Option(help="Where to keep the model.")]
Model: TypeAlias = Annotated[Path, typer.Argument(help="A model that structent saved.")]


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


def read_question(
    data: Path,
    target: str,
    structure: str,
    features: str | None = None,
    group: str | None = None,
    *,
    allow_blocks: bool = False,
) -> Question:
    """Return the table and the structure that a user names; the table is opened once."""
    chosen = _feature_names(features)
    needed = None  # all columns, since all may be features
    if chosen is not None:
        needed = [target, *chosen, *columns_of(structure), *([] if group is None else [group])]
    table = open_table(data, needed)
    specified = parse_structure(
        structure,
        table.labels(target).classes,
        table=table,
        target=target,
        allow_blocks=allow_blocks,
    )
    labelled = features_and_labels(
        table, target, features=chosen, group=group, excluded=specified.columns_used
    )
    return Question(labelled, specified, allow_blocks)


def _feature_names(features: str | None) -> list[str] | None:
    """Return the columns to learn from, None for all."""
    if features is None:
        return None
    names = separated(features)
    if not names:
        raise StructentError(
            "--features must name columns, separated by commas, got "
            f"{features!r}; leave it out for all columns"
        )
    return names


def check_folds(folds: int, *, at_least: int, n_rows: int) -> None:
    """Refuse a number of folds that the rows cannot be dealt into."""
    checked_integer(
        folds, "--folds", at_least=at_least, at_most=n_rows, reason=", the number of rows"
    )


def separated(text: str) -> list[str]:
    """Return the parts of a list that is separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
