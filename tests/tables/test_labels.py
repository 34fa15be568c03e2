"""The target column: text, whole numbers and bools are labels, missing ones are counted."""

from datetime import date

import polars as pl
import pytest

from structent import StructentError
from structent.inputs import read_labels
from structent.inputs.labelled import label_column


def labels_of(values, tmp_path, dtype=None):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": pl.Series(values, dtype=dtype)}).write_parquet(path)
    return read_labels(path, "y")


@pytest.mark.parametrize("values", [["oak", "elm", "oak"], [3, 1, 2], [True, False, True]])
def test_labels_are_as_in_the_table(values, tmp_path):
    labels = labels_of(values, tmp_path)
    assert labels.values.tolist() == values
    assert labels.classes == tuple(sorted(set(values)))
    assert labels.notes == ()


def test_categories_are_text(tmp_path):
    assert labels_of(["b", "a"], tmp_path, pl.Categorical).values.tolist() == ["b", "a"]


def test_whole_numbers_written_as_decimals_are_whole(tmp_path):
    labels = labels_of([1.0, float("nan"), 2.0, None], tmp_path)
    assert list(map(repr, labels.values.tolist())) == ["1", "2"]
    assert labels.notes == (
        "the labels in 'y' are whole numbers written as decimals and were read as such",
        "2 rows without a label in 'y' left out",
    )


def test_a_word_for_a_missing_number_is_no_class():
    column, _ = label_column(pl.Series("y", ["1", "NA", "2"]))
    assert column.to_list() == [1, None, 2]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.5, 2.0], "got decimals such as 1.5 in column 'y'; predicting numbers is regression"),
        ([1e300, 2.0], "got decimals such as 1e+300"),
        ([date(2012, 1, 1), date(2012, 1, 2)], "got Date in column 'y'"),
        (["oak", "oak"], r"at least two different labels, got \['oak'\]"),
        (pl.Series([None, None], dtype=pl.String), r"at least two different labels, got \[\]"),
    ],
)
def test_what_cannot_be_a_target_is_refused(values, reason, tmp_path):
    with pytest.raises(StructentError, match=reason.replace("+", r"\+")):
        labels_of(values, tmp_path)
