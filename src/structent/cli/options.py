"""The options that commands share, so that they are called and explained alike."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
Seed: TypeAlias = Annotated[int, typer.Option(help="Seeds all that is drawn.")]
Jobs: TypeAlias = Annotated[
    int | None, typer.Option(help="How many processors to use; all if not given.")
]
AllowBlocks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-blocks",
        help="Labels may be names of blocks, too, where no more is known of a row; needs a "
        "structure file that names them.",
    ),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
Save: TypeAlias = Annotated[Path | None, typer.Option(help="Where to keep the model.")]
Model: TypeAlias = Annotated[Path, typer.Argument(help="A model that structent saved.")]


def separated(columns: str | None) -> list[str]:
    """Return the columns of a list that is separated by commas."""
    return [] if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
