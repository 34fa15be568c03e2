"""A measure: what each chunk of rows contributes, and the number computed from all chunks.

A NumPy table is one chunk. The chunks of a Dask array are visited where they are, and only their
contributions, a few sums each, are brought together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import as_array, checked_distribution
from structent._optional import load_optional
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructureError
from structent.structure import RandomPartition
from structent.structure.labels import class_indices, plain_values
from structent.structure.targets import LabelSets


class Measure(NamedTuple):
    """A number to be computed from rows, in two steps.

    Attributes
    ----------
    of_rows
        What a chunk of rows contributes.
    of_parts
        The number, from the contributions of all chunks in their order.
    """

    of_rows: Callable[[ScoredRows], Any]
    of_parts: Callable[[Sequence[Any]], float]


def mean_of(values: Callable[[ScoredRows], FloatArray]) -> Measure:
    """Return the weighted mean over rows of one value per row."""

    def of_rows(rows: ScoredRows) -> FloatArray:
        return np.array([rows.weights @ values(rows), rows.weights.sum()])

    def of_parts(parts: Sequence[FloatArray]) -> float:
        total, weight = np.sum(parts, axis=0)
        return float(total / weight)

    return Measure(of_rows, of_parts)


def measured(
    measures: Sequence[Measure],
    known: tuple[Label, ...],
    y_true: Any,
    proba: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: Any,
    named: RandomPartition | None = None,
) -> list[float]:
    """Return the number of each measure, all from one pass over rows of the ``known`` classes.

    Labels may be names of the blocks of ``named``, and sets of classes, if it is not None.
    """
    columns = columns_of(known, proba, classes)

    def of_chunk(labels: Any, table: Any, weights: Any) -> tuple[int, list[Any]]:
        rows = ScoredRows.of(labels, table, weights, known, columns, named)
        return len(rows.codes), [measure.of_rows(rows) for measure in measures]

    if hasattr(proba, "dask"):
        chunks = _of_dask_chunks(of_chunk, y_true, proba, sample_weight)
    else:
        chunks = [of_chunk(y_true, proba, sample_weight)]
    if not any(n for n, _ in chunks):
        raise StructureError("there must be at least one row with a weight above 0, got none")
    by_measure = zip(*(parts for _, parts in chunks), strict=True)
    return [measure.of_parts(parts) for measure, parts in zip(measures, by_measure, strict=True)]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows that every metric is computed from, without rows of weight 0.

    Attributes
    ----------
    codes
        The true class of each row, (n,); ``n_classes + s`` if it is only known to be in set s.
    proba
        The probabilities, with the classes in the structure's order, (n, classes).
    weights
        The weight of each row, (n,), above 0.
    sets
        The classes of each set that a row is known to be in, by number.
    """

    codes: IndexArray
    proba: FloatArray
    weights: FloatArray
    sets: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(
        cls,
        y_true: Any,
        proba: ArrayLike,
        sample_weight: ArrayLike | None,
        classes: tuple[Label, ...],
        columns: IndexArray | None,
        named: RandomPartition | None = None,
    ) -> ScoredRows:
        """Return rows of the classes of a structure, given the column of each class.

        Labels may be names of the blocks of ``named``, and sets of classes, if it is not None.
        """
        checked = checked_proba(proba, len(classes), columns)
        sets: tuple[tuple[int, ...], ...] = ()
        if named is None:
            codes = class_indices(y_true, classes)
        else:
            codes, sets = _codes_and_sets(named.encode_with_blocks(y_true))
        if len(codes) != len(checked):
            raise StructureError(f"y_true has {len(codes)} rows but proba has {len(checked)}")
        if sample_weight is None:
            return cls(codes, checked, np.ones(len(codes)), sets)
        weights = _checked_sample_weight(sample_weight, len(codes))
        # 0 times an infinite loss would be NaN, so rows without weight are left out.
        return cls(codes, checked, weights, sets).take(weights > 0)

    @classmethod
    def of_table(
        cls, y_true: Any, proba: ArrayLike, known: tuple[Label, ...], classes: Any
    ) -> ScoredRows:
        """Return the rows of a whole table, at least one, all of the same weight."""
        rows = cls.of(y_true, proba, None, known, columns_of(known, proba, classes))
        if not len(rows.codes):
            raise StructureError("there must be at least one row, got none")
        return rows

    def take(self, kept: NDArray[np.bool_]) -> ScoredRows:
        """Return some of the rows."""
        return ScoredRows(self.codes[kept], self.proba[kept], self.weights[kept], self.sets)


def checked_proba(proba: ArrayLike, n_classes: int, columns: IndexArray | None) -> FloatArray:
    """Return a table of probabilities, (n, classes), put in order by ``columns``."""
    table = as_array(proba, "proba")
    if table.ndim != 2:
        raise StructureError(f"proba must have 2 axes, rows and classes, got shape {table.shape}")
    checked = checked_distribution(table, "proba", n_classes=[n_classes])
    return checked if columns is None else checked[:, columns]


def columns_of(known: tuple[Label, ...], proba: Any, classes: Any) -> IndexArray | None:
    """Return the column of each ``known`` class, None if the columns are in that order already.

    The names of the columns are ``classes``, or the names of a data frame's columns if that is
    None. A table without names is accepted only if its order cannot be misread: ``predict_proba``
    sorts its columns, and a network has them in the order of its structure, so these two orders
    must be the same.
    """
    names = _own_names(proba, known) if classes is None else plain_values(classes)
    if names is None:
        _refuse_another_order(known)
        return None
    codes = class_indices(names, known)
    counts = np.bincount(codes, minlength=len(known))
    if (counts != 1).any():
        wrong = int(np.argmax(counts != 1))
        columns = "no column" if counts[wrong] == 0 else f"{counts[wrong]} columns"
        raise StructureError(
            f"classes must name one column for each of the {len(known)} classes of the "
            f"structure, got {columns} for {known[wrong]!r}"
        )
    return np.argsort(codes)


def _of_dask_chunks(
    of_chunk: Callable[[Any, Any, Any], Any], y_true: Any, proba: Any, sample_weight: Any
) -> list[Any]:
    """Return the result of a function for each chunk of rows, computed where the chunks are."""
    dask = load_optional("dask", extra="dask", purpose="A metric of a Dask array")
    table = proba.to_dask_array() if hasattr(proba, "to_dask_array") else proba
    if table.ndim != 2:
        raise StructureError(f"proba must have 2 axes, rows and classes, got {table.ndim}")
    table = table.rechunk({1: -1})
    tables = table.to_delayed().ravel().tolist()
    labels = _in_chunks(y_true, "y_true", table.chunks[0], plain_values)
    weights = [None] * len(tables)
    if sample_weight is not None:
        weights = _in_chunks(sample_weight, "sample_weight", table.chunks[0], np.atleast_1d)
    # Not traversed: a list of labels is one value here, not a million that might be lazy.
    leaf = partial(dask.delayed, traverse=False)
    visit = dask.delayed(of_chunk)
    return list(dask.compute(*map(visit, map(leaf, labels), tables, map(leaf, weights))))


def _in_chunks(
    values: Any, name: str, rows: tuple[float, ...], local: Callable[[Any], Any]
) -> list[Any]:
    """Return labels or weights in the chunks of a table, whose numbers of rows are given.

    Values that are not Dask's are converted by ``local`` and cut into chunks.
    """
    if not hasattr(values, "dask"):
        return _slices(local(values), name, rows)
    # A series has no rechunk(): the lengths of its partitions are never known.
    if hasattr(values, "rechunk") and values.shape == (sum(rows),):
        values = values.rechunk((rows,))
    # Chunks of unknown length can only be matched by number; each pair is checked later.
    chunks = list(np.ravel(values.to_delayed()))
    if len(chunks) != len(rows):
        raise StructureError(
            f"{name} must have as many rows as proba, or as many chunks, which are {len(rows)}, "
            f"got {len(chunks)} chunks; rechunk() or repartition() one of them"
        )
    return chunks


def _slices(values: Any, name: str, rows: tuple[float, ...]) -> list[Any]:
    if np.isnan(sum(rows)):
        raise StructureError(
            f"the number of rows in each chunk of proba must be known if {name} is not a Dask "
            "array, got unknown ones; call proba.compute_chunk_sizes() first"
        )
    ends = np.cumsum((0, *rows), dtype=np.int64).tolist()
    if len(values) != ends[-1]:
        raise StructureError(f"{name} has {len(values)} rows but proba has {ends[-1]}")
    return [values[start:end] for start, end in pairwise(ends)]


def _own_names(table: Any, known: tuple[Label, ...]) -> list[Any] | None:
    """Return the names of a data frame's columns, None if they are not names of classes."""
    if not hasattr(table, "columns"):
        return None
    names = plain_values(table.columns)
    # pandas numbers the columns that were given no names.
    if names == list(range(len(names))):
        return None
    is_named = not {name for name in names if isinstance(name, Hashable)}.isdisjoint(known)
    return names if is_named else None


def _refuse_another_order(known: tuple[Label, ...]) -> None:
    """Refuse classes that are not sorted: columns without names could be in either order."""
    try:
        ordered = tuple(sorted(known))
    except TypeError:  # str and int cannot be sorted together: all keep the structure's order
        return
    if ordered == known:
        return
    pairs = zip(known, ordered, strict=True)
    first = next(place for place, (own, other) in enumerate(pairs) if own != other)
    raise StructureError(
        f"proba has no names for its columns, and the structure's order ({_some(known, first)}) "
        f"is not the sorted one ({_some(ordered, first)}); pass classes=model.classes_, or "
        "classes=structure.classes if the columns are in the structure's order"
    )


def _some(classes: tuple[Label, ...], first: int) -> str:
    """Return the two classes from the first one on, with dots for those left out."""
    before = ["..."] if first > 0 else []
    after = ["..."] if first + 2 < len(classes) else []
    return ", ".join([*before, *map(str, classes[first : first + 2]), *after])


def _codes_and_sets(label_sets: LabelSets) -> tuple[IndexArray, tuple[tuple[int, ...], ...]]:
    """Return codes of classes and of those sets that occur: a structure has many more blocks."""
    n_classes, codes = len(label_sets.classes), label_sets.codes
    used = np.unique(codes[codes >= n_classes])
    is_class = codes < n_classes
    codes = np.where(is_class, codes, n_classes + np.searchsorted(used, codes))
    return codes, tuple(label_sets.sets[code] for code in used)


def _checked_sample_weight(sample_weight: ArrayLike, n: int) -> FloatArray:
    given = as_array(sample_weight, "sample_weight")
    if given.shape != (n,) or given.dtype.kind not in "fiub":
        raise StructureError(
            f"sample_weight must be one number for each of the {n} rows, "
            f"got {given.dtype} of shape {given.shape}"
        )
    weights = given.astype(np.float64)
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        raise StructureError(
            f"sample_weight must be finite and not negative, got {weights[wrong][0]:g}"
        )
    return weights
