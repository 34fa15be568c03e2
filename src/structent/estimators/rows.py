"""Training rows: features, labels and weights, and which rows are held out for validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import Classes, CodedLabels, Labels, mixed_labels
from structent.estimators.columns import FloatTable
from structent.estimators.folds import grouped_folds
from structent.kernels.coarse import weights_of_sets
from structent.structure.labels import unknown_label
from structent.structure.samplers import Structure

_ORDINARY = 16  # weights of up to two to this power, and down to its inverse, are left as they are
_MOST_EXPONENT = 1000  # of a power of two that float64 can hold


class TrainingRows(NamedTuple):
    """Features (n, columns), codes of the labels (n,), weights (n,) and groups (n,) of the rows."""

    features: FloatTable
    labels: IndexArray
    weights: FloatArray
    groups: NDArray[Any] | None = None

    def take(self, kept: NDArray[Any]) -> TrainingRows:
        """Return some of the rows, by index or by mask."""
        groups = None if self.groups is None else self.groups[kept]
        return TrainingRows(self.features[kept], self.labels[kept], self.weights[kept], groups)

    def times_two_to(self, exponent: int) -> TrainingRows:
        """Return the rows with their weights multiplied by a power of two."""
        return self._replace(weights=np.ldexp(self.weights, exponent)) if exponent else self


def ordinary_exponent(weights: FloatArray) -> int:
    """Return the power of two that scales the weights so that no float overflows in their sums.

    Examples
    --------
    >>> ordinary_exponent(np.array([1.0, 300.0])), ordinary_exponent(np.array([1.0, 2.0**300]))
    (0, -301)
    """
    largest = weights.max(initial=0.0)
    if largest == 0 or 2**-_ORDINARY <= largest <= 2**_ORDINARY:
        return 0
    return -int(np.frexp(largest)[1])


def classes_of_rows(
    structure: Structure | None,
    labels: Labels,
    eval_set: Any,
    *,
    allow_blocks: bool,
) -> Classes:
    """Return the classes of a model, and the sets of them that labels of any row mean."""
    if not allow_blocks:
        return Classes.of(structure, labels)
    if eval_set is None:
        return Classes.of_mixed(structure, labels)
    y = eval_pair(eval_set)[1]
    others = y if isinstance(y, CodedLabels) else mixed_labels(y)
    return Classes.of_mixed(structure, labels, others)


def row_weights(
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
    labels: IndexArray,
    classes: Classes,
) -> FloatArray:
    """Return the weights of the rows, (n,): none negative, and not all 0.

    If only a set of classes is known for a row, its ``class_weight`` is the mean over that set, as
    everywhere in the losses.

    Parameters
    ----------
    sample_weight
        One weight per row; all 1 if None.
    class_weight
        ``{class: weight}``, where a class that is not named has weight 1; ``"balanced"``, which
        gives all classes with rows the same total weight and keeps the sum of the weights; or None.
    labels
        The code of each row's label.
    classes
        The classes of the model, and the sets of them that codes mean.

    Examples
    --------
    >>> classes = Classes.of(None, np.array(["common", "rare"]))
    >>> labels = np.array([0, 0, 0, 1])
    >>> row_weights(None, {"rare": 3.0}, labels, classes).tolist()
    [1.0, 1.0, 1.0, 3.0]
    >>> (3 * row_weights(None, "balanced", labels, classes)).round(9).tolist()
    [2.0, 2.0, 2.0, 6.0]
    """
    weights = checked_sample_weight(sample_weight, len(labels))
    if class_weight is not None:
        of_classes = _class_weights(class_weight, labels, weights, classes)
        of_sets = weights_of_sets(of_classes, classes.coarse_sets)
        with np.errstate(over="ignore"):
            weights = weights * np.append(of_classes, of_sets)[labels]
    check_row_weights(weights)
    return weights


def check_row_weights(weights: FloatArray) -> None:
    """Refuse weights that are negative, infinite or all 0."""
    if not (weights.min() >= 0 and 0 < weights.max() < np.inf):
        raise StructentError(
            "the weights of the rows must be finite, and not be negative nor all be zero, got "
            f"weights from {weights.min():g} to {weights.max():g}; see sample_weight and "
            "class_weight"
        )


def checked_sample_weight(sample_weight: Any, n_rows: int) -> FloatArray:
    """Return the weight of each row, (n,), all 1 if None; one number is the weight of every row.

    Examples
    --------
    >>> checked_sample_weight([1, 0], 2).tolist(), checked_sample_weight(3, 2).tolist()
    ([1.0, 0.0], [3.0, 3.0])
    """
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":
            raise TypeError  # NumPy would take the real part
        checked = given.astype(np.float64)
    except (TypeError, ValueError):
        raise StructentError(
            f"sample_weight must hold numbers, got {type(sample_weight).__name__} of other values"
        ) from None
    if checked.ndim == 0:
        checked = np.full(n_rows, checked)
    if checked.shape != (n_rows,):
        raise StructentError(
            f"sample_weight must be one number for each of the {n_rows} rows, got shape "
            f"{checked.shape}"
        )
    wrong = checked[~((checked >= 0) & np.isfinite(checked))]
    if len(wrong):
        raise StructentError(f"sample_weight must be finite and not negative, got {wrong[0]}")
    return checked


def held_back(labels: IndexArray, fraction: float, rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Return which rows are for validation: that fraction of every class, up to rounding.

    At least one row of each class stays for training.
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
    # Evenly spread over the classes, from a random start.
    places = (np.arange(n_held) + rng.uniform()) * (len(spare) / n_held)
    held = np.zeros(len(labels), dtype=bool)
    held[spare[places.astype(int)]] = True
    return held


def held_back_groups(
    groups: NDArray[Any], fraction: float, rng: np.random.RandomState
) -> NDArray[np.bool_]:
    """Return which rows are for validation: whole groups with about that fraction of the rows.

    Examples
    --------
    >>> days = np.repeat(["mon", "tue", "wed", "thu"], 6)
    >>> held = held_back_groups(days, 0.25, np.random.RandomState(0))
    >>> held.reshape(4, 6).all(axis=1).sum(), held.sum()
    (np.int64(1), np.int64(6))
    """
    n_groups = len(np.unique(groups))
    if n_groups < 2 or fraction <= 0:
        raise StructentError(
            f"validation_fraction={fraction:g} of {n_groups} groups leaves no group for "
            "validation; give more groups, an eval_set, or early_stopping_rounds=None"
        )
    n_folds = min(max(2, round(1 / fraction)), n_groups)
    held: NDArray[np.bool_] = grouped_folds(groups, n_folds, rng) == 0
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
    """Refuse validation rows without the columns of the training rows."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != n_columns:
        raise StructentError(
            f"eval_set must have the {n_columns} columns of the training rows, got shape {shape}"
        )


def eval_pair(eval_set: Any) -> tuple[Any, Any]:
    """Return the two parts of an ``eval_set``, unchecked."""
    if isinstance(eval_set, list) and len(eval_set) == 1:
        (eval_set,) = eval_set
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise StructentError(
            f"eval_set must be (X, y), or a list of one such pair, got {type(eval_set).__name__}"
        )
    return eval_set


def log_prior(rows: TrainingRows, classes: Classes) -> FloatArray:
    """Return the logarithm of (n_c + 1/2) / (n + k/2), the start of boosting.

    Because of the half, even a class without rows has a finite start.
    """
    return log_prior_of_totals(*_class_totals(rows.labels, rows.weights, classes))


def log_prior_of_totals(totals: FloatArray, half: float = 0.5) -> FloatArray:
    """Return the same from the total weight of each class, (classes,)."""
    prior: FloatArray = np.log((totals + half) / (totals.sum() + half * len(totals)))
    return prior


def code_totals(labels: IndexArray, weights: FloatArray, n_codes: int) -> FloatArray:
    """Return the total weight of the rows of each code, (codes,)."""
    return np.bincount(labels, weights=weights, minlength=n_codes).astype(np.float64)


def spread_totals(
    totals: FloatArray, sets: Sequence[Sequence[int]], half: float = 0.5
) -> FloatArray:
    """Return the total weight of each class; rows of a set count for the classes of the set.

    They count in proportion to the prior of the rows whose class is known. This is one step of EM;
    if sets do not overlap, EM ends there. An even split would pull the start towards equal
    classes, the more so the more rows are coarse.

    Parameters
    ----------
    totals
        The total weight of each code, the classes first, (codes,).
    sets
        The classes of each set.
    half
        What the prior adds to each class, in the unit of the weights.

    Examples
    --------
    >>> spread_totals(np.array([5.5, 1.5, 7.0, 8.0]), [(0, 1)]).tolist()  # 6 : 2
    [11.5, 3.5, 7.0]
    """
    n_classes = len(totals) - len(sets)
    spread = totals[:n_classes].copy()
    prior = totals[:n_classes] + half
    for members, total in zip(map(list, sets), totals[n_classes:], strict=True):
        spread[members] += total * prior[members] / prior[members].sum()
    return spread


def _class_weights(
    class_weight: Mapping[Any, float] | str,
    labels: IndexArray,
    weights: FloatArray,
    classes: Classes,
) -> FloatArray:
    if isinstance(class_weight, Mapping):
        return _named_weights(class_weight, classes.labels)
    if not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise StructentError(
            f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}"
        )
    totals, _ = _class_totals(labels, weights, classes)
    has_rows: NDArray[np.bool_] = totals > 0
    balanced = np.ones(len(totals))
    balanced[has_rows] = totals.sum() / (has_rows.sum() * totals[has_rows])
    return balanced


def _named_weights(class_weight: Mapping[Any, float], classes: tuple[Any, ...]) -> FloatArray:
    known = set(classes)
    unknown = [label for label in class_weight if label not in known]
    # If all classes are named, others may be named, too: they may have rows in another fold.
    if unknown and not known <= set(class_weight):
        raise unknown_label(unknown[0], classes)
    return np.array([float(class_weight.get(label, 1.0)) for label in classes])


def _class_totals(
    labels: IndexArray, weights: FloatArray, classes: Classes
) -> tuple[FloatArray, float]:
    """Return the total weight of the rows of each class, (classes,), and half a row.

    Both are in a unit in which no sum overflows.
    """
    exponent = ordinary_exponent(weights)
    totals = code_totals(labels, np.ldexp(weights, exponent), classes.n_codes)
    half = float(
        np.ldexp(0.5, min(exponent, _MOST_EXPONENT))
    )  # finite; weights that need a larger exponent are negligible beside half a row
    return spread_totals(totals, classes.coarse_sets, half), half
