"""Features from the columns of a table: numbers, dates and categories, and notes on each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import NDArray

from structent.errors import StructentError
from structent.inputs.table import (
    Labels,
    Table,
    label_values,
    load_polars,
    missing_rows,
    numbers_from_text,
)

if TYPE_CHECKING:
    import polars as pl


Kind: TypeAlias = Literal["number", "date", "category"]

_MOST_CATEGORIES = 50
_ROWS_OF_A_CATEGORY = 5
# The year first: 03/04/2012 is a day in March or in April, and one must not guess.
_DAYS = ("%Y-%m-%d", "%Y/%m/%d")
_TIMES = tuple(
    f"%Y-%m-%d{between}{time}"
    for between in ("T", " ")
    for time in ("%H:%M", "%H:%M:%S%.f", "%H:%M:%S%.fZ")
)
_DAYS_OF_A_YEAR = 365.25
_SECONDS_OF_A_DAY = 86_400


def features_and_labels(
    table: Table,
    target: str,
    *,
    features: Sequence[str] | None = None,
    group: str | None = None,
    excluded: Iterable[str] = (),
) -> LabelledTable:
    """Return the rows of a table that have a label, ready to learn from.

    Numbers, and true and false, are features as they are. Dates become the year and the day of the
    year, on a circle. Text that repeats itself becomes categories; other text is refused. What is
    the same in every row is left out, and so is a date whose month, year, weekday or the like
    determines the label: to predict a season from its date is no discovery.

    Parameters
    ----------
    table
        A table, as :func:`~structent.inputs.open_table` gives it.
    target
        The column of the labels.
    features
        The columns to learn from; all others that were loaded if None.
    group
        A column that tells which rows belong together, and never is a feature.
    excluded
        Columns that define the structure. They give the label away, so they never are features.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> from structent.inputs import open_table
    >>> table = open_table(seattle_weather_file())
    >>> days = features_and_labels(table, "month", excluded=["weather"])
    >>> days.feature_names
    ('precipitation', 'temp_max', 'temp_min', 'wind')
    >>> days.notes
    ("'date' left out: its month determines the labels",)
    """
    if group == target:
        raise StructentError(
            f"the group must be another column than the target, got {group!r} for both, by which "
            "every fold would hold only classes that no model was trained on; name another column, "
            "or none"
        )
    kept_apart = [target, *excluded, *([] if group is None else [group])]
    table.check_columns(kept_apart)
    chosen, unnamed = _chosen(table, features, kept_apart)
    labels = table.labels(target)
    is_kept, left_out = _rows_to_keep(table, labels, group)
    known = labels.column.filter(is_kept)
    made, columns, made_notes = _features(
        [table.column(name).filter(is_kept) for name in chosen], known, asked_for=bool(features)
    )
    return LabelledTable(
        features=made,
        labels=labels.values if len(known) == len(labels.values) else label_values(known),
        groups=None if group is None else table.column(group).filter(is_kept).to_numpy(),
        columns=columns,
        notes=(*labels.notes, *left_out, *unnamed, *made_notes),
    )


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with features and labels.

    Attributes
    ----------
    features
        Numbers, bools and categories, (n, features).
    labels
        One label per row, as str, int or bool, (n,).
    groups
        The group of each row, or None, (n,).
    columns
        The columns that the features were made of: what :func:`features_from` asks for.
    notes
        Sentences that say what was turned into what, what was left out, and what is suspicious.
    """

    features: pl.DataFrame
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.features.columns)


def features_from(table: Table, columns: Iterable[FeatureColumn]) -> pl.DataFrame:
    """Return the features of another table, made as :func:`features_and_labels` made them.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> from structent.inputs import open_table
    >>> columns = [FeatureColumn("wind", "number", ("wind",))]
    >>> features_from(open_table(seattle_weather_file(), ["wind"]), columns)["wind"][0]
    4.7
    """
    made = [
        feature
        for column in columns
        for feature in _features_of(_of_kind(table.column(column.name), column.kind), column.kind)
        if feature.name in column.features
    ]
    frame: pl.DataFrame = load_polars().DataFrame(made)
    return frame


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


def _chosen(
    table: Table, features: Sequence[str] | None, kept_apart: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns to make features of, and a note on one that has no name."""
    if features is None:
        # What writes row numbers into a CSV gives them no name; sorted rows would give all away.
        notes = ("the column without a name left out: it should be row numbers",)
        loaded = table.frame.columns
        others = [name for name in loaded if name and name not in kept_apart]
        return others, notes if "" in loaded else ()
    table.check_columns(features)
    chosen = list(dict.fromkeys(features))
    for name in chosen:
        if name in kept_apart:
            raise StructentError(
                f"features must not be the target, the group or a column that defines the "
                f"structure, got {name!r}; leave it out of the features"
            )
    return chosen, ()


def _rows_to_keep(
    table: Table, labels: Labels, group: str | None
) -> tuple[pl.Series, tuple[str, ...]]:
    """Return which rows have a label and a group, and a note on those without a group."""
    has_label = labels.column.is_not_null()
    if group is None:
        return has_label, ()
    has_group = table.column(group).is_not_null()
    return has_label & has_group, missing_rows(group, has_label & ~has_group, "group")


def _features(
    given: list[pl.Series], labels: pl.Series, *, asked_for: bool
) -> tuple[pl.DataFrame, tuple[FeatureColumn, ...], tuple[str, ...]]:
    """Return what the columns become, and notes; columns asked for by name are not left out."""
    constant = [column.name for column in given if column.n_unique() == 1]
    notes = _note_on_constant(constant)
    varying = [column for column in given if column.name not in constant]
    made: list[pl.Series] = []
    columns: list[FeatureColumn] = []
    for column, (kind, values) in zip(varying, _all_typed(varying), strict=True):
        if kind == "date" and _gives_away(values, labels, notes, asked_for=asked_for):
            continue
        new = [feature for feature in _features_of(values, kind) if feature.n_unique() > 1]
        made += new
        columns.append(FeatureColumn(column.name, kind, tuple(feature.name for feature in new)))
        notes += _notes_on(columns[-1], column, labels)
    _check_made(made, n_columns=len(given))
    frame: pl.DataFrame = load_polars().DataFrame(made)
    return frame, tuple(columns), tuple(notes)


def _note_on_constant(names: list[str]) -> list[str]:
    what = "it has" if len(names) == 1 else "they have"
    quoted = ", ".join(map(repr, names))
    return [f"{quoted} left out: {what} one value in every row"] if names else []


def _all_typed(columns: list[pl.Series]) -> list[tuple[Kind, pl.Series]]:
    """Return the kind of each column and its values as such; refuse all that have none at once."""
    typed = [(column, _typed(column)) for column in columns]
    refused = [_why_refused(column) for column, found in typed if found is None]
    if refused:
        usable = [column.name for column, found in typed if found is not None]
        others = f", such as {','.join(usable[:20])}" if usable else ""
        raise StructentError(
            "a feature must be numbers, dates or text that repeats itself, got "
            f"{', '.join(refused)}; choose other columns with --features{others}"
        )
    return [found for _, found in typed if found is not None]


def _gives_away(dates: pl.Series, labels: pl.Series, notes: list[str], *, asked_for: bool) -> bool:
    """Whether a part of the dates, such as the month, determines the label."""
    part = _part_that_determines(labels, dates)
    if part is None:
        return False
    if asked_for:
        raise StructentError(
            f"a feature must not give the label away, got {dates.name!r}, whose {part} determines "
            "the labels; leave it out of --features"
        )
    notes.append(f"{dates.name!r} left out: its {part} determines the labels")
    return True


def _notes_on(made: FeatureColumn, column: pl.Series, labels: pl.Series) -> list[str]:
    notes = []
    if made.kind == "date":
        notes.append(f"the dates in {made.name!r} became {', '.join(map(repr, made.features))}")
    elif made.kind == "category":
        notes.append(f"the text in {made.name!r} became {column.n_unique()} categories")
    elif column.dtype == load_polars().String:
        notes.append(f"words in {made.name!r} that stand for no number were read as missing")
    if _determines(labels, column):
        notes.append(f"suspicious: every label has one value in {made.name!r}, which may define it")
    elif _determines(column, labels):
        notes.append(f"suspicious: every value in {made.name!r} has one label, which it gives away")
    return notes


def _check_made(made: list[pl.Series], *, n_columns: int) -> None:
    if not made:
        raise StructentError(
            "there must be a feature to learn from, got none that varies and does not give the "
            f"label away among {n_columns} columns besides the target"
        )
    names = [feature.name for feature in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StructentError(
            f"features must have different names, got {twice!r} as a column and from a date; "
            "rename the column"
        )


def _typed(column: pl.Series) -> tuple[Kind, pl.Series] | None:
    """Return the kind of a column and its values as such, or None if it cannot be a feature.

    Text is a category where it repeats itself: at most 50 values, each in five rows on average.

    Examples
    --------
    >>> import polars as pl
    >>> _typed(pl.Series([1.5, 2.0]))[0], _typed(pl.Series(["2012-01-01", "2012-01-02"]))[0]
    ('number', 'date')
    >>> _typed(pl.Series(["red", "blue"] * 5))[0], _typed(pl.Series(["a", "b"]))
    ('category', None)
    """
    polars = load_polars()
    if column.dtype.is_numeric() or column.dtype == polars.Boolean:
        return "number", column
    numbers = numbers_from_text(column) if column.dtype == polars.String else None
    if numbers is not None:
        return "number", numbers
    dates = _dates(column)
    if dates is not None:
        return "date", dates
    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        n_values = column.drop_nulls().n_unique()
        if n_values <= min(_MOST_CATEGORIES, len(column) / _ROWS_OF_A_CATEGORY):
            return "category", column
    return None


def _of_kind(column: pl.Series, kind: Kind) -> pl.Series:
    """Return the values of a column whose kind is known, or refuse it."""
    polars = load_polars()
    if column.null_count() == len(column):  # of no type in particular, or of the wrong one
        return column.cast({"number": polars.Float64, "date": polars.Date}.get(kind, str))
    if kind == "category":
        return column
    if kind == "date":
        dates = _dates(column)
        if dates is None:
            raise StructentError(
                f"column {column.name!r} must hold dates such as 2012-02-29, got {_example(column)}"
            )
        return dates
    numbers = numbers_from_text(column) if column.dtype == polars.String else column
    if numbers is None:
        raise StructentError(f"column {column.name!r} must hold numbers, got {_example(column)}")
    return numbers


def _features_of(values: pl.Series, kind: Kind) -> list[pl.Series]:
    """Return the features that a column becomes."""
    polars = load_polars()
    if kind == "date":
        return _numbers_from_dates(values)
    if kind == "category":
        return [values.cast(polars.String).cast(polars.Categorical)]
    if values.dtype == polars.Boolean:
        return [values]
    if not values.dtype.is_numeric():
        raise StructentError(f"column {values.name!r} must hold numbers, got {values.dtype}")
    if values.dtype.is_decimal():
        values = values.cast(polars.Float64)
    if values.dtype.is_float() and values.is_infinite().any():
        raise StructentError(
            f"column {values.name!r} must hold finite numbers, got infinity; leave it empty where "
            "nothing is known"
        )
    return [values]


def _why_refused(column: pl.Series) -> str:
    """Return why no feature can be made of a column."""
    polars = load_polars()
    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        return f"{column.name!r} (text with {column.n_unique()} values in {len(column)} rows)"
    return f"{column.name!r} ({column.dtype})"


def _example(column: pl.Series) -> str:
    text = column.drop_nulls().cast(str)
    return f"{column.dtype}" + (f" such as {text[0]!r}" if len(text) else "")


def _dates(column: pl.Series) -> pl.Series | None:
    """Return a column as dates if all of it is dates, typed or as ISO text, else None.

    Examples
    --------
    >>> import polars as pl
    >>> _dates(pl.Series(["2012-02-28", "2012-02-29"]))[1]
    datetime.date(2012, 2, 29)
    >>> _dates(pl.Series(["2012-02-28", "soon"])) is None
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


def _numbers_from_dates(dates: pl.Series) -> list[pl.Series]:
    """Return the year and the place in the year, on a circle; times also give the place in the day.

    On a circle the last day of December is beside the first of January, as it is in nature.

    Examples
    --------
    >>> import polars as pl
    >>> for number in _numbers_from_dates(_dates(pl.Series("sown", ["2012-01-01"]))):
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


def _part_that_determines(labels: pl.Series, dates: pl.Series) -> str | None:
    """Return the part of the dates, such as the month, of which the labels are a function.

    Examples
    --------
    >>> import polars as pl
    >>> days = _dates(pl.Series(["2012-01-01", "2012-06-01", "2013-01-09", "2013-06-09"]))
    >>> _part_that_determines(pl.Series(["cold", "warm", "cold", "warm"]), days)
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
    return next((name for name, part in parts.items() if _determines(part, labels)), None)


def _determines(column: pl.Series, other: pl.Series) -> bool:
    """Whether each value of a column goes with one value of another, and not by chance alone.

    Values that occur once determine anything: there must be two rows per value on average.
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
