"""Tables of numbers and categories, from pandas and polars."""

import ast
import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from structent import StructentError, StructuredBoostingClassifier
from structent.estimators.boosting import coded_table
from structent.estimators.columns import Columns, rows_at
from tests.conftest import PROJECT
from tests.estimators.problems import ENGINES

pytestmark = [pytest.mark.requires(name) for name in ("pandas", "polars")]

VALUES = {
    "size": [1.5, None, 3.0, 4.0],
    "count": [1, 2, None, 4],
    "colour": ["red", "blue", None, "red"],
    "wet": [True, False, True, True],
}
PANDAS = pd.DataFrame(VALUES).astype({"count": "Int64"})
POLARS = pl.DataFrame(VALUES)
KINDS = {
    "pandas": PANDAS,
    "pandas, categorical": PANDAS.astype({"colour": "category"}),
    "pandas, object": PANDAS.astype({"colour": "object"}),
    "polars": POLARS,
    "polars, categorical": POLARS.with_columns(pl.col("colour").cast(pl.Categorical)),
    "polars, enum": POLARS.with_columns(pl.col("colour").cast(pl.Enum(["red", "blue", "green"]))),
}


@pytest.mark.parametrize("table", KINDS.values(), ids=KINDS.keys())
def test_numbers_stay_and_categories_become_codes(table):
    columns = Columns.of(table)
    assert columns.categories == (None, None, ("blue", "red"), None)
    nan = np.nan
    wanted = [[1.5, 1, 1, 1], [nan, 2, 0, 0], [3, nan, nan, 1], [4, 4, 1, 1]]
    np.testing.assert_array_equal(columns.codes(table), np.array(wanted, dtype=np.float32))


@pytest.mark.parametrize("table", KINDS.values(), ids=KINDS.keys())
def test_each_category_gets_a_column_and_what_is_missing_or_new_gets_none(table):
    columns = Columns((None, None, ("blue", "green"), None))
    codes = columns.codes(table)
    assert columns.one_hot(codes)[:, 2:4].tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    assert columns.source.tolist() == [0, 1, 2, 2, 3]


def test_numbers_that_pandas_holds_as_objects_are_numbers():
    table = pd.DataFrame({"a": pd.Series([1, 2.5, None], dtype=object)})
    assert Columns.of(table).categories == (None,)
    np.testing.assert_array_equal(
        Columns.of(table).codes(table), np.array([[1], [2.5], [np.nan]], dtype=np.float32)
    )


def test_integer_categories_are_categories():
    table = pd.DataFrame({"a": pd.Categorical([30, 10, 30])})
    assert Columns.of(table).categories == ((10, 30),)
    assert Columns.of(table).codes(table)[:, 0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("library", [pd, pl])
def test_dates_are_refused_with_advice(library):
    table = library.DataFrame(
        {"day": [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)]}
    )
    with pytest.raises(StructentError, match="got dates in 'day'; turn them into numbers"):
        Columns.of(table)


def test_categories_that_no_file_could_hold_are_refused():
    table = pd.DataFrame({"a": pd.Categorical([("x", 1), ("y", 2)])})
    with pytest.raises(
        StructentError, match=r"text, numbers or bools, got \('x', 1\) in column 'a'"
    ):
        Columns.of(table)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey"], size=n)
    size = rng.normal(size=n)
    size[rng.random(n) < 0.1] = np.nan
    label = np.where(np.isin(colour, ["red", "grey"]), "warm", np.where(size > 0, "cold", "cool"))
    return {"size": size, "colour": colour}, label


@ENGINES
@pytest.mark.parametrize("library", [pd, pl])
def test_categories_are_learned_from_by_every_engine(engine, library):
    values, labels = rows()
    table = library.DataFrame(values)
    model = StructuredBoostingClassifier(
        n_estimators=60, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1, **engine
    ).fit(table, labels)
    known = ~np.isnan(values["size"])
    assert (model.predict(table)[known] == labels[known]).mean() > 0.97
    assert model.feature_names_in_.tolist() == ["size", "colour"]
    assert model.feature_importances_.shape == (2,)
    new = library.DataFrame({"size": [0.0], "colour": ["purple"]})
    assert model.predict_proba(new).sum() == pytest.approx(1)


def test_columns_of_another_order_are_refused():
    values, labels = rows(50)
    model = StructuredBoostingClassifier(n_estimators=2, n_jobs=1).fit(pd.DataFrame(values), labels)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame({name: values[name] for name in ("colour", "size")}))


NUMBERS = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("table", "as_array"),
    [
        (NUMBERS, np.asarray),
        (csr_array(NUMBERS), lambda rows: rows.toarray()),
        (NUMBERS.tolist(), np.asarray),
        (pd.DataFrame(NUMBERS, columns=["a", "b"], index=[7, 8, 9, 3]), np.asarray),
        (pl.DataFrame(NUMBERS, schema=["a", "b"]), np.asarray),
    ],
    ids=["array", "sparse", "list", "pandas", "polars"],
)
def test_rows_are_taken_by_their_place_from_any_table(table, as_array):
    taken = rows_at(table, np.array([3, 0, 0]))
    assert type(taken) is type(table)
    np.testing.assert_array_equal(as_array(taken), NUMBERS[[3, 0, 0]])
    assert len(as_array(rows_at(table, np.array([], dtype=int)))) == 0


def test_rows_of_a_table_keep_the_types_of_its_columns():
    for table in KINDS.values():
        assert list(rows_at(table, np.array([1, 0])).dtypes) == list(table.dtypes)


LIBRARIES = ("sklearn", "pandas", "polars", "dask", "distributed", "xgboost", "lightgbm")


def private_names(source):
    """Return what code takes from the inside of other libraries."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LIBRARIES):
            parts = [*node.module.split("."), *(alias.name for alias in node.names)]
            yield from (part for part in parts if part.startswith("_"))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_meta"):
            yield node.attr  # of a Dask dataframe


@pytest.mark.parametrize(
    "path", sorted((PROJECT / "src/structent/estimators").rglob("*.py")), ids=lambda path: path.name
)
def test_estimators_use_nothing_private_of_other_libraries(path):
    assert list(private_names(path.read_text())) == []


@pytest.mark.parametrize("library", [pd, pl])
def test_parts_of_a_coded_table_are_coded_as_the_parts_alone(library):
    texts = ["red", "blue", "red", None, "teal", "blue"]
    table = library.DataFrame({"length": [1.0, 2.0, None, 4.0, 5.0, 6.0], "colour": texts})
    coded = coded_table(table)
    train, test = [0, 2, 3, 4], [1, 5, 0]
    of_train = table.iloc[train] if library is pd else table[train]
    of_test = table.iloc[test] if library is pd else table[test]
    columns = Columns.of(of_train)
    assert coded[train].columns_of_rows() == columns
    np.testing.assert_array_equal(columns.codes(coded[train]), columns.codes(of_train))
    np.testing.assert_array_equal(columns.codes(coded[test]), columns.codes(of_test))  # no blue


@ENGINES
def test_a_coded_table_is_fitted_and_predicted_like_the_table(engine):
    values, y = rows()
    X = pd.DataFrame(values)
    model = StructuredBoostingClassifier(n_estimators=5, random_state=0, n_jobs=1, **engine)
    plain = model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:])).predict_proba(X)
    coded = coded_table(X)
    model.fit(coded[:200], y[:200], eval_set=(coded[200:], y[200:]))
    np.testing.assert_array_equal(model.predict_proba(coded), plain)
    np.testing.assert_array_equal(model.predict_proba(X), plain)
