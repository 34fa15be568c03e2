"""Tables as arrays of numbers: categories become codes, or columns of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from structent._typing import IndexArray
from structent.errors import StructentError
from structent.structure.labels import is_missing

FloatTable: TypeAlias = NDArray[np.float32]

_CATEGORICAL = ("categor", "enum", "str", "object")  # parts of type names in pandas and polars
_DATES = ("date", "time", "duration", "period")
_NO_FEATURES = ("list", "array", "struct", "binary", "complex")


def is_table(X: Any) -> bool:
    """Whether X is a pandas or polars table: its columns have names and types of their own."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def validated(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """Return X as scikit-learn's ``validate_data`` does, with errors of one sentence each."""
    if np.ma.is_masked(X):
        raise StructentError(
            "X must hold a number in every place, got a masked array with masked ones; "
            "X.filled(np.nan) turns them into missing values"
        )
    if is_table(X):
        _check_names(X)
    try:
        return validate_data(estimator, X, reset=reset, **options)
    except (TypeError, ValueError) as error:
        raise _in_a_sentence(error, X) from None


def rows_at(X: Any, places: IndexArray) -> Any:
    """Return some rows of an array, a sparse matrix, a list, or a pandas or polars table.

    Examples
    --------
    >>> rows_at([[1], [2], [3]], np.array([2, 0]))
    [[3], [1]]
    """
    if hasattr(X, "iloc"):
        return X.take(places, axis=0)  # pandas, whose own brackets mean columns
    if isinstance(X, list | tuple):
        return [X[place] for place in places.tolist()]
    return X[places]


@dataclass(frozen=True)
class Columns:
    """What was learned about a table's columns.

    Attributes
    ----------
    categories
        The categories of each column, in the order of their codes; None for a column of numbers.

    Examples
    --------
    >>> Columns((None, ("red", "blue"))).one_hot(np.array([[7, 0], [8, 1], [9, np.nan]]))
    array([[7., 1., 0.],
           [8., 0., 1.],
           [9., 0., 0.]], dtype=float32)
    """

    categories: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Return the columns of a pandas or polars table, or of an array of numbers."""
        if not is_table(X):
            return cls((None,) * np.shape(X)[1])
        _check_names(X)
        return cls(tuple(_categories(X[name], name) for name in X.columns))

    def codes(self, X: Any) -> FloatTable:
        """Return numbers as they are, and categories as codes; NaN if missing or never seen."""
        if isinstance(X, CodedTable):
            return _recoded(X, self)
        if is_table(X):
            columns = [
                _numbers(X[name], name) if categories is None else _codes(X[name], categories)
                for name, categories in zip(X.columns, self.categories, strict=True)
            ]
            X = np.column_stack(columns)
        checked: FloatTable = check_array(X, dtype=np.float32, ensure_all_finite="allow-nan")
        return checked

    @property
    def is_categorical(self) -> tuple[bool, ...]:
        """Whether each column holds categories."""
        return tuple(categories is not None for categories in self.categories)

    def one_hot(self, codes: NDArray[Any]) -> FloatTable:
        """Return a column for each category, all 0 if it is missing or was never seen."""
        parts = [
            codes[:, [j]] if categories is None else codes[:, [j]] == np.arange(len(categories))
            for j, categories in enumerate(self.categories)
        ]
        return np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")

    @cached_property
    def source(self) -> IndexArray:
        """The column that each column of :meth:`one_hot` comes from."""
        widths = [1 if categories is None else len(categories) for categories in self.categories]
        return np.repeat(np.arange(len(widths)), widths)


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table that is already checked and encoded, for many fits to parts of its rows.

    Estimators take it in place of a table, and do not check it or its categories again.

    Attributes
    ----------
    columns
        The columns of the whole table, whichever rows are taken.
    codes
        Numbers as they are, and categories as codes; NaN where missing, (n, columns).

    Examples
    --------
    >>> table = CodedTable(Columns((None, ("blue", "red"))), np.array([[7, 0], [8, 1], [9, 1]]))
    >>> part = table[[1, 2]]
    >>> part.columns_of_rows()
    Columns(categories=(None, ('red',)))
    >>> part.columns_of_rows().codes(part)
    array([[8., 0.],
           [9., 0.]], dtype=float32)
    """

    columns: Columns
    codes: FloatTable

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        n_rows, n_columns = self.codes.shape
        return n_rows, n_columns

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> CodedTable:
        return CodedTable(self.columns, self.codes[rows])

    def columns_of_rows(self) -> Columns:
        """Return the columns of these rows only: with the categories that occur in them."""
        found = list(self.columns.categories)
        for j, categories in enumerate(found):
            if categories is not None:
                codes = np.unique(self.codes[:, j])
                found[j] = tuple(categories[int(code)] for code in codes[~np.isnan(codes)])
        return Columns(tuple(found))


def validated_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X if it has the columns of the training rows; arrays as numbers, NaN allowed."""
    if isinstance(X, CodedTable):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        return X
    if is_table(X):
        return validated(estimator, X, reset=reset, skip_check_array=True)
    with np.errstate(over="ignore"):  # numbers that become infinite are refused with the others
        return validated(estimator, X, reset=reset, dtype=np.float32, ensure_all_finite="allow-nan")


def table_to_fit(estimator: Any, X: Any) -> CodedTable:
    """Return the training rows of an estimator, with the categories that these rows have."""
    X = validated_table(estimator, X, reset=True)
    columns = X.columns_of_rows() if isinstance(X, CodedTable) else Columns.of(X)
    return CodedTable(columns, columns.codes(X))


def _recoded(table: CodedTable, columns: Columns) -> FloatTable:
    """Return the codes of categories in other columns, NaN for categories that these lack."""
    if table.columns == columns:
        return table.codes.astype(np.float32, copy=False)
    codes = table.codes.astype(np.float32)
    for j, (own, other) in enumerate(
        zip(table.columns.categories, columns.categories, strict=True)
    ):
        if own is not None and other is not None and own != other:
            code_of = {category: code for code, category in enumerate(other)}
            recoded = np.array([code_of.get(category, np.nan) for category in own], np.float32)
            known = ~np.isnan(codes[:, j])
            codes[known, j] = recoded[codes[known, j].astype(np.intp)]
    return codes


def _categories(column: Any, name: Any) -> tuple[Any, ...] | None:
    kind = str(column.dtype).lower()
    if any(word in kind for word in _DATES):
        raise StructentError(
            f"columns must hold numbers or categories, got dates in {name!r}; turn them into "
            "numbers that can matter, e.g. the day of the year"
        )
    if kind.startswith(_NO_FEATURES):
        raise _no_feature(column.dtype, name)
    if not kind.startswith(_CATEGORICAL):
        return None
    try:
        present = {value: None for value in column if not is_missing(value)}
    except TypeError:  # lists and dicts have no hash
        raise _no_feature("lists or the like", name) from None
    if kind == "object" and not any(isinstance(value, str) for value in present):
        return None  # numbers that pandas holds as objects
    if {type(value) for value in present} <= {str, int, float, bool}:
        return tuple(sorted(present, key=lambda value: (str(type(value)), value)))
    strange = next(v for v in present if type(v) not in (str, int, float, bool))
    raise StructentError(
        f"categories must be text, numbers or bools, got {strange!r} in column {name!r}; "
        "convert them, e.g. with str()"
    )


def _codes(column: Any, categories: tuple[Any, ...]) -> FloatTable:
    code_of = {category: float(code) for code, category in enumerate(categories)}
    values = (np.nan if is_missing(value) else code_of.get(value, np.nan) for value in column)
    return np.fromiter(values, dtype=np.float32, count=len(column))


def _numbers(column: Any, name: Any) -> FloatTable:
    if hasattr(column, "cast"):  # polars: a null becomes NaN
        numbers = column.cast(float).to_numpy()
    else:
        try:
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            strange = next(value for value in column if not isinstance(value, Real))
            raise _no_feature(repr(strange), name) from None
    with np.errstate(over="ignore"):  # numbers that become infinite are refused with the others
        return np.asarray(numbers, dtype=np.float32)


def _check_names(X: Any) -> None:
    names = list(X.columns)
    if not names:
        raise StructentError("a table must have at least one column, got none")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StructentError(
            f"the columns of a table must have different names, got {twice!r} twice"
        )


def _no_feature(what: Any, name: Any) -> StructentError:
    return StructentError(f"columns must hold numbers or categories, got {what} in {name!r}")


def _in_a_sentence(error: Exception, X: Any) -> Exception:
    """Return the error for a table that scikit-learn refuses, without the table in its text."""
    first, *others = str(error).splitlines() or [""]
    if first.startswith("The feature names"):
        return error  # with a list of names, for which scikit-learn's own tools look
    if first.startswith("Input X contains NaN"):
        return StructentError(
            "Input X contains NaN; fill in missing values, or use StructuredBoostingClassifier, "
            "which accepts them"
        )
    for name in X.columns if is_table(X) else ():
        if _categories(X[name], name):
            return StructentError(
                f"columns must hold numbers here, got text or categories in {name!r}; encode them, "
                "e.g. by scikit-learn's OneHotEncoder, or use StructuredBoostingClassifier"
            )
    advice = next((f". {line}" for line in others if line.startswith("Reshape")), "")
    # The error is scikit-learn's, whose messages begin like a sentence, or NumPy's.
    is_whole = first[:1].isupper() and not first.startswith(("The DType", "Cannot cast"))
    text = (first if is_whole else f"X must hold numbers: {first}").rstrip(":.") + advice
    return TypeError(text) if isinstance(error, TypeError) else StructentError(text)
