"""The classes of a classifier: those of its structure, or those of its labels if it has none.

A model's columns are in the order of the structure's classes. What users see, ``classes_`` and the
columns of ``predict_proba``, is sorted, as scikit-learn's scorers take for granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from structent._typing import IndexArray
from structent.errors import LabelError, StructureError
from structent.structure import PartitionSampler, RandomPartition, trivial
from structent.structure.labels import class_indices, is_missing, label_array

Structure: TypeAlias = RandomPartition | PartitionSampler


@dataclass(frozen=True, eq=False)
class Classes:
    """What the columns of a model stand for.

    Attributes
    ----------
    structure
        The structure of the columns: that which was given, else the trivial one.
    labels
        The class of each column.
    values
        The classes as an array, sorted where they can be: scikit-learn's ``classes_``.
    columns
        The column of each of ``values``.
    """

    structure: Structure
    labels: tuple[Any, ...]
    values: NDArray[Any]
    columns: IndexArray

    @classmethod
    def of(cls, structure: Structure | None, y: NDArray[Any]) -> Classes:
        """Return the classes of the structure, or of the labels ``y`` if there is none."""
        if structure is not None:
            return cls.of_structure(checked_structure(structure))
        values = np.unique(y)
        # Places, not labels: without a structure a class may be a float, as in scikit-learn.
        places = trivial(range(len(values)))
        return cls(places, tuple(values.tolist()), values, np.arange(len(values)))

    @classmethod
    def of_structure(cls, structure: Structure) -> Classes:
        """Return the classes of a structure, those without a row of their own among them."""
        values = label_array(structure.classes)
        columns = _sorting_order(values)
        return cls(structure, structure.classes, values[columns], columns)

    def encode(self, y: NDArray[Any]) -> IndexArray:
        """Return the column of each label."""
        return class_indices(y, self.labels)

    def sorted(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the columns of a model, (n, classes), in the order of ``values``."""
        return columns[:, self.columns]


def checked_structure(structure: Any) -> Structure:
    """Return a random partition or a sampler, or say how to make one."""
    if not isinstance(structure, RandomPartition | PartitionSampler):
        raise StructureError(
            f"structure must be a RandomPartition or a sampler, got {type(structure).__name__}; "
            "hierarchy(), circular() and ordinal() make one"
        )
    return structure


def checked_labels(y: Any) -> NDArray[Any]:
    """Return the labels of the training rows as an array with at least two different ones."""
    if y is None:
        # In scikit-learn's words, which its own checks look for.
        raise LabelError("a classifier requires y to be passed, but the target y is None")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    _check_that_none_is_missing(labels)
    check_classification_targets(labels)
    check_two_classes(labels)
    return labels


def check_two_classes(labels: NDArray[Any]) -> None:
    """Refuse rows of one class."""
    present = np.unique(labels)
    if len(present) < 2:
        raise LabelError(
            f"y must hold two classes or more, got {len(present)} class: {present.tolist()}; "
            "there is nothing to tell apart"
        )


def _check_that_none_is_missing(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
    else:
        return
    if missing.any():
        row = int(missing.argmax())
        raise LabelError(
            f"y must hold a label for every row, got {labels[row]} in row {row}; "
            "leave out the rows without one"
        )


def _sorting_order(values: NDArray[Any]) -> IndexArray:
    try:
        return np.argsort(values, kind="stable")
    except TypeError:  # str and int have no order among each other: the structure's is kept
        return np.arange(len(values))
