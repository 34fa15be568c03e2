"""The weight of each training row: its own, times that of its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.estimators.rows import class_totals
from structent.kernels.coarse import weights_of_sets
from structent.structure.labels import unknown_label


def row_weights(
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
    labels: IndexArray,
    classes: Classes,
) -> FloatArray:
    """Return the weights of the rows, (n,): none negative, and not all 0.

    Where the class of a row is not known, but a set that holds it, ``class_weight`` counts with the
    mean over that set, as everywhere in the losses.

    Parameters
    ----------
    sample_weight
        One weight a row; all 1 if None.
    class_weight
        ``{class: weight}``, where a class that is not named has weight 1; ``"balanced"``, by which
        all classes with rows have the same total weight and the sum of the weights stays; or None.
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
    weights: FloatArray = _check_sample_weight(
        sample_weight, labels, dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is not None:
        of_classes = _class_weights(class_weight, labels, weights, classes)
        of_sets = weights_of_sets(of_classes, classes.coarse_sets)
        weights = weights * np.append(of_classes, of_sets)[labels]
    if not (weights.min() >= 0 and weights.max() > 0):
        raise StructentError(
            "the weights of the rows must not be negative nor all be 0, got weights from "
            f"{weights.min():g} to {weights.max():g}; see sample_weight and class_weight"
        )
    return weights


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
    totals = class_totals(labels, weights, classes)
    has_rows: NDArray[np.bool_] = totals > 0
    balanced = np.ones(len(totals))
    balanced[has_rows] = totals.sum() / (has_rows.sum() * totals[has_rows])
    return balanced


def _named_weights(class_weight: Mapping[Any, float], classes: tuple[Any, ...]) -> FloatArray:
    known = set(classes)
    unknown = [label for label in class_weight if label not in known]
    # Where all classes are named, more may be: those of rows that another fold of the data has.
    if unknown and not known <= set(class_weight):
        raise unknown_label(unknown[0], classes)
    return np.array([float(class_weight.get(label, 1.0)) for label in classes])
