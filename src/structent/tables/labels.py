"""The target column: its values as labels, those that are missing left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from structent._typing import Label
from structent.errors import StructentError
from structent.structure.labels import label_array
from structent.tables.numbers import numbers_from_text
from structent.tables.reading import FilePath, load_polars, read_table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a table.

    Attributes
    ----------
    values
        One label a row, as str, int or bool; rows without one are left out, (n,).
    notes
        Sentences that say what was converted and left out.
    """

    values: NDArray[Any]
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[Label, ...]:
        """The different labels, sorted."""
        return tuple(sorted(set(self.values.tolist())))


def read_labels(path: FilePath, target: str) -> Labels:
    """Return the labels of a table, reading nothing but their column.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> read_labels(seattle_weather_file(), "weather").classes
    ('drizzle', 'fog', 'rain', 'snow', 'sun')
    """
    column, notes = label_column(read_table(path, [target])[target])
    present = column.is_not_null()
    return Labels(
        label_values(column.filter(present)), (*notes, *missing_rows(target, ~present, "label"))
    )


def label_column(column: pl.Series) -> tuple[pl.Series, tuple[str, ...]]:
    """Return a target column as text, whole numbers or bools, with what was converted."""
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
        "make a column of them, e.g. the month of a date"
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
    """Return the note on rows that are left out because something is missing there."""
    count = int(missing.sum())
    rows = "1 row" if count == 1 else f"{count} rows"
    return (f"{rows} without a {what} in {column!r} left out",) if count else ()


def _whole_numbers(column: pl.Series) -> pl.Series:
    polars = load_polars()
    column = column.fill_nan(None)
    # Beyond 2^53 decimals are no longer whole numbers of their own.
    is_whole = (column == column.round()) & (column.abs() <= 2.0**53)
    if not is_whole.all():
        example = column.filter(~is_whole)[0]
        raise StructentError(
            f"labels must be classes, got decimals such as {example:g} in column {column.name!r}; "
            "predicting numbers is regression: put them into bins, and these are an ordinal target"
        )
    return column.cast(polars.Int64)
