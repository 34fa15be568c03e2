"""A table made ready to learn from: features, labels and groups, and notes on what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from structent._typing import Label
from structent.errors import StructentError
from structent.inputs.columns import (
    FeatureColumn,
    dates_of,
    determines,
    features_of,
    kind_of,
    part_that_determines,
    why_refused,
)
from structent.inputs.reading import (
    FilePath,
    checked_columns,
    column_names,
    load_polars,
    numbers_from_text,
    read_table,
)
from structent.structure.labels import label_array

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with features and labels.

    Attributes
    ----------
    features
        Numbers, bools and categories, (n, features).
    labels
        One label a row, as str, int or bool, (n,).
    groups
        The group of each row, or None, (n,).
    columns
        The columns that the features were made of: what :func:`read_features` asks for.
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


def features_and_labels(
    path: FilePath,
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
    tells the label: a season is no discovery beside its date.

    Parameters
    ----------
    path
        A table, as in :func:`~structent.inputs.read_table`.
    target
        The column of the labels.
    features
        The columns to learn from; all others if None.
    group
        A column that tells which rows belong together, and never is a feature.
    excluded
        Columns that define the structure. They give the label away, so they never are features.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> days = features_and_labels(seattle_weather_file(), "month", excluded=["weather"])
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
    names = column_names(path)
    kept_apart = checked_columns(
        [target, *excluded, *([] if group is None else [group])], names, path
    )
    chosen, notes = _chosen(path, names, features, kept_apart)
    needed = [target, *chosen, *([] if group is None else [group])]
    table, labels, rows_left_out = _rows_with_labels(
        read_table(path, list(dict.fromkeys(needed))), target, group
    )
    made, columns, made_notes = _features(table[chosen], labels, asked_for=bool(features))
    return LabelledTable(
        features=made,
        labels=label_values(labels),
        groups=None if group is None else table[group].to_numpy(),
        columns=columns,
        notes=(*rows_left_out, *notes, *made_notes),
    )


def read_features(path: FilePath, columns: Iterable[FeatureColumn]) -> pl.DataFrame:
    """Return the features of another table, made as those of :func:`features_and_labels` were.

    Examples
    --------
    >>> from structent.datasets import seattle_weather_file
    >>> columns = [FeatureColumn("wind", "number", ("wind",))]
    >>> read_features(seattle_weather_file(), columns)["wind"][0]
    4.7
    """
    planned = tuple(columns)
    table = read_table(path, [column.name for column in planned])
    made = [
        feature
        for column in planned
        for feature in features_of(table[column.name], column.kind)
        if feature.name in column.features
    ]
    frame: pl.DataFrame = load_polars().DataFrame(made)
    return frame


def _chosen(
    path: FilePath, names: Sequence[str], features: Sequence[str] | None, kept_apart: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns to make features of, and a note on one that has no name."""
    if features is None:
        # What writes row numbers into a CSV gives them no name; sorted rows would give all away.
        notes = ("the column without a name left out: it should be row numbers",)
        others = [name for name in names if name and name not in kept_apart]
        return others, notes if "" in names else ()
    chosen = list(dict.fromkeys(checked_columns(features, names, path)))
    for name in chosen:
        if name in kept_apart:
            raise StructentError(
                f"features must not be the target, the group or a column that defines the "
                f"structure, got {name!r}; leave it out of the features"
            )
    return chosen, ()


def _rows_with_labels(
    table: pl.DataFrame, target: str, group: str | None
) -> tuple[pl.DataFrame, pl.Series, tuple[str, ...]]:
    """Return the rows that have a label and a group, and notes on the others."""
    labels, notes = label_column(table[target])
    present = labels.is_not_null()
    notes += missing_rows(target, ~present, "label")
    if group is not None:
        has_group = table[group].is_not_null()
        notes += missing_rows(group, present & ~has_group, "group")
        present &= has_group
    if not present.any():
        raise StructentError(f"column {target!r} must hold labels, got none in any row")
    return table.filter(present), labels.filter(present), notes


def _features(
    table: pl.DataFrame, labels: pl.Series, *, asked_for: bool
) -> tuple[pl.DataFrame, tuple[FeatureColumn, ...], tuple[str, ...]]:
    """Return what the columns become, and notes; columns asked for by name are not left out."""
    varying = [column for column in table.get_columns() if column.n_unique() > 1]
    notes = _constant_columns(table, [column.name for column in varying])
    kinds = {column.name: kind_of(column) for column in varying}
    _refuse([column for column in varying if kinds[column.name] is None], kinds)
    made: list[pl.Series] = []
    columns: list[FeatureColumn] = []
    for column in varying:
        kind = kinds[column.name]
        if kind is None or _gives_away(column, labels, notes, asked_for=asked_for):
            continue
        new = [feature for feature in features_of(column, kind) if feature.n_unique() > 1]
        made += new
        columns.append(FeatureColumn(column.name, kind, tuple(feature.name for feature in new)))
        notes += _notes_on(columns[-1], column, labels)
    _check_left(made, table)
    frame: pl.DataFrame = load_polars().DataFrame(made)
    return frame, tuple(columns), tuple(notes)


def _constant_columns(table: pl.DataFrame, varying: list[str]) -> list[str]:
    constant = [repr(name) for name in table.columns if name not in varying]
    what = "it has" if len(constant) == 1 else "they have"
    return [f"{', '.join(constant)} left out: {what} one value in every row"] if constant else []


def _refuse(refused: list[pl.Series], kinds: dict[str, Any]) -> None:
    if not refused:
        return
    usable = [name for name, kind in kinds.items() if kind is not None]
    others = f", such as {','.join(usable[:20])}" if usable else ""
    raise StructentError(
        "a feature must be numbers, dates or text that repeats itself, got "
        f"{', '.join(map(why_refused, refused))}; choose other columns with --features{others}"
    )


def _gives_away(column: pl.Series, labels: pl.Series, notes: list[str], *, asked_for: bool) -> bool:
    """Whether a column holds dates of which a part tells the label."""
    dates = dates_of(column)
    part = None if dates is None else part_that_determines(labels, dates)
    if part is None:
        return False
    if asked_for:
        raise StructentError(
            f"a feature must not give the label away, got {column.name!r}, whose {part} determines "
            "the labels; leave it out of --features"
        )
    notes.append(f"{column.name!r} left out: its {part} determines the labels")
    return True


def _notes_on(made: FeatureColumn, column: pl.Series, labels: pl.Series) -> list[str]:
    notes = []
    if made.kind == "date":
        notes.append(f"the dates in {made.name!r} became {', '.join(map(repr, made.features))}")
    elif made.kind == "category":
        notes.append(f"the text in {made.name!r} became {column.n_unique()} categories")
    elif column.dtype == load_polars().String:
        notes.append(f"words in {made.name!r} that stand for no number were read as missing")
    if determines(labels, column):
        notes.append(f"suspicious: every label has one value in {made.name!r}, which may define it")
    elif determines(column, labels):
        notes.append(f"suspicious: every value in {made.name!r} has one label, which it gives away")
    return notes


def _check_left(made: list[pl.Series], table: pl.DataFrame) -> None:
    if not made:
        raise StructentError(
            "there must be a feature to learn from, got none that varies and does not give the "
            f"label away among {table.width} columns besides the target"
        )
    names = [feature.name for feature in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StructentError(
            f"features must have different names, got {twice!r} as a column and from a date; "
            "rename the column"
        )


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
