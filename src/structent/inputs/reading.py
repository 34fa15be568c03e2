"""Tables on disk: CSV, TSV and Parquet, of which only the needed columns are loaded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from structent._optional import load_optional
from structent.errors import StructentError

if TYPE_CHECKING:
    import polars as pl


FilePath: TypeAlias = str | os.PathLike[str]

_SEPARATOR = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")


def read_table(path: FilePath, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table of a CSV, TSV (either may be gzipped) or Parquet file.

    Parameters
    ----------
    path
        The file; its ending tells the format.
    columns
        The columns to load, in the order wanted; all if None.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> read_table(seattle_weather_file(), ["wind", "month"]).row(0)
    (4.7, 'jan')
    """
    names = column_names(path)
    chosen = names if columns is None else checked_columns(columns, names, path)
    polars = load_polars()
    try:
        # A selector takes names as they are, where select() reads "^a.*$" as a pattern.
        table: pl.DataFrame = _scan(path).select(polars.selectors.by_name(*chosen)).collect()
    except (polars.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None
    if table.height == 0:
        raise StructentError(f"a table must have at least one row, got none in {Path(path)}")
    return table


def column_names(path: FilePath) -> tuple[str, ...]:
    """Return the names of a table's columns, all different.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> column_names(seattle_weather_file())
    ('date', 'precipitation', 'temp_max', 'temp_min', 'wind', 'weather', 'month')
    """
    polars = load_polars()
    ending = _ending(path)
    checked_file(path)
    try:
        names = _scan(path).collect_schema().names() if ending in _PARQUET else _header(path)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise _unreadable(path, error) from None
    repeated = [repr(name) for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise StructentError(
            f"the columns of a table must have different names, got {', '.join(repeated[:5])} more "
            f"than once in {Path(path)}"
        )
    return tuple(names)


def checked_columns(columns: Iterable[str], names: Sequence[str], path: FilePath) -> list[str]:
    """Return columns if the table has each of them, else say which one is near."""
    wanted = list(columns)
    for column in wanted:
        if column not in names:
            near = [repr(name) for name in get_close_matches(column, names, n=3)]
            shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            advice = f"did you mean {' or '.join(near)}?" if near else f"it has {shown}"
            raise StructentError(f"{Path(path)} has no column {column!r}; {advice}")
    return wanted


def checked_file(path: FilePath) -> Path:
    """Return the path of a file that is there and has something in it."""
    file = Path(path)
    if file.is_dir():
        raise StructentError(f"expected a file, got the folder {file}; name a file in it")
    if not file.exists():
        folder = file.parent
        beside = [other.name for other in folder.iterdir()] if folder.is_dir() else []
        near = [repr(name) for name in get_close_matches(file.name, beside, n=3)]
        advice = f"; did you mean {' or '.join(near)}?" if near else ""
        raise StructentError(f"there is no file {file}{advice}")
    if not os.access(file, os.R_OK):
        raise StructentError(f"{file} must be readable, got a file without permission to read it")
    if file.stat().st_size == 0:
        raise StructentError(f"{file} must hold something, got an empty file")
    return file


def load_polars() -> ModuleType:
    """Return polars, or say which extra brings it."""
    return load_optional("polars", extra="cli", purpose="Reading tables")


def _ending(path: FilePath) -> str:
    name = Path(path).name.lower()
    for ending in (*_SEPARATOR, *_PARQUET):
        if name.endswith(ending):
            return ending
    raise StructentError(
        f"a table must end in {', '.join((*_SEPARATOR, *_PARQUET))}, got {Path(path)}; rename the "
        "file by what it holds, or convert it"
    )


def _scan(path: FilePath) -> pl.LazyFrame:
    polars, ending = load_polars(), _ending(path)
    if ending in _PARQUET:
        lazy: pl.LazyFrame = polars.scan_parquet(path, glob=False)
    else:
        # The type of a column is that of all its rows: the first thousand may all look whole.
        lazy = polars.scan_csv(
            path, separator=_SEPARATOR[ending], infer_schema_length=None, glob=False
        )
    return lazy


def _header(path: FilePath) -> list[str]:
    """Return the first row as it stands: polars itself would rename columns that repeat."""
    polars, separator = load_polars(), _SEPARATOR[_ending(path)]
    row = polars.read_csv(
        path, separator=separator, has_header=False, n_rows=1, infer_schema=False, glob=False
    ).row(0)
    names = [name or "" for name in row]
    if any("\0" in name for name in names):
        raise StructentError(f"{Path(path)} must be a table as text, got bytes that are no text")
    other = next((mark for mark in ";\t|," if mark != separator and mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise StructentError(
            f"{Path(path)} must have its columns separated by {separator!r}, got one column "
            f"{names[0][:60]!r}; its columns seem to be separated by {other!r}"
        )
    return names


def _unreadable(path: FilePath, error: Exception) -> StructentError:
    reason = str(error).strip().split("\n")[0]
    return StructentError(f"{Path(path)} must be a table, got one that cannot be read: {reason}")


# Not missing by themselves ("NA" may be Namibia), but beside numbers they can be nothing else.
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-")


def numbers_from_text(column: pl.Series) -> pl.Series | None:
    """Return text as numbers if every value is a number or a word for a missing one, else None.

    Text without any such word stays text: whoever wrote numbers as text meant names.

    Examples
    --------
    >>> import polars as pl
    >>> numbers_from_text(pl.Series(["1", "NA", "2"])).to_list()
    [1, None, 2]
    >>> numbers_from_text(pl.Series(["NA", "DE"])) is None
    True
    """
    polars = load_polars()
    is_missing = column.is_in(_MISSING)
    if not is_missing.any():
        return None
    text = polars.select(polars.when(is_missing).then(None).otherwise(column)).to_series()
    for kind in (polars.Int64, polars.Float64):
        numbers: pl.Series = text.str.strip_chars().cast(kind, strict=False)
        if numbers.null_count() == text.null_count() < len(text):
            return numbers.alias(column.name)
    return None
