"""Chunks of training rows on the workers: encoded, split, and brought together as Dask arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.estimators.chunks import Chunk, dask, in_array, shared
from structent.estimators.classes import label_column
from structent.estimators.cluster import Cluster
from structent.estimators.fitted import Encoder
from structent.estimators.rows import TrainingRows, checked_weights, code_totals


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
