"""Dates: how they are recognised, what numbers they become, and when they give the label away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from structent.tables.reading import load_polars

if TYPE_CHECKING:
    import polars as pl

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
