"""Tables, labels and weights of Dask, chunk by chunk of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from structent._optional import load_optional
from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.classes import label_column
from structent.estimators.dask.cluster import Cluster
from structent.estimators.fitted import Encoder
from structent.estimators.rows import TrainingRows, checked_weights, code_totals

_PURPOSE = "DaskStructuredBoostingClassifier"
dask = load_optional("dask", extra="dask", purpose=_PURPOSE)
da = load_optional("dask.array", extra="dask", purpose=_PURPOSE)
dd = load_optional("dask.dataframe", extra="dask", purpose=_PURPOSE)


class Chunk(NamedTuple):
    """A chunk of rows that is not computed yet: its table, labels, and weights or None."""

    table: Any
    labels: Any
    weights: Any

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function makes of the three, and of more arguments, not computed yet."""
        return dask.delayed(function, pure=False)(*self, *arguments)


def shared(value: Any) -> Any:
    """Return a value as one part of a graph that all chunks share."""
    return dask.delayed(value, traverse=False)


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
    """Return a made-up row with the columns of a table, to learn from what becomes of it."""
    return X._meta_nonempty.iloc[:1] if isinstance(X, dd.DataFrame) else np.zeros((1, X.shape[1]))


def table_chunks(X: Any) -> list[Any]:
    """Return the chunks of a table, not computed yet."""
    if isinstance(X, dd.DataFrame):
        return list(X.to_delayed())
    return list(_delayed(X).ravel())


def row_counts(X: Any) -> tuple[float, ...]:
    """Return the number of rows in each chunk, NaN where it is not known."""
    counts: tuple[float, ...] = (
        (np.nan,) * X.npartitions if isinstance(X, dd.DataFrame) else X.chunks[0]
    )
    return counts


def dask_chunks(X: Any, y: Any, sample_weight: Any) -> list[Chunk]:
    """Return the chunks of a table with those of its labels and weights."""
    counts = row_counts(X)
    weights = [None] * len(counts)
    if sample_weight is not None:
        weights = _column_chunks(sample_weight, "sample_weight", counts)
    parts = zip(table_chunks(X), _column_chunks(y, "y", counts), weights, strict=True)
    return [Chunk(*part) for part in parts]


def scattered_chunks(X: Any, y: Any, client: Any) -> list[Chunk]:
    """Return the chunks of a table in this process, one sent to each worker."""
    n_chunks = min(len(y), len(client.nthreads()))
    places = np.array_split(np.arange(len(y)), n_chunks)
    labels = np.asarray(y)
    scatter = partial(client.scatter, hash=False)
    return [Chunk(scatter(_safe_indexing(X, p)), scatter(labels[p]), None) for p in places]


def predictions(X: Any, model: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """Return what a method of a fitted model predicts for a Dask table, as a Dask array."""
    none = getattr(model, method)(row_of(X), *arguments)[:0]
    predicted = dask.delayed(_of_chunk)
    everywhere = shared(model)
    parts = [predicted(t, everywhere, method, arguments, none) for t in table_chunks(X)]
    return in_array(parts, row_counts(X), none)


def in_array(parts: Sequence[Any], counts: Sequence[float], like: NDArray[Any]) -> Any:
    """Return delayed arrays, one below the other, as a Dask array of the type of ``like``."""
    tail = like.shape[1:]
    arrays = [
        da.from_delayed(part, shape=(count, *tail), meta=like[:0])
        for part, count in zip(parts, counts, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


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
    # Of unknown length, chunks can be matched by number alone; each pair is checked when computed.
    chunks = list(_delayed(values) if isinstance(values, da.Array) else values.to_delayed())
    if len(chunks) != len(counts):
        raise StructentError(
            f"{name} must have as many chunks as X where their rows are not known, {len(counts)}, "
            f"got {len(chunks)}; rechunk() or repartition() one of them"
        )
    return chunks


def _delayed(array: Any) -> NDArray[Any]:
    # As it is: optimised, a key would mean one thing here and another in a later graph, which the
    # scheduler warns of as a cause of deadlocks.
    delayed: NDArray[Any] = array.to_delayed(optimize_graph=False)
    return delayed


def _of_chunk(
    table: Any, model: Any, method: str, arguments: tuple[Any, ...], none: NDArray[Any]
) -> NDArray[Any]:
    if len(table) == 0:  # scikit-learn would refuse it
        return none
    predicted: NDArray[Any] = getattr(model, method)(table, *arguments)
    return predicted


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
        What the weight of a row is multiplied by, for the code of its label, (codes,).
    """
    arguments = shared(encoder), shared(class_weights)
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
    """Return encoded chunks as rows to train on, with their totals last, and rows held back."""
    split = dask.delayed(split_rows, pure=False)
    pairs = [split(rows, fraction, seed, number) for number, rows in enumerate(lazy)]
    kept = cluster.persist(pairs, "X")
    rows, totals = _in_arrays([pair[0] for pair in kept], encoder, cluster, if_none=_NO_ROW)
    held, _ = _in_arrays([pair[1] for pair in kept], encoder, cluster, if_none=_NO_VALIDATION)
    return rows, held, totals


def split_rows(
    rows: TrainingRows, fraction: float, seed: int, number: int
) -> tuple[TrainingRows, TrainingRows]:
    """Return the rows to train on, and those held back: a function of the seed and the chunk.

    Examples
    --------
    >>> rows = TrainingRows(np.zeros((1000, 1)), np.zeros(1000, dtype=int), np.ones(1000))
    >>> training, held = split_rows(rows, 0.2, seed=0, number=3)
    >>> len(training.labels) + len(held.labels), 150 < len(held.labels) < 250
    (1000, True)
    """
    held = np.random.default_rng((seed, number)).random(len(rows.labels)) < fraction
    return rows.take(~held), rows.take(held)


_NO_LABELS, _NO_WEIGHTS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
_NO_ROW = "there must be a row to train on that has a weight, got none; see also sample_weight"
_NO_VALIDATION = (
    "there must be a row for validation, got none; give more rows, a larger validation_fraction, "
    "an eval_set, or early_stopping_rounds=None"
)


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
    no_features = np.empty((0, len(encoder.is_categorical)), dtype=np.float32)
    likes: list[NDArray[Any]] = [no_features, _NO_LABELS, _NO_WEIGHTS]
    arrays = (
        in_array([rows[place] for rows in filled], [n for n in counts if n], like)
        for place, like in enumerate(likes)
    )
    return TrainingRows(*arrays), np.sum(totals, axis=0)


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
    row_weights = checked_weights(weights, len(codes)) * class_weights[codes]
    rows = TrainingRows(encoder.features(encoder.columns.codes(table)), codes, row_weights)
    return rows.take(row_weights > 0)


def _summary(rows: TrainingRows, n_codes: int) -> tuple[int, FloatArray]:
    return len(rows.labels), code_totals(rows.labels, rows.weights, n_codes)
