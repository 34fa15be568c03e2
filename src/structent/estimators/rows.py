"""Training rows: features, labels and weights, and which of them are held back for validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import Classes, Structure, mixed_labels
from structent.estimators.table import FloatTable


class TrainingRows(NamedTuple):
    """Features (n, columns), codes of the labels (n,) and weights (n,) of the rows."""

    features: FloatTable
    labels: IndexArray
    weights: FloatArray

    def take(self, kept: NDArray[Any]) -> TrainingRows:
        """Return some of the rows, by index or by mask."""
        return TrainingRows(self.features[kept], self.labels[kept], self.weights[kept])


def classes_of_rows(
    structure: Structure | None, labels: NDArray[Any], eval_set: Any, *, allow_blocks: bool
) -> Classes:
    """Return the classes of a model, and the sets of them that labels of any row mean."""
    if not allow_blocks:
        return Classes.of(structure, labels)
    others = [] if eval_set is None else [mixed_labels(eval_pair(eval_set)[1])]
    return Classes.of_mixed(structure, labels, *others)


def log_prior(rows: TrainingRows, classes: Classes) -> FloatArray:
    """Return the logarithm of (n_c + 1/2) / (n + k/2), where boosting starts from.

    With the half even a class without rows has a finite start.
    """
    return log_prior_of_totals(class_totals(rows.labels, rows.weights, classes))


def log_prior_of_totals(totals: FloatArray) -> FloatArray:
    """Return the same from the total weight of each class, (classes,)."""
    prior: FloatArray = np.log((totals + 0.5) / (totals.sum() + 0.5 * len(totals)))
    return prior


def class_totals(labels: IndexArray, weights: FloatArray, classes: Classes) -> FloatArray:
    """Return the total weight of the rows of each class, (classes,)."""
    return spread_totals(code_totals(labels, weights, classes.n_codes), classes.coarse_sets)


def code_totals(labels: IndexArray, weights: FloatArray, n_codes: int) -> FloatArray:
    """Return the total weight of the rows of each code, (codes,)."""
    return np.bincount(labels, weights=weights, minlength=n_codes).astype(np.float64)


def spread_totals(totals: FloatArray, sets: Sequence[Sequence[int]]) -> FloatArray:
    """Return the total weight of each class, where rows of a set count for its classes.

    They do so in proportion to the prior of the rows whose class is known: one step of EM, which
    for sets that do not overlap is where EM ends. An even split would draw the start towards equal
    classes, the more the more rows are coarse.

    Parameters
    ----------
    totals
        The total weight of each code, the classes first, (codes,).
    sets
        The classes of each set.

    Examples
    --------
    >>> spread_totals(np.array([5.5, 1.5, 7.0, 8.0]), [(0, 1)]).tolist()  # 6 : 2
    [11.5, 3.5, 7.0]
    """
    n_classes = len(totals) - len(sets)
    spread = totals[:n_classes].copy()
    prior = totals[:n_classes] + 0.5
    for members, total in zip(map(list, sets), totals[n_classes:], strict=True):
        spread[members] += total * prior[members] / prior[members].sum()
    return spread


def checked_weights(weights: Any, n_rows: int) -> FloatArray:
    """Return the weights of a chunk of the rows, all 1 if None; they may all be 0."""
    if weights is None:
        return np.ones(n_rows)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_rows,):
        raise StructentError(
            "sample_weight must have the same rows as y in every chunk, got chunks of "
            f"{len(checked)} and {n_rows}; make both from one table"
        )
    wrong = checked[~((checked >= 0) & np.isfinite(checked))]
    if len(wrong):
        raise StructentError(f"sample_weight must be finite and not negative, got {wrong[0]}")
    return checked


def held_back(labels: IndexArray, fraction: float, rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Return which rows are for validation: that fraction of every class, as nearly as can be.

    Of each class one row at least stays for training.
    """
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    spare = by_class[np.diff(labels[by_class], prepend=-1) == 0]
    n_held = min(max(1, round(fraction * len(labels))), len(spare)) if fraction > 0 else 0
    if n_held == 0:
        raise StructentError(
            f"validation_fraction={fraction:g} of {len(labels)} rows leaves no row for validation; "
            "give more rows, an eval_set, or early_stopping_rounds=None"
        )
    # Evenly spread over the classes, from a random place on.
    places = (np.arange(n_held) + rng.uniform()) * (len(spare) / n_held)
    held = np.zeros(len(labels), dtype=bool)
    held[spare[places.astype(int)]] = True
    return held


def checked_eval_set(eval_set: Any, n_columns: int) -> tuple[Any, Any]:
    """Return features and labels of the rows for validation."""
    X, y = eval_pair(eval_set)
    check_eval_columns(X, n_columns)
    n_rows = np.shape(X)[0]
    if len(y) != n_rows or len(y) == 0:
        raise StructentError(
            f"eval_set must have one label for each of its rows, at least one row, got "
            f"{n_rows} rows and {len(y)} labels"
        )
    return X, y


def check_eval_columns(X: Any, n_columns: int) -> None:
    """Refuse validation rows that have not the columns of the training rows."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != n_columns:
        raise StructentError(
            f"eval_set must have the {n_columns} columns of the training rows, got shape {shape}"
        )


def eval_pair(eval_set: Any) -> tuple[Any, Any]:
    """Return the two parts of an ``eval_set``, whatever they are."""
    if isinstance(eval_set, list) and len(eval_set) == 1:
        (eval_set,) = eval_set
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise StructentError(
            f"eval_set must be (X, y), or a list of one such pair, got {type(eval_set).__name__}"
        )
    return eval_set
