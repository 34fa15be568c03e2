"""Rows dealt out to folds, and what models say of the folds that they have not seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state

from structent._checks import checked_integer
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructentError
from structent.estimators.classes import checked_labels
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.learning.parameter import with_structure
from structent.structure import RandomPartition, trivial
from structent.structure.labels import as_classes, class_indices

# A structure is judged on one fold, and learned from a second by models trained on the others.
FEWEST_FOLDS = 3


def out_of_fold_confusion(
    estimator: Any, X: Any, y: Any, *, cv: int = 5, groups: Any = None, random_state: Any = None
) -> FloatArray:
    """Return the probabilities that rows of each class are given, added up, (classes, classes).

    Every row is predicted by a model without structure that was trained on the other folds.
    Rows and columns are in the order of ``numpy.unique(y)``; see
    :func:`~structent.structure.structure_from_confusion` for what to make of it.

    Parameters
    ----------
    estimator, X, y, cv, groups, random_state
        As in :func:`~structent.learning.learn_structure`.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> X, y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), np.repeat(["a", "b"], 3)
    >>> model = StructuredLogisticRegression()
    >>> out_of_fold_confusion(model, X, y, cv=3, random_state=0).sum(axis=1).round(6).tolist()
    [3.0, 3.0]
    """
    rows = FoldedRows.of(X, y, cv, groups=groups, random_state=random_state)
    return rows.out_of_fold_confusion(estimator)


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows to learn from, each in a fold.

    Attributes
    ----------
    features, labels
        The features, (n, columns), and the label of each row, (n,).
    classes, codes
        The classes, and the place of each row's label among them.
    fold_of, n_folds
        The fold of each row, and how many folds there are.
    """

    features: Any
    labels: NDArray[Any]
    classes: tuple[Label, ...]
    codes: IndexArray
    fold_of: IndexArray
    n_folds: int

    @classmethod
    def of(
        cls, X: Any, y: Any, n_folds: int, *, groups: Any, random_state: Any,
        classes: Iterable[Any] | None = None,
    ) -> FoldedRows:  # fmt: skip
        """Return rows dealt out to folds: whole groups, or every class spread evenly.

        The classes are those of the labels, unless more are given.
        """
        labels = checked_labels(y)
        checked_integer(n_folds, "cv", at_least=FEWEST_FOLDS, at_most=max(len(labels), 3))
        known = as_classes(np.unique(labels).tolist() if classes is None else classes)
        codes = class_indices(labels, known)
        rng = check_random_state(random_state)
        if groups is None:
            fold_of = dealt_folds(codes, n_folds, rng)
        else:
            fold_of = grouped_folds(_checked_groups(groups, len(labels)), n_folds, rng)
        # Not every sparse format can be indexed.
        features = X.tocsr() if hasattr(X, "tocsr") else X
        return cls(features, labels, known, codes, fold_of, n_folds)

    def fitted_outside(
        self, estimator: Any, *folds: int, structure: RandomPartition | None = None
    ) -> Any | None:
        """Return a model trained on the rows outside the folds, None if these are of one class."""
        kept = np.flatnonzero(~np.isin(self.fold_of, folds))
        if len(np.unique(self.codes[kept])) < 2:
            return None
        # The trivial structure, not none: every model has a column for every class.
        model = with_structure(estimator, structure or trivial(self.classes))
        return model.fit(_safe_indexing(self.features, kept), self.labels[kept])

    def proba(self, model: Any, fold: int) -> FloatArray:
        """Return the probabilities of a fold's rows, (rows, classes), in the order of classes."""
        held = np.flatnonzero(self.fold_of == fold)
        if len(held) == 0:
            return np.zeros((0, len(self.classes)))
        columns = class_indices(list(self.classes), tuple(model.classes_.tolist()))
        proba: FloatArray = model.predict_proba(_safe_indexing(self.features, held))[:, columns]
        return proba.astype(np.float64)

    def confusion(self, model: Any, fold: int) -> FloatArray:
        """Return the probabilities of a fold's rows, added up by class, (classes, classes)."""
        total = np.zeros((len(self.classes), len(self.classes)))
        np.add.at(total, self.codes[self.fold_of == fold], self.proba(model, fold))
        return total

    def out_of_fold_confusion(self, estimator: Any) -> FloatArray:
        """Return the confusion of all rows, each predicted by a model trained outside its fold."""
        total = np.zeros((len(self.classes), len(self.classes)))
        for fold in range(self.n_folds):
            model = self.fitted_outside(estimator, fold)
            if model is not None:
                total += self.confusion(model, fold)
        return total

    def loss(self, model: Any, fold: int) -> float:
        """Return the log losses of a fold's rows, added up."""
        proba, codes = self.proba(model, fold), self.codes[self.fold_of == fold]
        of_label = proba[np.arange(len(codes)), codes]
        # A probability that underflowed to 0 must not make the losses of all candidates infinite.
        return float(-np.log(np.maximum(of_label, np.finfo(np.float64).tiny)).sum())


def _checked_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    checked = np.asarray(groups)
    if checked.shape != (n_rows,):
        raise StructentError(
            f"groups must have one entry for each of the {n_rows} rows, got shape {checked.shape}"
        )
    return checked
