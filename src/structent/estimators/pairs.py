"""Labels that are pairs, as products of structures have them, where scikit-learn takes none.

NumPy makes two columns of a list of pairs, and scikit-learn takes pairs for sets of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from structent._typing import Label
from structent.structure.labels import with_columns_joined


def with_pairs(y: Any, classes: tuple[Label, ...] | None) -> Any:
    """Return labels that are pairs as an array of objects, (n,), and others as they are.

    Pairs may come as tuples, or as a table or array with one column for each part, which are told
    by the classes of the structure.

    Examples
    --------
    >>> with_pairs([("jan", 1), ("feb", 2)], None)
    array([('jan', 1), ('feb', 2)], dtype=object)
    """
    values = y if classes is None else with_columns_joined(y, classes)
    if isinstance(values, list | tuple) and any(isinstance(label, tuple) for label in values):
        return np.fromiter(values, dtype=object, count=len(values))
    return values


def are_pairs(labels: NDArray[Any]) -> bool:
    """Whether labels are tuples, which scikit-learn would not take for labels."""
    return labels.dtype.kind == "O" and any(isinstance(label, tuple) for label in labels)


def accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the share of the rows whose most probable class is their label."""
    labels = np.asarray(with_pairs(y, getattr(model.structure, "classes", None)))
    if not are_pairs(labels):
        return float(ClassifierMixin.score(model, X, y, sample_weight))
    predicted = model.predict(X)
    is_hit = [label == best for label, best in zip(labels, predicted, strict=True)]
    return float(np.average(is_hit, weights=sample_weight))
