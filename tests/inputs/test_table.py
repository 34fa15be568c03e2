"""Tables and their labels: every format gives the same rows, every refusal is one sentence."""

import csv
import gzip
import io
import tempfile
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import StructentError
from structent.inputs import open_table
from structent.inputs.table import numbers_from_text

TABLE = pl.DataFrame(
    {"size": [1.5, 2.0, None], "name": ["a", "b,c", None], "ok": [True, False, True]}
)


# The last two would be patterns.
@pytest.fixture(
    params=[
        "t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz", "t.parquet", "T.CSV", "t[1].csv", "t[1].parquet",
    ]
)  # fmt: skip
def table_file(request, tmp_path):
    path = tmp_path / request.param
    if path.suffix == ".parquet":
        TABLE.write_parquet(path)
        return path
    text = TABLE.write_csv(separator="\t" if ".tsv" in path.name else ",")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_every_format_gives_the_table_that_was_written(table_file):
    table = open_table(table_file)
    assert table.frame.equals(TABLE)
    assert table.header == ("size", "name", "ok")


def test_only_the_columns_asked_for_come_in_the_order_asked(table_file):
    table = open_table(table_file, ["ok", "size"])
    assert table.frame.equals(TABLE.select("ok", "size"))
    assert table.header == ("size", "name", "ok")
    assert table.column("ok").to_list() == [True, False, True]
    with pytest.raises(StructentError, match=r"column 'name' of .* was not loaded"):
        table.column("name")


def test_the_file_is_closed_once_it_is_read(table_file):
    table = open_table(table_file)
    table_file.unlink()
    assert table.labels("ok").classes == (False, True)


def test_labels_are_converted_once(table_file):
    table = open_table(table_file)
    assert table.labels("name") is table.labels("name")


@given(
    st.lists(st.text(st.characters(exclude_categories=["C"]), min_size=1), min_size=2, unique=True)
)
def test_a_header_has_the_names_that_were_written(names):
    """By Python's own writer, which doubles quotes and quotes commas and line breaks."""
    assume(not all(name.startswith(" ") for name in names[1:]))  # spaces after separators
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([names, range(len(names))])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
        table = open_table(path)
        assert table.header == tuple(names)
        assert table.frame.to_dict(as_series=False) == {name: [i] for i, name in enumerate(names)}
        assert open_table(path, names[::-1]).frame.columns == names[::-1]


def test_a_column_is_not_a_pattern(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("^a.*$,ab\n1,2\n")
    assert open_table(path, ["^a.*$"]).frame.rows() == [(1,)]


def test_a_decimal_after_thousands_of_whole_numbers_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "1\n" * 5000 + "1.5\n")
    assert open_table(path).column("x")[-1] == 1.5


def test_a_mark_before_the_first_name_is_no_part_of_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfsize,name\n1,a\n")
    table = open_table(path, ["size"])
    assert table.header == ("size", "name")
    assert table.frame.rows() == [(1,)]


def refusal(path, columns=None):
    with pytest.raises(StructentError) as caught:
        open_table(path, columns)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_named_with_the_nearest_one(tmp_path):
    (tmp_path / "trees.csv").write_text("a\n1\n")
    message = refusal(tmp_path / "tres.csv")
    assert message == f"there is no file {tmp_path / 'tres.csv'}; did you mean 'trees.csv'?"


def test_a_folder_is_no_table(tmp_path):
    folder = tmp_path / "many.csv"
    folder.mkdir()
    assert refusal(folder) == f"expected a file, got the folder {folder}; name a file in it"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", b"", "got an empty file"),
        ("t.csv", b"a,b\n", "a table must have at least one row, got none"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "cannot be read: found more fields"),
        ("t.csv", b"a,b\n1,\xe9\n", "cannot be read: invalid utf-8"),
        ("t.csv", bytes(range(256)), "got bytes that are not text"),
        ("t.parquet", b"a,b\n1,2\n", "cannot be read: parquet"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 999, mtime=0)[:30], "cannot be read"),
        ("t.xlsx", b"PK", "a table must end in .csv"),
        ("t.csv", b"a,b,a\n1,2,3\n", "different names, got 'a' more than once"),
        ("t.csv", b"a;b;c\n1;2;3\n", "seem to be separated by ';'"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(name, content, reason, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert reason in refusal(tmp_path / name)


def test_a_column_that_is_not_there_is_refused_with_the_near_one(table_file):
    assert (
        refusal(table_file, ["sise"]) == f"{table_file} has no column 'sise'; did you mean 'size'?"
    )
    assert refusal(table_file, ["zzz"]).endswith("it has 'size', 'name', 'ok'")


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


def labels_of(values, tmp_path, dtype=None):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": pl.Series(values, dtype=dtype)}).write_parquet(path)
    return open_table(path).labels("y")


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


def test_a_word_for_a_missing_number_is_no_class(tmp_path):
    labels = labels_of(["1", "NA", "2"], tmp_path)
    assert labels.column.to_list() == [1, None, 2]
    assert labels.values.tolist() == [1, 2]


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


def test_spaces_after_separators_are_no_part_of_names_and_values(tmp_path):
    file = tmp_path / "spaced.csv"
    file.write_text("size, height, kind, note\n1, 2.5, oak, a\n2, 3, elm,b\n3, , rose, c\n")
    table = open_table(file)
    assert table.header == ("size", "height", "kind", "note")
    assert table.frame["size"].to_list() == [1, 2, 3]
    assert table.frame["kind"].to_list() == ["oak", "elm", "rose"]
    # Of this column not every value has one: they may mean something.
    assert table.frame["note"].to_list() == [" a", "b", " c"]
    assert open_table(file, ["kind"]).labels("kind").classes == ("elm", "oak", "rose")


def test_numbers_after_spaces_are_numbers(tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("a, b, c\n1, 2, 2.5\n3, 4, 1e3\n")
    assert open_table(file).frame.rows() == [(1, 2, 2.5), (3, 4, 1000.0)]
