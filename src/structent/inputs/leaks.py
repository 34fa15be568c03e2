"""Columns that give the label away, and those that tell suspiciously much about it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.inputs.table import load_polars

if TYPE_CHECKING:
    import polars as pl

_LOG_OF_RARE = float(np.log(1e-6))  # tables have hundreds of columns, never millions
_CALLED_ID = re.compile(r"(^|[^A-Za-z])(id|uuid|guid)$", re.IGNORECASE)
_CALLED_ID_IN_CAMEL_CASE = re.compile(r"[a-z]I[dD]$")
_LARGEST_WHOLE = 2.0**53  # beyond it, float64 cannot represent every whole number

# A suspicious column alone explains this share of the label's entropy, and rules out this share of
# the wrong labels.
_SUSPICIOUS_SHARE = 0.75
_SUSPICIOUS_RULED_OUT = 0.92
_MOST_ROWS = 50_000
_MOST_BINS = 256
_ROWS_OF_A_BIN = 5


@dataclass(frozen=True)
class ColumnRemark:
    """What a user should know about a column before trusting a model.

    Attributes
    ----------
    column
        Its name.
    reason
        What is remarkable, in a few words.
    """

    column: str
    reason: str


def reason_to_leave_out(
    values: pl.Series, labels: pl.Series, groups: pl.Series | None = None
) -> str | None:
    """Return why a column gives the label away, or None if it does not.

    Parameters
    ----------
    values
        The column: numbers, dates, bools or text, (n,).
    labels
        The label of each row, none missing, (n,).
    groups
        The group of each row, (n,), if rows belong together. A model is never scored on a group
        that it was trained on, so a value that a group repeats counts only once.

    Examples
    --------
    >>> import polars as pl
    >>> labels = pl.Series(["oak", "elm", "fir", "elm"] * 10)
    >>> reason_to_leave_out(pl.Series("code", [1, 2, 3, 4] * 10), labels)
    'each of its 4 values has one label'
    """
    if _are_dates(values):
        part = part_that_determines(values, labels, groups)
        return None if part is None else f"its {part} determines the label"
    if is_id(values, groups):
        return f"different in every {'row' if groups is None else 'group'}, as an id is"
    if determines(values, labels, groups):
        return f"each of its {values.drop_nulls().n_unique()} values has one label"
    return None


def reason_to_suspect(
    values: pl.Series, labels: pl.Series, groups: pl.Series | None = None
) -> str | None:
    """Return why a column that does not give the label away is still suspicious, or None.

    Parameters
    ----------
    values, labels, groups
        As in :func:`reason_to_leave_out`.

    Examples
    --------
    >>> import polars as pl
    >>> seasons, months = ["cold", "warm"] * 20, ["jan", "jul", "feb", "aug"] * 10
    >>> reason_to_suspect(pl.Series("season", seasons), pl.Series(months))
    'each label has one value of it, so it may be made from the label'
    """
    parts = parts_of_dates(values) if _are_dates(values) else {"": values}
    told = {name: what_is_told(part, labels, groups) for name, part in parts.items()}
    best = max(told, key=lambda name: told[name].share)
    if told[best].share >= _SUSPICIOUS_SHARE and told[best].ruled_out >= _SUSPICIOUS_RULED_OUT:
        subject = f"its {best} alone" if best else "it alone"
        return f"{subject} tells {100 * told[best].share:.0f} % of the label"
    if determines(labels, values, groups):
        return "each label has one value of it, so it may be made from the label"
    return None


def is_id(column: pl.Series, groups: pl.Series | None = None) -> bool:
    """Whether a column of text or numbers is an id: different in every row, and not by chance.

    Text that is different in every row is an id. Whole numbers are an id if they are so dense that
    random numbers from their range would have repeats, except once in a million times; populations
    and incomes are spread more widely. A column with the name ``id`` need not be dense. Decimals
    are measurements.

    Examples
    --------
    >>> import polars as pl
    >>> is_id(pl.Series("number", range(20))), is_id(pl.Series("number", range(0, 20_000, 1000)))
    (True, False)
    >>> is_id(pl.Series("user_id", range(0, 20_000, 1000)))
    True
    """
    known = _known(column, None, groups)["column"]
    n_rows = len(known)
    if n_rows < 2 or known.n_unique() < n_rows:
        return False
    if not column.dtype.is_numeric():
        return bool(column.dtype != load_polars().Boolean)
    if not _are_whole(known):
        return False
    if _CALLED_ID.search(column.name) or _CALLED_ID_IN_CAMEL_CASE.search(column.name):
        return True
    lowest, highest = (int(value) for value in known.sort().gather([0, -1]))
    # The birthday problem; numbers that are not uniform repeat more often.
    log_chance = float(np.log1p(-np.arange(n_rows) / (highest - lowest + 1)).sum())
    return log_chance < _LOG_OF_RARE


def determines(column: pl.Series, labels: pl.Series, groups: pl.Series | None = None) -> bool:
    """Whether rows with the same value always have the same label, and not by chance.

    Values must repeat, twice on average, and such agreement must be rare by chance: less than once
    in a million times, if labels were random with the same frequencies. For decimals this must also
    hold if equal values agreed only as often as neighbouring values do, because a measurement that
    separates the classes well has such neighbours. Missing values are ignored.

    Examples
    --------
    >>> import polars as pl
    >>> codes, labels = pl.Series([1, 2, 3, 4] * 10), pl.Series(["oak", "elm", "fir", "elm"] * 10)
    >>> determines(codes, labels), determines(codes[:4], labels[:4]), determines(labels, codes)
    (True, False, False)
    """
    polars = load_polars()
    known = _known(column, labels, groups)
    n_values = known["column"].n_unique()
    if not 1 < n_values <= known.height / 2:
        return False
    by_value = known.group_by("column", "label").agg(polars.len().alias("n"))
    if by_value.height > n_values:
        return False
    shares = known["label"].value_counts()["count"].to_numpy() / known.height
    log_chance = _log_chance_at_random(by_value["n"].to_numpy(), shares)
    if column.dtype.is_numeric() and not _are_whole(known["column"]):
        agreement = _log_agreement_of_neighbours(by_value.sort("column")["label"])
        log_chance = max(log_chance, (known.height - n_values) * agreement)
    return log_chance < _LOG_OF_RARE


def part_that_determines(
    dates: pl.Series, labels: pl.Series, groups: pl.Series | None = None
) -> str | None:
    """Return the part of the dates, such as the month, that determines the labels, or None.

    Examples
    --------
    >>> import polars as pl
    >>> from datetime import date
    >>> days = pl.Series([date(2012 + i % 7, 1 + 5 * (i % 2), 1 + i) for i in range(24)])
    >>> part_that_determines(days, pl.Series(["cold", "warm"] * 12))
    'month'
    """
    parts = parts_of_dates(dates)
    return next((name for name, part in parts.items() if determines(part, labels, groups)), None)


def parts_of_dates(dates: pl.Series) -> dict[str, pl.Series]:
    """Return the year, the month and other parts of dates as whole numbers, coarse ones first."""
    year, month = dates.dt.year().cast(int), dates.dt.month().cast(int)
    parts = {
        "year": year,
        "month": month,
        "weekday": dates.dt.weekday().cast(int),
        "day of the year": month * 100 + dates.dt.day(),
    }
    if dates.dtype == load_polars().Datetime:
        parts["hour"] = dates.dt.hour().cast(int)
        parts["weekday and hour"] = parts["weekday"] * 100 + dates.dt.hour()
    parts["month and year"] = year * 100 + month
    parts["day"] = (year * 100 + month) * 100 + dates.dt.day()
    return parts


class Told(NamedTuple):
    """What a column alone tells about the labels, in nats per row.

    Attributes
    ----------
    entropy
        The log loss of guessing by the frequencies of the labels.
    loss
        The log loss of guessing by the frequencies of the labels given each value of the column.
    """

    entropy: float
    loss: float

    @property
    def share(self) -> float:
        """The share of the entropy that is explained; below 0 if the column misleads."""
        return 1.0 - self.loss / self.entropy if self.entropy > 0 else 0.0

    @property
    def ruled_out(self) -> float:
        """The share of the wrong labels that is ruled out: exp(loss) of exp(entropy) remain."""
        wrong = math.expm1(self.entropy)
        return 1.0 - math.expm1(self.loss) / wrong if wrong > 0 else 0.0


def what_is_told(column: pl.Series, labels: pl.Series, groups: pl.Series | None = None) -> Told:
    """Return what a column alone tells about the labels, measured on held-out rows.

    Half of the rows, or of the groups, give the frequencies; the labels of the other half are
    guessed. Numbers with many values are binned.

    Examples
    --------
    >>> import polars as pl
    >>> labels = pl.Series(["oak", "elm"] * 100)
    >>> round(what_is_told(pl.Series([1.5, 7.5] * 100), labels).share, 2)
    0.99
    >>> abs(what_is_told(pl.Series([1.5, 1.5, 7.5, 7.5] * 50), labels).share) < 0.05
    True
    """
    rows = _drawn(len(column))
    is_counted = _first_half(rows, groups)
    if is_counted.all():
        return Told(0.0, 0.0)
    codes = _places(labels)[rows]
    bins = _bins(column, is_counted, rows)
    n_classes = int(codes.max()) + 1
    # Half a row is added to each class and to each bin, so that no frequency is 0.
    shares = np.bincount(codes[is_counted], minlength=n_classes) + 0.5
    shares /= shares.sum()
    counts = np.zeros((int(bins.max()) + 1, n_classes))
    np.add.at(counts, (bins[is_counted], codes[is_counted]), 1.0)
    of_bin, of_class = bins[~is_counted], codes[~is_counted]
    more = 0.5 * shares[of_class]
    frequency = (counts[of_bin, of_class] + more) / (counts.sum(axis=1)[of_bin] + 0.5)
    return Told(-float(np.log(shares[of_class]).mean()), -float(np.log(frequency).mean()))


def _are_dates(values: pl.Series) -> bool:
    polars = load_polars()
    return values.dtype in (polars.Date, polars.Datetime)


def _known(column: pl.Series, labels: pl.Series | None, groups: pl.Series | None) -> pl.DataFrame:
    """Return the values that are not missing, with their labels; each once in a group."""
    given = {"column": column, "label": labels, "group": groups}
    parts = [part.alias(name) for name, part in given.items() if part is not None]
    frame: pl.DataFrame = load_polars().DataFrame(parts).drop_nulls("column")
    if column.dtype.is_float():
        frame = frame.drop_nans("column")
    return frame if groups is None else frame.unique()


def _are_whole(numbers: pl.Series) -> bool:
    if numbers.dtype.is_integer():
        return True
    values = numbers.cast(float)
    return bool(((values == values.round()) & (values.abs() <= _LARGEST_WHOLE)).all())


def _log_chance_at_random(sizes: IndexArray, shares: FloatArray) -> float:
    r"""Return the log probability that each value has one label, if labels were random.

    .. math:: \sum_v \log \sum_c p_c^{n_v}

    for :math:`n_v` rows of value v and labels of share :math:`p_c`.

    Examples
    --------
    >>> float(np.exp(_log_chance_at_random(np.array([2, 3]), np.array([0.5, 0.5]))).round(6))
    0.125
    """
    different, times = np.unique(sizes, return_counts=True)
    log_chances = np.logaddexp.reduce(different[:, None] * np.log(shares), axis=1)
    return float((times * log_chances).sum())


def _log_agreement_of_neighbours(labels: pl.Series) -> float:
    """Return the log share of neighbours that agree, with one more pair of each kind added."""
    n_agree = int((labels[1:] == labels[:-1]).sum())
    return float(np.log((n_agree + 1) / (len(labels) + 1)))


def _drawn(n_rows: int) -> IndexArray:
    """Return the rows to look at: all, or a sufficient number from a large table."""
    if n_rows <= _MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, size=_MOST_ROWS, replace=False))


def _first_half(rows: IndexArray, groups: pl.Series | None) -> NDArray[np.bool_]:
    """Return which rows are in a random half of the rows, or of the groups."""
    of_group = rows if groups is None else _places(groups)[rows]
    _, unit = np.unique(of_group, return_inverse=True)
    n_units = int(unit.max()) + 1
    is_first = np.random.default_rng(0).permutation(n_units) < (n_units + 1) // 2
    return is_first[unit]


def _bins(column: pl.Series, is_counted: NDArray[np.bool_], rows: IndexArray) -> IndexArray:
    """Return the bin of each row: 0 where the value is missing."""
    places = _places(column)[rows] + 1
    known = np.sort(places[is_counted & (places > 0)])
    n_bins = max(1, min(_MOST_BINS, len(known) // _ROWS_OF_A_BIN))
    if not column.dtype.is_numeric() or len(np.unique(known)) <= n_bins:
        return places
    cuts = np.unique(known[np.linspace(0, len(known), n_bins, endpoint=False).astype(int)][1:])
    return np.where(places == 0, 0, 1 + np.searchsorted(cuts, places, side="right"))


def _places(column: pl.Series) -> IndexArray:
    """Return the rank of each value among the different ones; -1 if it is missing."""
    polars = load_polars()
    if column.dtype.is_float():
        column = column.fill_nan(None)
    elif not column.dtype.is_numeric():
        column = column.cast(polars.String)  # bools and categories have no ranks
    ranks: IndexArray = column.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return ranks - 1
