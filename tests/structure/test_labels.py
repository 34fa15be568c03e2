"""Labels: tuples, or a column for each part, where the structure is a product; and their order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from structent import LabelError, circular, ordinal, trivial
from structent.structure.labels import sorted_classes

PAIRS = circular(["a", "b", "c"], width=2).product(ordinal([1, 2]))
ROWS = [("c", 1), ("a", 2), ("b", 1)]
AS_OBJECTS = np.fromiter(ROWS, dtype=object, count=3)
CODES = [4, 1, 2]


@pytest.mark.parametrize(
    "labels",
    [
        ROWS,
        AS_OBJECTS,
        pd.Series(ROWS),
        pd.MultiIndex.from_tuples(ROWS),
        np.array(ROWS, dtype=object),
        pd.DataFrame(ROWS, columns=["letter", "size"]),
        pl.DataFrame(ROWS, schema=["letter", "size"], orient="row"),
    ],
    ids=["list", "objects", "series", "index", "two columns", "pandas", "polars"],
)
def test_pairs_are_encoded_in_whatever_form_they_come(labels):
    assert PAIRS.encode(labels).tolist() == CODES
    assert PAIRS.encode_with_blocks(labels).codes.tolist() == CODES


def test_a_block_of_pairs_is_a_label_of_its_own():
    label_sets = PAIRS.encode_with_blocks([("c", 1), "(a+b, 2)", {("a", 1), ("c", 2)}])
    assert label_sets.classes_of_rows() == [
        (("c", 1),),
        (("a", 2), ("b", 2)),
        (("a", 1), ("c", 2)),
    ]


def test_what_numpy_made_text_of_is_refused_with_the_type_wanted():
    with pytest.raises(LabelError, match=r"\('c', '1'\) is not a class of the structure"):
        PAIRS.encode(np.array(ROWS))


def test_columns_are_joined_only_for_classes_of_as_many_parts():
    for structure, table in (
        (trivial(["a", "b"]), np.array([["a", "b"]])),
        (PAIRS, np.array([["a", "b", "c"]])),
        (trivial(["a", "b"]), np.array([["a"]])),
    ):
        with pytest.raises(LabelError, match="labels must have one axis, got shape"):
            structure.encode(table)


def test_numbers_sort_before_text():
    assert sorted_classes(["b", 10, "a", 9]) == (9, 10, "a", "b")
