"""Which learned structure to take, or none: judged on rows that had no part in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from structent._checks import checked_fraction, checked_integer
from structent._typing import FloatArray, Label
from structent.errors import StructentError
from structent.learning.levels import structure_of_levels
from structent.learning.parameter import structure_parameter
from structent.learning.rows import FoldedRows
from structent.structure import RandomPartition, trivial
from structent.structure.learned import MOST_LEVELS


def learn_structure(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    n_levels: Sequence[int] = (1, 2, 3),
    singleton_weights: Sequence[float] = (0.7, 0.4, 0.1),
    groups: Any = None,
    random_state: Any = None,
) -> RandomPartition:
    """Return the structure that helps the estimator most, learned from what it confuses.

    A structure is made of the out-of-fold confusion
    (:func:`~structent.structure.structure_from_confusion`), with each number of levels and each
    weight of the singletons, of which the levels share the rest. Cross-validated log loss chooses
    among these and no structure, which wins ties and is returned as the trivial one.

    No row is used both to learn a structure and to judge it: one that is judged on a fold is
    learned from the other folds' rows, predicted by models that were trained on neither. With F
    folds that takes F(F - 1)/2 fits, and each candidate F more.

    Parameters
    ----------
    estimator
        A classifier with the parameter ``structure``, or a pipeline that ends in one; its structure
        and weights must be None.
    X, y
        Features, (n, columns), and the label of each row, (n,).
    cv
        How many folds, three or more.
    n_levels
        The numbers of levels to try, beside the classes.
    singleton_weights
        The weights of the singletons to try; 1, no structure, is always tried.
    groups
        Rows of one group share a fold, (n,), where rows belong together.
    random_state
        Deals the rows out to the folds.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=120)
    >>> X = np.eye(3)[y // 2] @ rng.normal(size=(3, 9)) + rng.normal(size=(120, 9))
    >>> learned = learn_structure(StructuredLogisticRegression(), X, y, cv=3, random_state=0)
    >>> learned.levels["level 1"][0].blocks
    ((0, 1), (2, 3), (4, 5))
    """
    structure_parameter(estimator)
    rows = FoldedRows.of(X, y, cv, groups=groups, random_state=random_state)
    candidates = _candidates(n_levels, singleton_weights, len(rows.classes))
    if not candidates:
        return trivial(rows.classes)
    apart = _confusions_apart(rows, estimator)
    losses = np.zeros(1 + len(candidates))  # no structure comes first: ties go to it
    confusion = np.zeros_like(apart[0])
    for fold in range(cv):
        plain = rows.fitted_outside(estimator, fold)
        if plain is None or not apart[fold].any():
            continue
        confusion += rows.confusion(plain, fold)
        losses[0] += rows.loss(plain, fold)
        for place, candidate in enumerate(candidates, start=1):
            structure = candidate.structure(apart[fold], rows.classes)
            model = rows.fitted_outside(estimator, fold, structure=structure)
            losses[place] += rows.loss(model, fold)
    best = int(np.argmin(losses))
    if best == 0:
        return trivial(rows.classes)
    return candidates[best - 1].structure(confusion, rows.classes)


class Candidate(NamedTuple):
    """A way to make a structure of a confusion."""

    n_levels: int
    singleton_weight: float

    def structure(self, confusion: FloatArray, classes: tuple[Label, ...]) -> RandomPartition:
        """Return the structure."""
        learned = structure_of_levels(confusion, classes, self.n_levels)
        if all(partition.is_singletons for partition in learned.partitions):
            return learned  # no weight to choose
        return learned.with_singleton_weight(self.singleton_weight)


def _candidates(
    n_levels: Sequence[int], singleton_weights: Sequence[float], n_classes: int
) -> list[Candidate]:
    for name, values in (("n_levels", n_levels), ("singleton_weights", singleton_weights)):
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
            raise StructentError(f"{name} must be a sequence of numbers to try, got {values!r}")
    checked_levels = [
        checked_integer(n, "n_levels", at_least=1, at_most=MOST_LEVELS) for n in n_levels
    ]
    weights = [checked_fraction(weight, "singleton_weights") for weight in singleton_weights]
    possible = dict.fromkeys(min(n, n_classes - 2) for n in checked_levels)
    return [Candidate(n, weight) for n in possible if n >= 1 for weight in weights]


def _confusions_apart(rows: FoldedRows, estimator: Any) -> FloatArray:
    """Return for each fold the confusion of all others, (folds, classes, classes).

    No model in it has seen a row of that fold, nor the rows that it predicts. One model serves two
    folds: trained without both, it predicts each for the other's sake.
    """
    n_classes = len(rows.classes)
    total = np.zeros((rows.n_folds, n_classes, n_classes))
    for first, second in combinations(range(rows.n_folds), 2):
        model = rows.fitted_outside(estimator, first, second)
        if model is not None:
            total[first] += rows.confusion(model, second)
            total[second] += rows.confusion(model, first)
    return total
