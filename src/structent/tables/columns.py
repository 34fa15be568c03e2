"""Columns of a table: of what kind each is, and the features that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from structent.errors import StructentError
from structent.tables.dates import dates_of, numbers_of_dates
from structent.tables.numbers import numbers_from_text
from structent.tables.reading import load_polars

if TYPE_CHECKING:
    import polars as pl

Kind: TypeAlias = Literal["number", "date", "category"]

_MOST_CATEGORIES = 50
_ROWS_OF_A_CATEGORY = 5


@dataclass(frozen=True)
class FeatureColumn:
    """A column of a table, and what is made of it.

    Attributes
    ----------
    name
        Its name in the table.
    kind
        Numbers (or true and false) and categories stay one feature; dates become a few.
    features
        The names of the features made of it.
    """

    name: str
    kind: Kind
    features: tuple[str, ...]


def kind_of(column: pl.Series) -> Kind | None:
    """Return the kind of a column, or None if no feature can be made of it.

    Text is a category where it repeats itself: at most 50 values, each in five rows on average.

    Examples
    --------
    >>> import polars as pl
    >>> kind_of(pl.Series([1.5, 2.0])), kind_of(pl.Series(["2012-01-01", "2012-01-02"]))
    ('number', 'date')
    >>> kind_of(pl.Series(["red", "blue"] * 5)), kind_of(pl.Series(["a", "b"]))
    ('category', None)
    """
    polars = load_polars()
    if column.dtype.is_numeric() or column.dtype == polars.Boolean:
        return "number"
    if column.dtype == polars.String and numbers_from_text(column) is not None:
        return "number"
    if dates_of(column) is not None:
        return "date"
    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        n_values = column.drop_nulls().n_unique()
        if n_values <= min(_MOST_CATEGORIES, len(column) / _ROWS_OF_A_CATEGORY):
            return "category"
    return None


def features_of(column: pl.Series, kind: Kind) -> list[pl.Series]:
    """Return the features that a column becomes."""
    polars = load_polars()
    if column.null_count() == len(column):  # of no type in particular, or of the wrong one
        column = column.cast({"number": polars.Float64, "date": polars.Date}.get(kind, str))
    if kind == "number":
        return [_numbers(column)]
    if kind == "category":
        return [column.cast(polars.String).cast(polars.Categorical)]
    dates = dates_of(column)
    if dates is None:
        raise StructentError(
            f"column {column.name!r} must hold dates such as 2012-02-29, got {_example(column)}"
        )
    return numbers_of_dates(dates)


def why_refused(column: pl.Series) -> str:
    """Return why no feature can be made of a column."""
    polars = load_polars()
    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        return f"{column.name!r} (text with {column.n_unique()} values in {len(column)} rows)"
    return f"{column.name!r} ({column.dtype})"


def _numbers(column: pl.Series) -> pl.Series:
    polars = load_polars()
    if column.dtype == polars.Boolean:
        return column
    if column.dtype == polars.String:
        numbers = numbers_from_text(column)
        if numbers is None:
            raise StructentError(
                f"column {column.name!r} must hold numbers, got {_example(column)}"
            )
        column = numbers
    if not column.dtype.is_numeric():
        raise StructentError(f"column {column.name!r} must hold numbers, got {column.dtype}")
    if column.dtype.is_decimal():
        column = column.cast(polars.Float64)
    if column.dtype.is_float() and column.is_infinite().any():
        raise StructentError(
            f"column {column.name!r} must hold finite numbers, got infinity; leave it empty where "
            "nothing is known"
        )
    return column


def _example(column: pl.Series) -> str:
    text = column.drop_nulls().cast(str)
    return f"{column.dtype}" + (f" such as {text[0]!r}" if len(text) else "")
