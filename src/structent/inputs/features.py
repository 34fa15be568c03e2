"""Features from the columns of a table: numbers, dates and categories, and notes on each."""

from __future__ import annotations

import math
import shlex
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import NDArray

from structent.errors import StructentError
from structent.inputs.leaks import ColumnRemark, reason_to_leave_out, reason_to_suspect
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
# The year first: 03/04/2012 may be a day in March or in April, and we do not guess.
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
    keep: Iterable[str] = (),
    drop: Iterable[str] = (),
) -> LabelledTable:
    """Return the rows of a table that have a label, ready to learn from.

    Numbers, and true and false, are features as they are. Dates become the year and the day of the
    year, on a circle. Text with repeated values becomes categories; other text is refused. Columns
    with one value in every row are left out. So are columns that give the label away: an id, a
    column with one label for each value, a date whose month, year or weekday determines the label.
    To predict a season from its date is no discovery.

    Parameters
    ----------
    table
        A table, as :func:`~structent.inputs.open_table` gives it.
    target
        The label column.
    features
        The columns to learn from; if None, all other columns that were loaded.
    group
        A column that says which rows belong together; it is never a feature.
    excluded
        Columns that define the structure. They give the label away, so they are never features.
    keep
        Columns to learn from even if they give the label away.
    drop
        Columns not to learn from.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> from structent.inputs import open_table
    >>> table = open_table(seattle_weather_file())
    >>> days = features_and_labels(table, "month", excluded=["weather"])
    >>> days.feature_names
    ('precipitation', 'temp_max', 'temp_min', 'wind')
    >>> days.left_out
    (ColumnRemark(column='date', reason='its month determines the label'),)
    """
    if group == target:
        raise StructentError(
            f"the group must be another column than the target, got {group!r} for both, so that "
            "every fold would have only classes that no model was trained on; name another "
            "column, or none"
        )
    kept_apart = [target, *excluded, *([] if group is None else [group])]
    table.check_columns(kept_apart)
    chosen = _chosen(table, features, kept_apart, drop)
    _check_kept(table, keep, chosen)
    labels = table.labels(target)
    is_kept, notes = _rows_to_keep(table, labels, group)
    known = labels.column.filter(is_kept)
    groups = None if group is None else table.column(group).filter(is_kept)
    made = _made([table.column(name).filter(is_kept) for name in chosen], known, groups, set(keep))
    return LabelledTable(
        features=made.frame(n_columns=len(chosen)),
        labels=labels.values if len(known) == len(labels.values) else label_values(known),
        groups=None if groups is None else groups.to_numpy(),
        columns=tuple(made.columns),
        notes=(*labels.notes, *notes, *made.notes),
        left_out=tuple(made.left_out),
        suspicious=tuple(made.suspicious),
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
        The columns that the features were made from, for :func:`features_from`.
    notes
        Sentences that say what was converted, and which rows and columns were left out.
    left_out
        The columns that are not features because they give the label away, with the reason.
    suspicious
        The columns that are features, but predict the label suspiciously well, with the reason.
    """

    features: pl.DataFrame
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    columns: tuple[FeatureColumn, ...]
    notes: tuple[str, ...]
    left_out: tuple[ColumnRemark, ...] = ()
    suspicious: tuple[ColumnRemark, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.features.columns)


def features_from(table: Table, columns: Iterable[FeatureColumn]) -> pl.DataFrame:
    """Return the features of another table, made in the same way as the columns say.

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
    return _frame(made)


def _frame(features: Iterable[pl.Series]) -> pl.DataFrame:
    # By name: in a list, a column whose name is empty would get one.
    frame: pl.DataFrame = load_polars().DataFrame({column.name: column for column in features})
    return frame


@dataclass(frozen=True)
class FeatureColumn:
    """A column of a table, and the features that it becomes.

    Attributes
    ----------
    name
        Its name in the table.
    kind
        Numbers (or true and false) and categories stay one feature; dates become a few.
    features
        The names of the features made from it.
    """

    name: str
    kind: Kind
    features: tuple[str, ...]


def with_option(option: str, names: Iterable[str]) -> str:
    """Return a command option with each of the names, ready to be pasted into a shell.

    Examples
    --------
    >>> print(with_option("--drop", ["id", "leaf [cm]", "-x"]))
    --drop id --drop 'leaf [cm]' --drop=-x
    """
    words = [
        f"{option}={shlex.quote(name)}" if name.startswith("-") else f"{option} {shlex.quote(name)}"
        for name in names
    ]
    return " ".join(words)


def _chosen(
    table: Table, features: Sequence[str] | None, kept_apart: Sequence[str], drop: Iterable[str]
) -> list[str]:
    """Return the columns that features are made from."""
    dropped = set(drop)
    table.check_columns(drop)
    if features is None:
        return [name for name in table.frame.columns if name not in {*kept_apart, *dropped}]
    table.check_columns(features)
    for name in features:
        _check_may_be_feature(name, kept_apart)
    return [name for name in dict.fromkeys(features) if name not in dropped]


def _check_may_be_feature(name: str, kept_apart: Sequence[str]) -> None:
    if name in kept_apart:
        raise StructentError(
            f"features must not be the target, the group or a column that defines the "
            f"structure, got {name!r}; leave it out of the features"
        )


def _check_kept(table: Table, keep: Iterable[str], chosen: Sequence[str]) -> None:
    """Refuse to keep a column that is not one of the features."""
    table.check_columns(keep)
    other = next((name for name in keep if name not in chosen), None)
    if other is not None:
        raise StructentError(
            f"a column to keep must be one of the features, got {other!r}, which is the target, "
            "the group, a column that defines the structure or one that is not to be learned from"
        )


def _rows_to_keep(
    table: Table, labels: Labels, group: str | None
) -> tuple[pl.Series, tuple[str, ...]]:
    """Return which rows have a label and a group, and a note on those without a group."""
    has_label = labels.column.is_not_null()
    if group is None:
        return has_label, ()
    has_group = table.column(group).is_not_null()
    return has_label & has_group, missing_rows(group, has_label & ~has_group, "group")


@dataclass(eq=False)
class _Made:
    """The features made from the columns of a table, collected one by one."""

    features: list[pl.Series] = field(default_factory=list)
    columns: list[FeatureColumn] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[ColumnRemark] = field(default_factory=list)
    suspicious: list[ColumnRemark] = field(default_factory=list)
    refused: list[pl.Series] = field(default_factory=list)

    def frame(self, *, n_columns: int) -> pl.DataFrame:
        """Return the features as a table, if there are any."""
        _check_none_refused(self.refused)
        _check_made(self.features, self.left_out, n_columns=n_columns)
        return _frame(self.features)


def _made(
    given: Iterable[pl.Series], labels: pl.Series, groups: pl.Series | None, keep: Container[str]
) -> _Made:
    """Return the features of the columns; columns to keep are never left out."""
    made = _Made()
    constant = []
    for column in given:
        if column.n_unique() == 1:
            constant.append(column.name)
            continue
        kind, values = _typed(column) or (None, column)
        reason = _reason_to_leave_out(values, labels, groups)
        if reason is not None and column.name not in keep:
            made.left_out.append(ColumnRemark(column.name, reason))
        elif kind is None:
            made.refused.append(column)
        else:
            _add(made, column, kind, values)
            reason = reason or reason_to_suspect(values, labels, groups)
            if reason is not None:
                made.suspicious.append(ColumnRemark(column.name, reason))
    made.notes += _note_on_constant(constant)
    return made


def _reason_to_leave_out(
    values: pl.Series, labels: pl.Series, groups: pl.Series | None
) -> str | None:
    if not values.name:
        # Row numbers in a CSV have no name; in a sorted table they would give the label away.
        return "without a name, as row numbers are"
    return None if values.dtype.is_nested() else reason_to_leave_out(values, labels, groups)


def _add(made: _Made, column: pl.Series, kind: Kind, values: pl.Series) -> None:
    """Add the features of a column, and a note on what it became."""
    new = [feature for feature in _features_of(values, kind) if feature.n_unique() > 1]
    names = tuple(feature.name for feature in new)
    made.features += new
    made.columns.append(FeatureColumn(column.name, kind, names))
    if kind == "date":
        made.notes.append(f"the dates in {column.name!r} became {', '.join(map(repr, names))}")
    elif kind == "category":
        made.notes.append(f"the text in {column.name!r} became {column.n_unique()} categories")
    elif column.dtype == load_polars().String:
        made.notes.append(f"words for missing numbers in {column.name!r} were read as missing")


def _note_on_constant(names: list[str]) -> list[str]:
    what = "it has" if len(names) == 1 else "they have"
    quoted = ", ".join(map(repr, names))
    return [f"{quoted} left out: {what} one value in every row"] if names else []


def _check_none_refused(columns: Sequence[pl.Series]) -> None:
    """Refuse the columns that cannot be features, all in one message."""
    if columns:
        reasons = ", ".join(map(_why_refused, columns))
        names = [column.name for column in columns]
        raise StructentError(
            f"a feature must be numbers, dates or text that repeats itself, got {reasons}; "
            f"leave {'it' if len(names) == 1 else 'them'} out: {with_option('--drop', names)}"
        )


def _check_made(made: list[pl.Series], left_out: Sequence[ColumnRemark], *, n_columns: int) -> None:
    if not made:
        names = [remark.column for remark in left_out]
        reasons = ", ".join(f"{remark.column!r} ({remark.reason})" for remark in left_out)
        advice = f"; left out were {reasons}; to keep them: {with_option('--keep', names)}"
        raise StructentError(
            f"there must be a feature to learn from, got {n_columns} columns besides the target, "
            "none of which varies without giving the label away"
            f"{advice if names else ''}"
        )
    names = [feature.name for feature in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StructentError(
            f"features must have different names, got {twice!r} as a column and from a date; "
            "rename the column"
        )


def _typed(column: pl.Series) -> tuple[Kind, pl.Series] | None:
    """Return the kind of a column and its converted values, or None if it cannot be a feature.

    Text is a category if it has at most 50 different values, each in five rows on average.

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
    if column.null_count() == len(column):  # its type may be null, or wrong
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
            f"column {values.name!r} must hold finite numbers, got infinity; leave cells empty if "
            "nothing is known"
        )
    return [values]


def _why_refused(column: pl.Series) -> str:
    """Return why a column cannot be a feature."""
    polars = load_polars()
    if column.dtype in (polars.String, polars.Categorical, polars.Enum):
        return f"{column.name!r} (text with {column.n_unique()} values in {len(column)} rows)"
    return f"{column.name!r} ({column.dtype})"


def _example(column: pl.Series) -> str:
    text = column.drop_nulls().cast(str)
    return f"{column.dtype}" + (f" such as {text[0]!r}" if len(text) else "")


def _dates(column: pl.Series) -> pl.Series | None:
    """Return a column as dates if all values are dates, typed or as ISO text, else None.

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
    """Return the year and the day of the year, on a circle; times also give the time of the day.

    On a circle the last day of December is next to the first of January, as it should be.

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


def _circle(place: pl.Series, length: float, name: str) -> list[pl.Series]:
    angle = place.cast(float) * (2.0 * math.pi / length)
    return [angle.sin().alias(f"{name} sine"), angle.cos().alias(f"{name} cosine")]
