"""Values as bins: at most 255 for each column, and one more for missing values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._files import json_line
from structent._threads import in_parts
from structent._typing import IndexArray
from structent.errors import StructentError

Table: TypeAlias = NDArray[np.float32]
BinTable: TypeAlias = NDArray[np.uint8]

_LEAST_BINS, _ROWS_FOR_A_BIN = 64, 16  # if max_bins is not given
MOST_BINS = 255  # a bin is a byte, and the missing values need one
_ROWS_FOR_QUANTILES = 200_000  # more rows would not move a quantile by a bin
_LARGEST = np.finfo(np.float32).max
_LONGEST_HEADER, _HEADER_OF_COLUMN = 100, 30  # bytes, at most


@dataclass(frozen=True, eq=False)
class Bins:
    """How the values of each column become bins.

    A number x is in the bin ``b`` with ``edges[b - 1] < x <= edges[b]``. A category is in the bin
    of its code; where there are more categories than bins, the rarest share the last bin. A missing
    value is in the bin after the last.

    Attributes
    ----------
    edges
        The upper edges of all bins but the last, ascending; empty for a column of categories.
    bin_of_category
        The bin of each category; empty for a column of numbers.

    Examples
    --------
    >>> bins = Bins.of(np.array([[1.0], [2.0], [4.0]], dtype=np.float32))
    >>> bins.edges[0].tolist()
    [1.5, 3.0]
    >>> bins.table(np.array([[0.0], [3.0], [9.0], [np.nan]], dtype=np.float32)).tolist()
    [[0], [1], [2], [3]]
    """

    edges: tuple[Table, ...]
    bin_of_category: tuple[BinTable, ...]

    @classmethod
    def of(
        cls,
        features: Table,
        is_categorical: Sequence[bool] | None = None,
        max_bins: int | None = MOST_BINS,
        rng: np.random.Generator | None = None,
    ) -> Bins:
        """Return the bins of a table, (n, columns): quantiles, or one per value if there are few.

        If there are many rows, quantiles are computed from a sample that ``rng`` draws. Without
        ``max_bins`` there are as many bins as a byte can hold, and fewer for numbers if there are
        few rows.
        """
        if max_bins is not None and not 2 <= max_bins <= MOST_BINS:
            raise StructentError(f"max_bins must be between 2 and {MOST_BINS}, got {max_bins}")
        of_numbers, of_categories = max_bins or _bins_for(len(features)), max_bins or MOST_BINS
        categorical = (False,) * features.shape[1] if is_categorical is None else is_categorical
        sample = features
        if len(features) > _ROWS_FOR_QUANTILES:
            rng = rng or np.random.default_rng(0)
            sample = features[rng.integers(len(features), size=_ROWS_FOR_QUANTILES)]
        none_of_edges, none_of_categories = np.empty(0, np.float32), np.empty(0, np.uint8)
        return cls(
            tuple(
                none_of_edges if is_category else _edges(sample[:, column], of_numbers)
                for column, is_category in enumerate(categorical)
            ),
            tuple(
                _bins_of_categories(features[:, column], of_categories)
                if is_category
                else none_of_categories
                for column, is_category in enumerate(categorical)
            ),
        )

    def to_bytes(self) -> bytes:
        """Return edges and categories of all columns, after a line of JSON with their counts."""
        header = {"edges": list(map(len, self.edges)), "bins": list(map(len, self.bin_of_category))}
        arrays = [*(e.astype("<f4") for e in self.edges), *self.bin_of_category]
        return b"".join([json.dumps(header).encode(), b"\n", *(a.tobytes() for a in arrays)])

    @classmethod
    def from_bytes(cls, content: bytes, n_columns: int) -> Bins:
        """Return the bins that :meth:`to_bytes` wrote, if they have ``n_columns`` columns."""
        try:
            header, rest = json_line(content, _LONGEST_HEADER + _HEADER_OF_COLUMN * n_columns)
            sizes, n_categories = ([int(n) for n in header[name]] for name in ("edges", "bins"))
        except (ValueError, TypeError, KeyError, OverflowError):
            raise _damaged("their header is no JSON object of lists") from None
        if not len(sizes) == len(n_categories) == n_columns:
            raise _damaged(f"they have {len(sizes)} columns, but the model has {n_columns}")
        if min(*sizes, *n_categories) < 0:
            raise _damaged("the sizes of their columns are not valid counts")
        if max(sizes) >= MOST_BINS or 4 * sum(sizes) + sum(n_categories) != len(rest):
            raise _damaged("there are more or fewer than their header says")
        if any(n and m for n, m in zip(sizes, n_categories, strict=True)):
            raise _damaged("a column has both edges and categories")
        edges = np.frombuffer(rest[: 4 * sum(sizes)], "<f4").astype(np.float32)
        of_category = np.frombuffer(rest[4 * sum(sizes) :], np.uint8)
        found = cls(
            tuple(np.split(edges, np.cumsum(sizes)[:-1])),
            tuple(np.split(of_category, np.cumsum(n_categories)[:-1])),
        )
        # Edges are compared, not subtracted, because infinity minus infinity is NaN.
        if not all((of_column[1:] > of_column[:-1]).all() for of_column in found.edges):
            raise _damaged("their edges are not in ascending order")
        if np.isnan(edges).any() or (of_category >= MOST_BINS).any():
            raise _damaged("an edge or a bin is out of range")
        return found

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.edges)

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Whether each column holds categories, (columns,)."""
        return np.array([len(of_category) > 0 for of_category in self.bin_of_category])

    @cached_property
    def n_bins(self) -> IndexArray:
        """The number of bins of each column, without the one for missing values, (columns,)."""
        return np.array(
            [
                int(of_category.max()) + 1 if len(of_category) else len(edges) + 1
                for edges, of_category in zip(self.edges, self.bin_of_category, strict=True)
            ],
            dtype=np.int64,
        )

    def table(self, features: Table, n_threads: int = 1) -> BinTable:
        """Return the bin of each value, (n, columns)."""
        features = np.ascontiguousarray(features, dtype=np.float32)
        binned = np.empty(features.shape, dtype=np.uint8)
        # Padded with infinite edges, which no value exceeds: every search takes as many steps.
        edges = np.full((self.n_columns, MOST_BINS + 1), np.inf, dtype=np.float32)
        for j, of_column in enumerate(self.edges):
            edges[j, : len(of_column)] = of_column
        n_categories = [len(of_category) for of_category in self.bin_of_category]
        in_parts(
            _write_bins,
            len(features),
            n_threads,
            features,
            edges,
            np.concatenate([*self.bin_of_category, np.empty(0, np.uint8)]),
            np.cumsum([0, *n_categories]),
            self.n_bins,
            binned,
        )
        return binned


def _damaged(why: str) -> StructentError:
    return StructentError(f"the bins in the file are damaged: {why}; save the model again")


def _bins_for(n_rows: int) -> int:
    """Return how many bins a column of numbers needs for a number of rows.

    More bins would cost time and do not help small tables (benchmarks/choices.py).
    """
    return min(MOST_BINS, max(_LEAST_BINS, n_rows // _ROWS_FOR_A_BIN))


def _edges(values: Table, max_bins: int) -> Table:
    """Return the edges halfway between neighbouring values, at most one at every quantile."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) <= max_bins:
        below = np.arange(len(distinct) - 1)
    else:
        up_to = np.cumsum(counts)
        wanted = np.arange(1, max_bins) * (up_to[-1] / max_bins)
        # There is no edge above the last value, even if many rows have it.
        below = np.unique(np.minimum(np.searchsorted(up_to, wanted), len(distinct) - 2))
    lower, upper = distinct[below], distinct[below + 1]
    # Infinite values count as the largest floats, so that large numbers do not share their bin.
    finite = np.clip(distinct, -_LARGEST, _LARGEST)
    middle = finite[below] / 2 + finite[below + 1] / 2  # never beyond the largest float
    # The middle of two neighbouring floats is one of the two; it must not be the upper one.
    edges: Table = np.where((lower < middle) & (middle < upper), middle, lower).astype(np.float32)
    return edges


def _bins_of_categories(codes: Table, max_bins: int) -> BinTable:
    """Return the bin of each category: the most frequent have bins of their own."""
    known = codes[~np.isnan(codes)].astype(np.int64)
    counts = np.bincount(known, minlength=1)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    in_order = rank if len(counts) > max_bins else np.arange(len(counts))
    return np.minimum(in_order, max_bins - 1).astype(np.uint8)


@kernel
def _write_bins(
    first: int, last: int, features: Any, edges: Any, bin_of_category: Any, first_category: Any,
    n_bins: Any, binned: Any,
) -> None:  # fmt: skip
    """Write the bins of the rows first to last - 1."""
    for i in range(first, last):
        for j in range(features.shape[1]):
            x = features[i, j]
            begin, end = first_category[j], first_category[j + 1]
            if end > begin:
                code = np.int64(x) if 0 <= x < end - begin else np.int64(-1)  # -1 for NaN, too
                binned[i, j] = bin_of_category[begin + code] if code >= 0 else n_bins[j]
                continue
            if x != x:  # NaN  # noqa: PLR0124
                binned[i, j] = n_bins[j]
                continue
            below, step = 0, (MOST_BINS + 1) // 2
            while step > 0:
                below += step * (edges[j, below + step - 1] < x)
                step //= 2
            binned[i, j] = below
