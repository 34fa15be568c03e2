"""Folds for cross-validation: each class is spread evenly, or each group stays in one fold.

Rows of one group belong together: the hours of a day, the pictures of a patient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent._typing import IndexArray
from structent.errors import StructentError


def checked_groups(groups: Any, n_rows: int) -> NDArray[Any] | None:
    """Return the group of each row, (n,), or None."""
    if groups is None:
        return None
    checked = np.asarray(groups)
    if checked.shape != (n_rows,):
        raise StructentError(
            f"groups must have one entry for each of the {n_rows} rows, got shape {checked.shape}"
        )
    return checked


def dealt_folds(labels: NDArray[Any], n_folds: int, rng: np.random.RandomState) -> IndexArray:
    """Return the fold of each row; every class is spread evenly, however few rows it has.

    Examples
    --------
    >>> folds = dealt_folds(np.array(["a"] * 4 + ["b"] * 2), 2, np.random.RandomState(0))
    >>> np.bincount(folds[:4]).tolist(), np.bincount(folds[4:]).tolist()
    ([2, 2], [1, 1])
    """
    shuffled = rng.permutation(len(labels))
    codes = np.unique(labels, return_inverse=True)[1]
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[by_class] = np.arange(len(labels)) % n_folds
    return folds


def grouped_folds(groups: NDArray[Any], n_folds: int, rng: np.random.RandomState) -> IndexArray:
    """Return the fold of each row; rows of one group share a fold, and folds have similar sizes.

    Examples
    --------
    >>> grouped_folds(np.array(["x", "y", "x", "z"]), 2, np.random.RandomState(0)).tolist()
    [0, 1, 0, 1]
    """
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(sizes))
    filled = np.zeros(n_folds, dtype=np.int64)
    fold_of_group = np.empty(len(sizes), dtype=np.int64)
    # The largest first, each to the fold that has the fewest rows.
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold = int(filled.argmin())
        fold_of_group[group] = fold
        filled[fold] += sizes[group]
    return fold_of_group[codes]
