"""Rows to be scored: the true class, the probabilities and the weight of each, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import as_array, checked_distribution
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructureError
from structent.structure import RandomPartition
from structent.structure.labels import class_indices, plain_values
from structent.structure.targets import Targets


@dataclass(frozen=True, eq=False)
class Rows:
    """What every metric is computed from; a row without weight is left out.

    Attributes
    ----------
    codes
        The true class of each row, (n,); ``n_classes + s`` where no more is known than that it is
        in set s.
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
    ) -> Rows:
        """Return rows of the classes of a structure, whose ``columns`` are where they stand.

        Labels may be names of the blocks of ``named``, and sets of classes, if it is not None.
        """
        checked = checked_proba(proba, len(classes), columns)
        sets: tuple[tuple[int, ...], ...] = ()
        if named is None:
            codes = class_indices(y_true, classes)
        else:
            codes, sets = _codes_and_sets(named.encode(y_true, allow_blocks=True))
        if len(codes) != len(checked):
            raise StructureError(f"y_true has {len(codes)} rows but proba has {len(checked)}")
        if sample_weight is None:
            return cls(codes, checked, np.ones(len(codes)), sets)
        weights = _checked_sample_weight(sample_weight, len(codes))
        # 0 times an infinite loss would be NaN: a row that counts nothing is not looked at.
        return cls(codes, checked, weights, sets).take(weights > 0)

    def take(self, kept: NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(self.codes[kept], self.proba[kept], self.weights[kept], self.sets)


def checked_proba(proba: ArrayLike, n_classes: int, columns: IndexArray | None) -> FloatArray:
    """Return a table of probabilities, (n, classes), its columns in the structure's order."""
    table = as_array(proba, "proba")
    if table.ndim != 2:
        raise StructureError(f"proba must have 2 axes, rows and classes, got shape {table.shape}")
    checked = checked_distribution(table, "proba", n_classes=[n_classes])
    return checked if columns is None else checked[:, columns]


def checked_columns(classes: Any, expected: tuple[Label, ...]) -> IndexArray | None:
    """Return the column of each class of a structure, given the class of each column.

    None where no classes are given: the columns are in the structure's order then.
    """
    if classes is None:
        return None
    codes = class_indices(plain_values(classes), expected)
    counts = np.bincount(codes, minlength=len(expected))
    if (counts != 1).any():
        wrong = int(np.argmax(counts != 1))
        columns = "no column" if counts[wrong] == 0 else f"{counts[wrong]} columns"
        raise StructureError(
            f"classes must name one column for each of the {len(expected)} classes of the "
            f"structure, got {columns} for {expected[wrong]!r}"
        )
    return np.argsort(codes)


def _codes_and_sets(targets: Targets) -> tuple[IndexArray, tuple[tuple[int, ...], ...]]:
    """Return codes of classes and of those sets that occur: a structure has many more blocks."""
    n_classes = len(targets.classes)
    used = np.unique(targets.codes[targets.codes >= n_classes])
    is_class = targets.codes < n_classes
    codes = np.where(is_class, targets.codes, n_classes + np.searchsorted(used, targets.codes))
    return codes, tuple(targets.sets[code] for code in used)


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
