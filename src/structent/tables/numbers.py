"""Numbers that were read as text because words for a missing value stand among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structent.tables.reading import load_polars

if TYPE_CHECKING:
    import polars as pl

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
