"""Dask tables, labels and weights, chunk by chunk: read, encoded, and used for predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
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
from structent.estimators.columns import Columns, rows_at
from structent.estimators.dask.cluster import Cluster
from structent.estimators.rows import (
    TrainingRows,
    checked_sample_weight,
    code_totals,
    row_weights,
)
from structent.estimators.training import Encoder
from structent.structure.samplers import Structure

_PURPOSE = "DaskStructuredBoostingClassifier"
dask = load_optional("dask", extra="dask", purpose=_PURPOSE)
da = load_optional("dask.array", extra="dask", purpose=_PURPOSE)
dd = load_optional("dask.dataframe", extra="dask", purpose=_PURPOSE)
pandas = load_optional("pandas", extra="dask", purpose=_PURPOSE)

_ORDINARY = 1e6  # the largest mean weight of rows, and the inverse of the least
_NO_LABELS, _NO_WEIGHTS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
_NO_ROW = "some training row must have a weight above 0, got none; check sample_weight"
_NO_VALIDATION = (
    "there must be a row for validation, got none; give more rows, a larger validation_fraction, "
    "an eval_set, or early_stopping_rounds=None"
)


class Chunk(NamedTuple):
    """A chunk of rows that is not computed yet: its table, labels, and weights or None."""

    table: Any
    labels: Any
    weights: Any

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a function of the three, and of more arguments, not computed yet."""
        return dask.delayed(function, pure=False)(*self, *arguments)


def is_dask_table(X: Any) -> bool:
    """Whether X is a Dask array or dataframe."""
    return isinstance(X, da.Array | dd.DataFrame)


def checked_table(X: Any, name: str) -> Any:
    """Return a Dask array or dataframe, whose columns are known and in one chunk."""
    if not is_dask_table(X):
        raise StructentError(
            f"{name} must be a Dask array or dataframe, got {type(X).__name__}; "
            "dask.array.from_array makes one, and StructuredBoostingClassifier needs none"
        )
    if isinstance(X, dd.DataFrame):
        return X
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise StructentError(
            f"{name} must have two axes, rows and a known number of columns, got shape {X.shape}"
        )
    return X.rechunk({1: -1})


def row_of(X: Any) -> Any:
    """Return a made-up row with the columns of a table, to see what a model returns for it."""
    if not isinstance(X, dd.DataFrame):
        return np.zeros((1, X.shape[1]))
    values = [[0] if dtype.kind in "biuf" else [None] for dtype in X.dtypes]
    columns = [pandas.Series(v, dtype=dtype) for v, dtype in zip(values, X.dtypes, strict=True)]
    return pandas.DataFrame(dict(enumerate(columns))).set_axis(X.columns, axis="columns")


def dask_chunks(X: Any, y: Any, sample_weight: Any) -> list[Chunk]:
    """Return the chunks of a table with those of its labels and weights."""
    counts = _row_counts(X)
    weights = [None] * len(counts)
    if sample_weight is not None:
        weights = _column_chunks(sample_weight, "sample_weight", counts)
    parts = zip(_table_chunks(X), _column_chunks(y, "y", counts), weights, strict=True)
    return [Chunk(*part) for part in parts]


def scattered_chunks(X: Any, y: Any, client: Any) -> list[Chunk]:
    """Return the chunks of a table in this process, one sent to each worker."""
    n_chunks = min(len(y), len(client.nthreads()))
    places = np.array_split(np.arange(len(y)), n_chunks)
    labels = np.asarray(y)
    scatter = partial(client.scatter, hash=False)
    return [Chunk(scatter(rows_at(X, p)), scatter(labels[p]), None) for p in places]


def surveyed_structure(
    structure: Structure | str | None,
    chunks: Sequence[Chunk],
    cluster: Cluster,
    *,
    allow_blocks: bool,
) -> Structure | None:
    """Return the structure, built from all labels if it is a short form."""
    labels = None
    if isinstance(structure, str) and not allow_blocks:
        labels = _all_labels(chunks, cluster)
    return given_structure(structure, labels, allow_blocks=allow_blocks)


def surveyed_classes(
    structure: Structure | None, chunks: Sequence[Chunk], cluster: Cluster
) -> Classes:
    """Return the classes of the structure, or of all labels if there is none."""
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
    empty = row_of(X).iloc[:0]
    categories = list(Columns.of(empty).categories)  # refuses dates before anything is read
    places = [j for j, dtype in enumerate(empty.dtypes) if dtype.kind not in "biuf"]
    if not places:
        return Columns(tuple(categories))
    tables = _table_chunks(X.iloc[:, places])
    found = cluster.compute([dask.delayed(_distinct_values)(table) for table in tables], "X")
    for j, *values in zip(places, *found, strict=True):
        categories[j] = _categories(empty.iloc[:, j], [v for part in values for v in part])
    return Columns(tuple(categories))


def surveyed_class_weights(
    class_weight: Any, classes: Classes, chunks: Sequence[Chunk], cluster: Cluster
) -> FloatArray:
    """Return the factor of a row's weight for each code of its label, (codes,)."""
    every = np.arange(classes.n_codes)
    if not isinstance(class_weight, str):
        return row_weights(None, class_weight, every, classes)
    of_all = _shared(classes)
    found = cluster.compute([chunk.apply(_totals, of_all) for chunk in chunks], "y")
    totals: FloatArray = np.sum(found, axis=0)
    # As if each code were one row with the code's total weight.
    weighted = row_weights(totals, class_weight, every, classes)
    class_weights: FloatArray = np.ones(len(every))
    return np.divide(weighted, totals, out=class_weights, where=totals > 0)


def sampled_rows(
    chunks: Sequence[Chunk], n_rows: int, seed: int, cluster: Cluster
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """Return the table, labels and weights of a random sample of at most this many rows."""
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


def encoded_chunks(
    chunks: Sequence[Chunk], encoder: Encoder, class_weights: FloatArray
) -> list[Any]:
    """Return the rows of each chunk as numbers, not computed yet.

    Parameters
    ----------
    chunks
        Tables, labels and weights.
    encoder
        How rows become numbers.
    class_weights
        The factor of a row's weight for each code of its label, (codes,).
    """
    arguments = _shared(encoder), _shared(class_weights)
    return [chunk.apply(_encoded, *arguments) for chunk in chunks]


def training_rows(
    lazy: Sequence[Any], encoder: Encoder, cluster: Cluster
) -> tuple[TrainingRows, FloatArray]:
    """Return encoded chunks of the training rows as Dask arrays, and the total of each code."""
    return _in_arrays(cluster.persist(lazy, "X"), encoder, cluster, if_none=_NO_ROW)


def validation_rows(lazy: Sequence[Any], encoder: Encoder, cluster: Cluster) -> TrainingRows:
    """Return encoded chunks of the rows that decide when to stop as Dask arrays."""
    kept = cluster.persist(lazy, "the eval_set")
    return _in_arrays(kept, encoder, cluster, if_none=_NO_VALIDATION)[0]


def held_back_rows(
    lazy: Sequence[Any], fraction: float, seed: int, encoder: Encoder, cluster: Cluster
) -> tuple[TrainingRows, TrainingRows, FloatArray]:
    """Return encoded chunks as rows to train on, with their totals last, and held-out rows."""
    split = dask.delayed(split_rows, pure=False)
    pairs = [split(rows, fraction, seed, number) for number, rows in enumerate(lazy)]
    kept = cluster.persist(pairs, "X")
    rows, totals = _in_arrays([pair[0] for pair in kept], encoder, cluster, if_none=_NO_ROW)
    held, _ = _in_arrays([pair[1] for pair in kept], encoder, cluster, if_none=_NO_VALIDATION)
    return rows, held, totals


def split_rows(
    rows: TrainingRows, fraction: float, seed: int, number: int
) -> tuple[TrainingRows, TrainingRows]:
    """Return the rows to train on, and the held-out rows: a function of the seed and the chunk.

    Examples
    --------
    >>> rows = TrainingRows(np.zeros((1000, 1)), np.zeros(1000, dtype=int), np.ones(1000))
    >>> training, held = split_rows(rows, 0.2, seed=0, number=3)
    >>> len(training.labels) + len(held.labels), 150 < len(held.labels) < 250
    (1000, True)
    """
    held = np.random.default_rng((seed, number)).random(len(rows.labels)) < fraction
    return rows.take(~held), rows.take(held)


def predictions(X: Any, model: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """Return the predictions of a fitted model's method for a Dask table, as a Dask array."""
    none = getattr(model, method)(row_of(X), *arguments)[:0]
    predicted = dask.delayed(_of_chunk)
    everywhere = _shared(model)
    parts = [predicted(t, everywhere, method, arguments, none) for t in _table_chunks(X)]
    return in_array(parts, _row_counts(X), none)


def in_array(parts: Sequence[Any], counts: Sequence[float], like: NDArray[Any]) -> Any:
    """Return delayed arrays, stacked by rows, as a Dask array of the type of ``like``."""
    tail = like.shape[1:]
    arrays = [
        da.from_delayed(part, shape=(count, *tail), meta=like[:0])
        for part, count in zip(parts, counts, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _shared(value: Any) -> Any:
    """Return a value as one part of a graph that all chunks share."""
    return dask.delayed(value, traverse=False)


def _delayed(array: Any) -> NDArray[Any]:
    # Not optimised: otherwise a key would mean different things here and in a later graph, which
    # the scheduler warns about as a cause of deadlocks.
    delayed: NDArray[Any] = array.to_delayed(optimize_graph=False)
    return delayed


def _table_chunks(X: Any) -> list[Any]:
    """Return the chunks of a table, not computed yet."""
    if isinstance(X, dd.DataFrame):
        return list(X.to_delayed())
    return list(_delayed(X).ravel())


def _row_counts(X: Any) -> tuple[float, ...]:
    """Return the number of rows in each chunk, NaN if it is not known."""
    counts: tuple[float, ...] = (
        (np.nan,) * X.npartitions if isinstance(X, dd.DataFrame) else X.chunks[0]
    )
    return counts


def _column_chunks(values: Any, name: str, counts: tuple[float, ...]) -> list[Any]:
    """Return the chunks of a column, as many as the table has."""
    if not isinstance(values, da.Array | dd.Series) or values.ndim != 1:
        raise StructentError(
            f"{name} must be a Dask array with one axis, or a Dask series, got "
            f"{type(values).__name__} with shape {np.shape(values)}; dask.array.from_array(..., "
            "chunks=X.chunks[0]) makes one"
        )
    n_rows = sum(counts)
    if isinstance(values, da.Array) and not np.isnan(n_rows + values.shape[0]):
        if values.shape[0] != n_rows:
            raise StructentError(f"{name} has {values.shape[0]} rows but X has {n_rows}")
        values = values.rechunk((counts,))
    # Chunks of unknown length can only be matched by number; each pair is checked when computed.
    chunks = list(_delayed(values) if isinstance(values, da.Array) else values.to_delayed())
    if len(chunks) != len(counts):
        raise StructentError(
            f"{name} must have as many chunks as X if their rows are not known, {len(counts)}, "
            f"got {len(chunks)}; rechunk() or repartition() one of them"
        )
    return chunks


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
    # The categories of a categorical type may differ from chunk to chunk: the type is made again.
    dtype = "category" if str(empty.dtype) == "category" else empty.dtype
    column = pandas.Series(values, dtype=dtype, name=empty.name)
    (categories,) = Columns.of(column.to_frame()).categories
    return categories


def _totals(_table: Any, labels: Any, weights: Any, classes: Classes) -> FloatArray:
    codes = classes.encode(label_column(labels, classes))
    return code_totals(codes, _chunk_weights(weights, len(codes)), classes.n_codes)


def _some_rows(table: Any, labels: Any, weights: Any, places: IndexArray) -> tuple[Any, Any, Any]:
    some_weights = None if weights is None else np.asarray(weights)[places]
    return rows_at(table, places), np.asarray(labels)[places], some_weights


def _stacked(tables: Sequence[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    return pandas.concat(tables)


def _in_arrays(
    kept: Sequence[Any], encoder: Encoder, cluster: Cluster, *, if_none: str
) -> tuple[TrainingRows, FloatArray]:
    """Return rows in the memory of the workers as Dask arrays, without chunks that have no row."""
    n_codes = encoder.classes.n_codes
    summaries = cluster.compute([dask.delayed(_summary)(rows, n_codes) for rows in kept], "X")
    counts, totals = zip(*summaries, strict=True)
    filled = [rows for rows, count in zip(kept, counts, strict=True) if count]
    if not filled:
        raise StructentError(if_none)
    _check_weights(float(np.sum(totals)) / sum(counts))
    no_features = np.empty((0, len(encoder.is_categorical)), dtype=np.float32)
    likes: list[NDArray[Any]] = [no_features, _NO_LABELS, _NO_WEIGHTS]
    arrays = (
        in_array([rows[place] for rows in filled], [n for n in counts if n], like)
        for place, like in enumerate(likes)
    )
    return TrainingRows(*arrays), np.sum(totals, axis=0)


def _check_weights(mean: float) -> None:
    """Refuse weights whose sums float32 cannot hold: on Dask they are not scaled."""
    if not 1 / _ORDINARY <= mean <= _ORDINARY:
        raise StructentError(
            f"the mean weight of the rows must be between {1 / _ORDINARY:g} and {_ORDINARY:g} on "
            f"Dask, got {mean:g}; multiply sample_weight by a number that brings it near 1"
        )


def _encoded(
    table: Any, labels: Any, weights: Any, encoder: Encoder, class_weights: FloatArray
) -> TrainingRows:
    """Return the rows of a chunk that have a weight, perhaps none."""
    if len(table) != len(labels):
        raise StructentError(
            f"X and y must have the same rows in every chunk, got chunks of {len(table)} and "
            f"{len(labels)}; make both from one table"
        )
    codes = encoder.classes.encode(label_column(labels, encoder.classes))
    if len(codes) == 0:  # scikit-learn would refuse it
        no_features = np.empty((0, len(encoder.is_categorical)), dtype=np.float32)
        return TrainingRows(no_features, _NO_LABELS, _NO_WEIGHTS)
    of_rows = _chunk_weights(weights, len(codes)) * class_weights[codes]
    rows = TrainingRows(encoder.features(encoder.columns.codes(table)), codes, of_rows)
    return rows.take(of_rows > 0)


def _chunk_weights(weights: Any, n_rows: int) -> FloatArray:
    if weights is not None and len(weights) != n_rows:
        raise StructentError(
            "sample_weight must have the same rows as y in every chunk, got chunks of "
            f"{len(weights)} and {n_rows}; make both from one table"
        )
    return checked_sample_weight(weights, n_rows)


def _summary(rows: TrainingRows, n_codes: int) -> tuple[int, FloatArray]:
    return len(rows.labels), code_totals(rows.labels, rows.weights, n_codes)


def _of_chunk(
    table: Any, model: Any, method: str, arguments: tuple[Any, ...], none: NDArray[Any]
) -> NDArray[Any]:
    if len(table) == 0:  # scikit-learn would refuse it
        return none
    predicted: NDArray[Any] = getattr(model, method)(table, *arguments)
    return predicted
