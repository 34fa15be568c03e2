"""A table on disk (CSV, TSV or Parquet), opened once: its header, its columns and its labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from structent._optional import load_optional
from structent._typing import Label
from structent.errors import StructentError
from structent.structure.labels import label_array

if TYPE_CHECKING:
    import polars as pl


FilePath: TypeAlias = str | os.PathLike[str]

_SEPARATOR = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")

# Alone they may mean something ("NA" may be Namibia), but beside numbers they mean "missing".
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-")


def open_table(path: FilePath, columns: Iterable[str] | None = None) -> Table:
    """Return a table of a CSV, TSV (either may be gzipped) or Parquet file.

    The file is opened and read here, once. Everything else is taken from the table.

    Parameters
    ----------
    path
        The file; its ending tells the format.
    columns
        The columns to load; all if None. Columns that are not loaded take no memory.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> days = open_table(seattle_weather_file(), ["wind", "month"])
    >>> days.header
    ('date', 'precipitation', 'temp_max', 'temp_min', 'wind', 'weather', 'month')
    >>> days.frame.row(0)
    (4.7, 'jan')
    """
    polars, ending = load_polars(), _ending(path)
    with checked_file(path).open("rb") as file:
        try:
            if ending in _PARQUET:
                lazy: pl.LazyFrame = polars.scan_parquet(file)
                header = tuple(lazy.collect_schema().names())
            else:
                header = _header_of_text(file, path, _SEPARATOR[ending])
                _check_names_differ(header, path)
                # None: all rows decide the type, because the first thousand may all look whole.
                lazy = polars.scan_csv(
                    file, separator=_SEPARATOR[ending], infer_schema_length=None,
                    new_columns=list(header),  # polars keeps the doubled quotes of a header
                )  # fmt: skip
            chosen = header if columns is None else _checked_columns(columns, header, path)
            # A selector takes names as they are, where select() reads "^a.*$" as a pattern.
            frame: pl.DataFrame = lazy.select(polars.selectors.by_name(*chosen)).collect()
            if ending in _SEPARATOR:
                frame = _without_spaces_after_separators(frame)
        except (polars.exceptions.PolarsError, OSError) as error:
            raise _unreadable(path, error) from None
    if frame.height == 0:
        raise StructentError(f"a table must have at least one row, got none in {Path(path)}")
    return Table(Path(path), header, frame)


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was opened, with the columns that were loaded.

    Attributes
    ----------
    path
        The file it came from.
    header
        The names of all its columns, loaded or not.
    frame
        The columns that were loaded, (n, columns).
    """

    path: Path
    header: tuple[str, ...]
    frame: pl.DataFrame
    _labels: dict[str, Labels] = field(default_factory=dict, init=False, repr=False)

    def column(self, name: str) -> pl.Series:
        """Return a column that was loaded."""
        self.check_columns([name])
        if name not in self.frame.columns:
            raise StructentError(
                f"column {name!r} of {self.path} was not loaded; name it in open_table(columns=...)"
            )
        return self.frame[name]

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a column that the file does not have, and suggest a similar one."""
        _checked_columns(names, self.header, self.path)

    def labels(self, target: str) -> Labels:
        """Return the labels in a column; they are checked and converted on the first call.

        Examples
        --------
        >>> from structent.datasets import seattle_weather_file
        >>> open_table(seattle_weather_file(), ["weather"]).labels("weather").classes
        ('drizzle', 'fog', 'rain', 'snow', 'sun')
        """
        if target not in self._labels:
            column, notes = label_column(self.column(target))
            missing = missing_rows(target, column.is_null(), "label")
            values = label_values(column.drop_nulls())
            self._labels[target] = Labels(column, values, (*notes, *missing))
        return self._labels[target]


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a table.

    Attributes
    ----------
    column
        Text, whole numbers or bools, null where a row has no label, (rows of the table,).
    values
        One label per row that has one, as str, int or bool, (n,).
    notes
        Sentences that say what was converted and left out.
    """

    column: pl.Series
    values: NDArray[Any]
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[Label, ...]:
        """The different labels, sorted."""
        return tuple(sorted(set(self.values.tolist())))


def label_column(column: pl.Series) -> tuple[pl.Series, tuple[str, ...]]:
    """Return a column of labels as text, whole numbers or bools, with a note on the conversion."""
    polars = load_polars()
    kind, name = column.dtype, column.name
    if kind == polars.String:
        numbers = numbers_from_text(column)
        if numbers is None:
            return column, ()
        column, kind = numbers, numbers.dtype
    if kind == polars.Boolean or kind.is_integer():
        return column, ()
    if kind in (polars.Categorical, polars.Enum):
        return column.cast(polars.String), ()
    if kind.is_float() or kind.is_decimal():
        return _whole_numbers(column.cast(polars.Float64)), (
            f"the labels in {name!r} are whole numbers written as decimals and were read as such",
        )
    raise StructentError(
        f"labels must be text, whole numbers or true and false, got {kind} in column {name!r}; "
        "make such a column first, e.g. the month of a date"
    )


def label_values(column: pl.Series) -> NDArray[Any]:
    """Return labels as an array, at least two of them different."""
    classes = column.unique()
    if len(classes) < 2:
        raise StructentError(
            f"the target must have at least two different labels, got {classes.to_list()} in "
            f"column {column.name!r}"
        )
    return label_array(tuple(column.to_list()))


def missing_rows(column: str, missing: pl.Series, what: str) -> tuple[str, ...]:
    """Return the note on rows that are left out because a value is missing."""
    count = int(missing.sum())
    rows = "1 row" if count == 1 else f"{count} rows"
    return (f"{rows} without a {what} in {column!r} left out",) if count else ()


def numbers_from_text(column: pl.Series) -> pl.Series | None:
    """Return text as numbers if every value is a number or a word for a missing one, else None.

    Text without any such word stays text: numbers written as text are meant as names.

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
    numbers = _as_numbers(text.str.strip_chars())
    return None if numbers is None else numbers.alias(column.name)


def _as_numbers(text: pl.Series) -> pl.Series | None:
    """Return text as whole numbers or as decimals; None if not all of it is, or all missing."""
    polars = load_polars()
    for kind in (polars.Int64, polars.Float64):
        numbers: pl.Series = text.cast(kind, strict=False)
        if numbers.null_count() == text.null_count() < len(text):
            return numbers
    return None


def checked_file(path: FilePath) -> Path:
    """Return the path of a file that exists and is not empty."""
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
        raise StructentError(f"{file} must have some content, got an empty file")
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
        "file to match its content, or convert it"
    )


def _header_of_text(file: IO[bytes], path: FilePath, separator: str) -> tuple[str, ...]:
    """Return the first row unchanged: polars would rename repeated columns."""
    row = load_polars().read_csv(
        file, separator=separator, has_header=False, n_rows=1, infer_schema=False
    )
    file.seek(0)
    names = tuple(name or "" for name in row.row(0))
    if len(names) > 1 and all(name.startswith(" ") for name in names[1:]):
        names = tuple(name.strip(" ") for name in names)
    if any("\0" in name for name in names):
        raise StructentError(f"{Path(path)} must be a table as text, got bytes that are not text")
    other = next((mark for mark in ";\t|," if mark != separator and mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise StructentError(
            f"{Path(path)} must have its columns separated by {separator!r}, got one column "
            f"{names[0][:60]!r}; its columns seem to be separated by {other!r}"
        )
    return names


def _without_spaces_after_separators(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table without the spaces that follow separators, as in "1, 2".

    Polars reads " 2" as text. If every value of a column begins with a space, the space is not
    part of the values.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"a": [" 1", " 2"], "b": [" x", " y"], "c": [" x", "y"]})
    >>> _without_spaces_after_separators(table).row(0)
    (1, 'x', ' x')
    """
    polars, made = load_polars(), []
    for column in frame.select(polars.selectors.string()):
        if column.null_count() < len(column) and column.str.starts_with(" ").all():
            text = column.str.strip_chars(" ")
            numbers = _as_numbers(text)
            made.append(text if numbers is None else numbers)
    return frame.with_columns(made)


def _check_names_differ(header: Sequence[str], path: FilePath) -> None:
    repeated = [repr(name) for name, times in Counter(header).items() if times > 1]
    if repeated:
        raise StructentError(
            f"the columns of a table must have different names, got {', '.join(repeated[:5])} more "
            f"than once in {Path(path)}"
        )


def _checked_columns(
    columns: Iterable[str], header: Sequence[str], path: FilePath
) -> tuple[str, ...]:
    """Return columns, each once, if the table has them, or suggest a similar one."""
    wanted = tuple(dict.fromkeys(columns))
    for column in wanted:
        if column not in header:
            near = [repr(name) for name in get_close_matches(column, header, n=3)]
            shown = ", ".join(map(repr, header[:10])) + (", ..." if len(header) > 10 else "")
            advice = f"did you mean {' or '.join(near)}?" if near else f"it has {shown}"
            raise StructentError(f"{Path(path)} has no column {column!r}; {advice}")
    return wanted


def _unreadable(path: FilePath, error: Exception) -> StructentError:
    reason = str(error).strip().split("\n")[0]
    return StructentError(f"{Path(path)} must be a table, got one that cannot be read: {reason}")


def _whole_numbers(column: pl.Series) -> pl.Series:
    polars = load_polars()
    column = column.fill_nan(None)
    # Beyond 2^53, float64 cannot represent every whole number.
    is_whole = (column == column.round()) & (column.abs() <= 2.0**53)
    if not is_whole.all():
        example = column.filter(~is_whole)[0]
        raise StructentError(
            f"labels must be classes, got decimals such as {example:g} in column {column.name!r}; "
            "predicting numbers is regression; put them into bins to make an ordinal target"
        )
    return column.cast(polars.Int64)
