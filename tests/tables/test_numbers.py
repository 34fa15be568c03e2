"""Numbers among which words stand for a missing value."""

import polars as pl
import pytest

from structent.inputs.reading import numbers_from_text


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (["1", "NA", "3"], [1, None, 3]),
        (["1.5", "?", "3"], [1.5, None, 3.0]),
        (["1", None, "null"], [1, None, None]),
    ],
)
def test_words_for_a_missing_value_beside_numbers_are_missing(text, numbers):
    assert numbers_from_text(pl.Series(text)).to_list() == numbers


@pytest.mark.parametrize("text", [["NA", "DE"], ["1", "2"], ["NA", "NA"], ["1", "NA", "two"]])
def test_other_text_is_text(text):
    assert numbers_from_text(pl.Series(text)) is None
