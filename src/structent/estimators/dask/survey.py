"""What is learned of all chunks before they are encoded: classes, categories, class weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from structent._optional import load_optional
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import (
    Classes,
    checked_labels,
    given_structure,
    label_column,
)
from structent.estimators.columns import Columns
from structent.estimators.dask.chunks import Chunk, da, dask, shared, table_chunks
from structent.estimators.dask.cluster import Cluster
from structent.estimators.rows import checked_weights, code_totals, row_weights
from structent.structure.samplers import Structure


def surveyed_structure(
    structure: Structure | str | None,
    chunks: Sequence[Chunk],
    cluster: Cluster,
    *,
    allow_blocks: bool,
) -> Structure | None:
    """Return the structure, built from all labels where it is a short form."""
    labels = None
    if isinstance(structure, str) and not allow_blocks:
        labels = _all_labels(chunks, cluster)
    return given_structure(structure, labels, allow_blocks=allow_blocks)


def surveyed_classes(
    structure: Structure | None, chunks: Sequence[Chunk], cluster: Cluster
) -> Classes:
    """Return the classes of the structure, or those of all labels if there is none."""
    if structure is not None:
        return Classes.of_structure(structure)
    return Classes.of(None, _all_labels(chunks, cluster))


def surveyed_sets(
    structure: Structure | None, chunks: Sequence[Chunk], cluster: Cluster
) -> Classes:
    """Return the classes of the structure, and the sets of them that any label means."""
    lazy = [dask.delayed(_distinct_mixed_labels)(chunk.labels) for chunk in chunks]
    return Classes.of_mixed(structure, *cluster.compute(lazy, "y"))


def surveyed_columns(X: Any, cluster: Cluster) -> Columns:
    """Return the columns of a table, with the categories that it has anywhere."""
    if isinstance(X, da.Array):
        return Columns((None,) * X.shape[1])
    empty = X._meta
    categories = list(Columns.of(empty).categories)  # refuses dates before anything is read
    places = [j for j, dtype in enumerate(empty.dtypes) if dtype.kind not in "biuf"]
    if not places:
        return Columns(tuple(categories))
    tables = table_chunks(X.iloc[:, places])
    found = cluster.compute([dask.delayed(_distinct_values)(table) for table in tables], "X")
    for j, *values in zip(places, *found, strict=True):
        categories[j] = _categories(empty.iloc[:, j], [v for part in values for v in part])
    return Columns(tuple(categories))


def surveyed_class_weights(
    class_weight: Any, classes: Classes, chunks: Sequence[Chunk], cluster: Cluster
) -> FloatArray:
    """Return what the weight of a row is multiplied by, for the code of its label, (codes,)."""
    every = np.arange(classes.n_codes)
    if not isinstance(class_weight, str):
        return row_weights(None, class_weight, every, classes)
    of_all = shared(classes)
    found = cluster.compute([chunk.apply(_totals, of_all) for chunk in chunks], "y")
    totals: FloatArray = np.sum(found, axis=0)
    # As if each code were one row that has all its weight.
    weighted = row_weights(totals, class_weight, every, classes)
    class_weights: FloatArray = np.ones(len(every))
    return np.divide(weighted, totals, out=class_weights, where=totals > 0)


def sampled_rows(
    chunks: Sequence[Chunk], n_rows: int, seed: int, cluster: Cluster
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """Return the table, labels and weights of at most so many rows, drawn from all alike."""
    counts = cluster.compute([dask.delayed(len)(chunk.labels) for chunk in chunks], "y")
    ends = np.cumsum(counts)
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(ends[-1], min(n_rows, ends[-1]), replace=False, shuffle=False))
    if len(drawn) == 0:
        raise StructentError("X must have at least one row, got none")
    places = np.split(drawn, np.searchsorted(drawn, ends[:-1]))
    lazy = [
        chunk.apply(_some_rows, here - (end - count))
        for chunk, here, end, count in zip(chunks, places, ends, counts, strict=True)
        if len(here)
    ]
    tables, labels, weights = zip(*cluster.compute(lazy, "X"), strict=True)
    is_weighted = weights[0] is not None
    return (
        _stacked(tables),
        np.concatenate(labels),
        np.concatenate(weights) if is_weighted else None,
    )


def _all_labels(chunks: Sequence[Chunk], cluster: Cluster) -> NDArray[Any]:
    """Return the different labels of all chunks, some of them more than once."""
    found = cluster.compute([dask.delayed(_distinct_labels)(chunk.labels) for chunk in chunks], "y")
    return checked_labels(np.concatenate(found))


def _distinct_labels(labels: Any) -> NDArray[Any]:
    column = column_or_1d(labels)
    if len(column):
        check_classification_targets(column)
    return np.unique(column)


def _distinct_mixed_labels(labels: Any) -> list[Any]:
    column = checked_labels(labels, allow_blocks=True)
    return list({frozenset(y) if isinstance(y, set) else y for y in column})


def _distinct_values(table: Any) -> list[list[Any]]:
    return [table.iloc[:, j].dropna().unique().tolist() for j in range(table.shape[1])]


def _categories(empty: Any, values: list[Any]) -> tuple[Any, ...] | None:
    pandas = load_optional("pandas", extra="dask", purpose="A Dask dataframe")
    # The categories of a categorical type may differ from chunk to chunk: the type is made anew.
    dtype = "category" if str(empty.dtype) == "category" else empty.dtype
    column = pandas.Series(values, dtype=dtype, name=empty.name)
    (categories,) = Columns.of(column.to_frame()).categories
    return categories


def _totals(_table: Any, labels: Any, weights: Any, classes: Classes) -> FloatArray:
    codes = classes.encode(label_column(labels, classes))
    return code_totals(codes, checked_weights(weights, len(codes)), classes.n_codes)


def _some_rows(table: Any, labels: Any, weights: Any, places: IndexArray) -> tuple[Any, Any, Any]:
    some_weights = None if weights is None else np.asarray(weights)[places]
    return _safe_indexing(table, places), np.asarray(labels)[places], some_weights


def _stacked(tables: Sequence[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    return load_optional("pandas", extra="dask", purpose="A Dask dataframe").concat(tables)
