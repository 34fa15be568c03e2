"""Columns of a table: of what kind each is, and the features that it becomes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from structent.errors import StructentError
from structent.inputs.reading import load_polars, numbers_from_text

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


# The year first: 03/04/2012 is a day in March or in April, and one must not guess.
_DAYS = ("%Y-%m-%d", "%Y/%m/%d")
_TIMES = tuple(
    f"%Y-%m-%d{between}{time}"
    for between in ("T", " ")
    for time in ("%H:%M", "%H:%M:%S%.f", "%H:%M:%S%.fZ")
)
_DAYS_OF_A_YEAR = 365.25
_SECONDS_OF_A_DAY = 86_400


def dates_of(column: pl.Series) -> pl.Series | None:
    """Return a column as dates if all of it is dates, typed or as ISO text, else None.

    Examples
    --------
    >>> import polars as pl
    >>> dates_of(pl.Series(["2012-02-28", "2012-02-29"]))[1]
    datetime.date(2012, 2, 29)
    >>> dates_of(pl.Series(["2012-02-28", "soon"])) is None
    True
    """
    polars = load_polars()
    if column.dtype in (polars.Date, polars.Datetime):
        return column
    if column.dtype != polars.String or column.null_count() == len(column):
        return None
    for pattern in (*_DAYS, *_TIMES):
        parse = column.str.to_date if pattern in _DAYS else column.str.to_datetime
        dates: pl.Series = parse(pattern, strict=False)
        if dates.null_count() == column.null_count():
            return dates
    return None


def numbers_of_dates(dates: pl.Series) -> list[pl.Series]:
    """Return the year and the place in the year, on a circle; with a time also that in the day.

    On a circle the last day of December is beside the first of January, as it is in nature.

    Examples
    --------
    >>> import polars as pl
    >>> for number in numbers_of_dates(dates_of(pl.Series("sown", ["2012-01-01"]))):
    ...     print(number.name, number[0])
    sown year 2012
    sown day sine 0.0
    sown day cosine 1.0
    """
    name = dates.name
    numbers = [dates.dt.year().alias(f"{name} year")]
    numbers += _circle(dates.dt.ordinal_day() - 1, _DAYS_OF_A_YEAR, f"{name} day")
    if dates.dtype == load_polars().Datetime:
        seconds = dates.dt.hour().cast(int) * 3600 + dates.dt.minute().cast(int) * 60
        numbers += _circle(seconds, _SECONDS_OF_A_DAY, f"{name} hour")
    return numbers


def part_that_determines(labels: pl.Series, dates: pl.Series) -> str | None:
    """Return the part of the dates, such as the month, of which the labels are a function.

    Examples
    --------
    >>> import polars as pl
    >>> days = dates_of(pl.Series(["2012-01-01", "2012-06-01", "2013-01-09", "2013-06-09"]))
    >>> part_that_determines(pl.Series(["cold", "warm", "cold", "warm"]), days)
    'month'
    """
    parts = {
        "year": dates.dt.year(),
        "month": dates.dt.month(),
        "weekday": dates.dt.weekday(),
        "day of the year": dates.dt.month().cast(int) * 100 + dates.dt.day(),
    }
    if dates.dtype == load_polars().Datetime:
        parts["hour"] = dates.dt.hour()
    return next((name for name, part in parts.items() if determines(part, labels)), None)


def determines(column: pl.Series, other: pl.Series) -> bool:
    """Whether each value of a column goes with one value of another, and not by chance alone.

    Values that occur once determine anything: there must be two rows a value on average.
    """
    polars = load_polars()
    n_values = column.n_unique()
    if not 1 < n_values <= len(column) / 2:
        return False
    pairs = polars.DataFrame([column.alias("column"), other.alias("other")])
    return bool(pairs.n_unique() == n_values)


def _circle(place: pl.Series, length: float, name: str) -> list[pl.Series]:
    angle = place.cast(float) * (2.0 * math.pi / length)
    return [angle.sin().alias(f"{name} sine"), angle.cos().alias(f"{name} cosine")]
