"""The design matrix of the linear model: how the columns of a table become its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.columns import CodedTable, Columns, FloatTable
from structent.estimators.rows import check_row_weights

# Below this share of entries that are not 0, products with a sparse matrix take less time.
_SPARSE_BELOW = 0.25
_LARGEST = 1e39  # a little more than the largest float32, the type of the codes
_SMALLEST_SCALE = 1e-100  # what varies less, by weights near 0, counts as constant


@dataclass(frozen=True)
class Design:
    """How the codes of a table become the features of a linear model.

    Numbers are standardised: mean 0 and variance 1 over the training rows where they are known. A
    missing number counts as the mean. If a column had missing numbers in training, one more column
    says "missing". A constant column is 0.

    Categories are columns of 0 and 1, all 0 if the category is missing or was never seen. These
    columns, and those that say "missing", are not standardised: that would divide a rare category
    by its small deviation, and the penalty would hardly act on it, although it has few rows.

    Attributes
    ----------
    columns
        The columns of the table, with the categories of the training rows.
    centre, scale
        The mean and the standard deviation of each column of numbers; 0 and 1 for categories.
    has_missing
        Whether each column is followed by one that says "missing".

    Examples
    --------
    >>> codes = np.array([[1, 0], [3, 1], [np.nan, 1]])
    >>> table = CodedTable(Columns((None, ("blue", "red"))), codes)
    >>> design = Design.of(table, np.ones(3))
    >>> design.names(["size", "colour"])
    ['size', 'size missing', 'colour=blue', 'colour=red']
    >>> design.matrix(codes)
    array([[-1.,  0.,  1.,  0.],
           [ 1.,  0.,  0.,  1.],
           [ 0.,  1.,  0.,  1.]])
    """

    columns: Columns
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    has_missing: tuple[bool, ...]

    def __post_init__(self) -> None:
        lengths = {len(each) for each in (self.centre, self.scale, self.has_missing)}
        if lengths != {len(self.columns.categories)}:
            raise StructentError("a design needs one centre, scale and has_missing per column")
        if not all(abs(centre) <= _LARGEST for centre in self.centre) or not all(
            _SMALLEST_SCALE <= scale <= _LARGEST for scale in self.scale
        ):
            raise StructentError(
                "the means of a design must be finite, its deviations above 0, all within float32"
            )
        if any(np.logical_and(self.has_missing, self.columns.is_categorical)):
            raise StructentError('in a design only columns of numbers can have a "missing" column')
        if not self.n_features:
            raise StructentError(
                "a linear model needs a column with a value in some row, got only columns of "
                "categories that are all missing"
            )

    @classmethod
    def of(cls, table: CodedTable, weights: FloatArray) -> Design:
        """Return the design of training rows, weighted by their weights."""
        check_row_weights(weights)
        if not weights.all():
            table, weights = table[weights > 0], weights[weights > 0]
        columns = table.columns_of_rows()
        numbers = [
            _Number(0.0, 1.0, False) if is_categorical else _Number.of(column, weights)
            for column, is_categorical in zip(table.codes.T, columns.is_categorical, strict=True)
        ]
        return cls(columns, *zip(*numbers, strict=True))

    @property
    def n_features(self) -> int:
        """How many columns the matrix has."""
        return int(self._widths.sum())

    def names(self, names_of_columns: Sequence[str]) -> list[str]:
        """Return the names of the matrix's columns: size, size missing, colour=blue, ..."""
        found: list[str] = []
        for name, categories, has_missing in zip(
            names_of_columns, self.columns.categories, self.has_missing, strict=True
        ):
            if categories is None:
                found += [name, f"{name} missing"] if has_missing else [name]
            else:
                found += [f"{name}={category}" for category in categories]
        return found

    def matrix(self, codes: FloatTable) -> FloatArray | csr_array:
        """Return the features, (n, features), sparse if most are 0 in every row."""
        values, places = self._entries(codes)
        shape = len(codes), self.n_features
        if values.shape[1] < _SPARSE_BELOW * self.n_features:
            kept = values != 0
            row_ends = np.append(0, np.cumsum(kept.sum(axis=1)))
            return csr_array((values[kept], places[kept], row_ends), shape=shape)
        matrix = np.zeros(shape)
        rows, entries = np.nonzero(values)
        matrix[rows, places[rows, entries]] = values[rows, entries]
        return matrix

    def standardised(self, codes: FloatTable) -> FloatArray:
        """Return the columns of numbers, (n, numbers), 0 if they are missing."""
        of_numbers = self.is_number
        centre, scale = np.array(self.centre)[of_numbers], np.array(self.scale)[of_numbers]
        found: FloatArray = (codes[:, of_numbers].astype(np.float64) - centre) / scale
        found[np.isnan(found)] = 0.0
        return found

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Which columns of the table hold numbers, (columns,)."""
        return ~np.array(self.columns.is_categorical)

    @cached_property
    def first(self) -> IndexArray:
        """The first column of the matrix that each column of the table becomes, (columns,)."""
        return np.cumsum(self._widths) - self._widths

    @cached_property
    def _widths(self) -> IndexArray:
        return np.array(
            [
                1 + has_missing if categories is None else len(categories)
                for categories, has_missing in zip(
                    self.columns.categories, self.has_missing, strict=True
                )
            ]
        )

    def _entries(self, codes: FloatTable) -> tuple[FloatArray, IndexArray]:
        """Return the entries of each row that may differ from 0, and their places in the row."""
        says_missing = np.array(self.has_missing)
        categories = codes[:, ~self.is_number]
        is_known = ~np.isnan(categories)
        values = [self.standardised(codes), np.isnan(codes[:, says_missing]), is_known]
        places = [
            np.broadcast_to(self.first[self.is_number], (len(codes), self.is_number.sum())),
            np.broadcast_to(self.first[says_missing] + 1, (len(codes), says_missing.sum())),
            self.first[~self.is_number] + np.where(is_known, categories, 0).astype(np.int64),
        ]
        return np.concatenate(values, axis=1, dtype=np.float64), np.concatenate(places, axis=1)


class _Number(NamedTuple):
    """The mean and deviation of a column of numbers, and whether some of them are missing."""

    centre: float
    scale: float
    has_missing: bool

    @classmethod
    def of(cls, column: NDArray[Any], weights: FloatArray) -> _Number:
        is_known = ~np.isnan(column)
        if not is_known.any():
            return cls(0.0, 1.0, False)  # a "missing" column that is always 1 has no information
        values, has_missing = column[is_known].astype(np.float64), not is_known.all()
        shares = weights[is_known] / weights[is_known].max()  # their sum cannot overflow
        if values.min() == values.max():
            return cls(float(values[0]), 1.0, has_missing)  # exactly the value; a mean is rounded
        centre = float(np.average(values, weights=shares))
        scale = float(np.sqrt(np.average((values - centre) ** 2, weights=shares)))
        return cls(centre, scale if scale >= _SMALLEST_SCALE else 1.0, has_missing)
