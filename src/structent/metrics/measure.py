"""A measure: what each chunk of rows contributes, and what the contributions make together.

A NumPy table is one chunk. Those of a Dask array are visited where they are, and only the
contributions, a few sums each, are brought together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structent._optional import load_optional
from structent._typing import FloatArray, Label
from structent.errors import StructureError
from structent.metrics.rows import Rows, checked_columns
from structent.structure import RandomPartition
from structent.structure.labels import plain_values


class Measure(NamedTuple):
    """A number to be computed from rows, in two steps.

    Attributes
    ----------
    of_rows
        What a chunk of rows contributes.
    of_parts
        The number, from the contributions of all chunks in their order.
    """

    of_rows: Callable[[Rows], Any]
    of_parts: Callable[[Sequence[Any]], float]


def mean_of(values: Callable[[Rows], FloatArray]) -> Measure:
    """Return the weighted mean of one value a row."""

    def of_rows(rows: Rows) -> FloatArray:
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
    columns = checked_columns(classes, known)

    def of_chunk(labels: Any, table: Any, weights: Any) -> tuple[int, list[Any]]:
        rows = Rows.of(labels, table, weights, known, columns, named)
        return len(rows.codes), [measure.of_rows(rows) for measure in measures]

    if hasattr(proba, "dask"):
        chunks = _of_dask_chunks(of_chunk, y_true, proba, sample_weight)
    else:
        chunks = [of_chunk(y_true, proba, sample_weight)]
    if not any(n for n, _ in chunks):
        raise StructureError("there must be at least one row with a weight above 0, got none")
    by_measure = zip(*(parts for _, parts in chunks), strict=True)
    return [measure.of_parts(parts) for measure, parts in zip(measures, by_measure, strict=True)]


def _of_dask_chunks(
    of_chunk: Callable[[Any, Any, Any], Any], y_true: Any, proba: Any, sample_weight: Any
) -> list[Any]:
    """Return what a function makes of each chunk of rows, computed where the chunks are."""
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
    # Not traversed: a list of labels is one thing here, not a million that might be lazy.
    leaf = partial(dask.delayed, traverse=False)
    visit = dask.delayed(of_chunk)
    return list(dask.compute(*map(visit, map(leaf, labels), tables, map(leaf, weights))))


def _in_chunks(
    values: Any, name: str, rows: tuple[float, ...], local: Callable[[Any], Any]
) -> list[Any]:
    """Return a column in the chunks of a table, whose numbers of rows are given.

    A column that is not of Dask is made a sequence with ``local`` and cut.
    """
    if not hasattr(values, "dask"):
        return _slices(local(values), name, rows)
    # A series has no rechunk(): the lengths of its partitions are never known.
    if hasattr(values, "rechunk") and values.shape == (sum(rows),):
        values = values.rechunk((rows,))
    # Chunks of unknown length can be matched by number alone; each pair is checked when visited.
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
            f"the rows in each chunk of proba must be known where {name} is not of Dask, "
            "got unknown ones; call proba.compute_chunk_sizes() first"
        )
    ends = np.cumsum((0, *rows), dtype=np.int64).tolist()
    if len(values) != ends[-1]:
        raise StructureError(f"{name} has {len(values)} rows but proba has {ends[-1]}")
    return [values[start:end] for start, end in pairwise(ends)]
