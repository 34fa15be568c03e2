"""Small tables that describe a structure: CSV or TSV, every cell as text."""

import csv
import io
from collections.abc import Sequence

from structent._typing import Label
from structent.errors import StructureError
from structent.specs.texts import read_text
from structent.tables.reading import FilePath


def read_cells(path: FilePath) -> list[list[str]]:
    """Return the rows of a CSV file, or of a TSV file by its ending; all have the same length."""
    delimiter = "\t" if str(path).lower().endswith(".tsv") else ","
    try:
        lines = csv.reader(io.StringIO(read_text(path)), delimiter=delimiter, strict=True)
        rows = [row for row in lines if any(row)]
    except csv.Error as error:
        raise StructureError(f"{path} must be a table, got one with {error}") from None
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise StructureError(
            f"the rows of {path} must have the same number of columns, got {sorted(lengths)}"
        )
    return rows


def has_header(rows: Sequence[Sequence[str]], labels: Sequence[Label]) -> bool:
    """Whether the first row names columns: none of its cells is a label or occurs again.

    Examples
    --------
    >>> has_header([["from", "to"], ["oak", "elm"]], ["oak", "elm"])
    True
    >>> has_header([["oak", "elm"], ["elm", "fir"]], ["oak", "elm", "fir"])
    False
    """
    names = {str(label) for label in labels}
    names.update(cell for row in rows[1:] for cell in row)
    return not names & set(rows[0])
