"""Which learned structure to take, or none: judged on rows that had no part in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from structent._checks import checked_fraction, checked_integer
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructentError
from structent.estimators.classes import checked_labels
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.structure import Partition, RandomPartition, structure_from_confusion, trivial
from structent.structure.labels import as_classes, class_indices
from structent.structure.learned import MOST_LEVELS
from structent.structure.random_partition import CLASS_LEVEL


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


@dataclass(frozen=True)
class LearnedStructure:
    """What stands for a structure that is yet to be learned, from the training rows at hand.

    :func:`structent.studies.compare` takes it in place of a structure, and learns one in every
    fold. The levels are always ``"level 1"`` to ``"level n"`` and ``"class"``.

    Parameters
    ----------
    n_levels
        How many levels beside the classes; K classes have no more than K - 2.
    cv
        The folds of the out-of-fold confusion.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> X = np.array([[place + 0.1 * i] for place in (0, 1, 8, 9) for i in range(6)])
    >>> y = np.repeat(["oak", "ash", "rose", "lily"], 6)
    >>> learned = LearnedStructure(n_levels=1).of_rows(StructuredLogisticRegression(), X, y)
    >>> learned.levels["level 1"][0].blocks
    (('ash', 'oak'), ('lily', 'rose'))
    """

    n_levels: int = 3
    cv: int = 5

    def __post_init__(self) -> None:
        checked_integer(self.n_levels, "n_levels", at_least=1, at_most=MOST_LEVELS)
        checked_integer(self.cv, "cv", at_least=FEWEST_FOLDS, at_most=MOST_LEVELS)

    def of_rows(
        self, estimator: Any, X: Any, y: Any, *, classes: Iterable[Any] | None = None,
        groups: Any = None, random_state: Any = 0,
    ) -> RandomPartition:  # fmt: skip
        """Return the structure of these rows, for all ``classes``, those without a row, too."""
        rows = FoldedRows.of(
            X, y, self.cv, groups=groups, random_state=random_state, classes=classes
        )
        confusion = rows.out_of_fold_confusion(estimator)
        return structure_of_levels(confusion, rows.classes, self.n_levels)


def structure_of_levels(
    confusion: FloatArray, classes: tuple[Label, ...], n_levels: int
) -> RandomPartition:
    """Return as many levels as classes allow, whichever classes have rows.

    A class without rows is a block of its own in every cut: nothing is known of it. Where that
    leaves fewer cuts than levels, the finest levels are singletons.
    """
    n_cuts = min(n_levels, len(classes) - 2)
    present = confusion.sum(axis=1) > 0
    if n_cuts < 1 or not present.any():
        return trivial(classes)
    seen = [label for label, is_there in zip(classes, present, strict=True) if is_there]
    alone = [[label] for label, is_there in zip(classes, present, strict=True) if not is_there]
    among = structure_from_confusion(confusion[np.ix_(present, present)], seen, n_levels=n_cuts)
    cuts = [
        Partition.from_blocks([*cut.blocks, *alone], classes=classes)
        for cut in among.partitions[:-1]
    ]
    singletons = Partition.singletons(classes)
    cuts += [singletons] * (n_cuts - len(cuts))
    names = [f"level {number}" for number in range(1, n_cuts + 1)]
    return RandomPartition([*cuts, singletons], levels=[*names, CLASS_LEVEL])


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
        As in :func:`~structent.studies.learn_structure`.

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


def with_structure(estimator: Any, structure: RandomPartition) -> Any:
    """Return a clone of the estimator that has the structure.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from structent import StructuredLogisticRegression, trivial
    >>> model = make_pipeline(StandardScaler(), StructuredLogisticRegression())
    >>> with_structure(model, trivial(["a", "b"]))[-1].structure.classes
    ('a', 'b')
    """
    return clone(estimator).set_params(**{structure_parameter(estimator): structure})


def structure_parameter(estimator: Any) -> str:
    """Return the name of the parameter ``structure``; ``weights`` beside it must be left alone."""
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    found: list[str] = [name for name in parameters if name.rpartition("__")[2] == "structure"]
    if len(found) != 1:
        raise StructentError(
            "estimator must be a classifier with one parameter structure, such as "
            "StructuredBoostingClassifier(), or a pipeline that ends in one, got "
            f"{type(estimator).__name__} with {len(found)}"
        )
    (name,) = found
    weights = parameters.get(name.removesuffix("structure") + "weights")
    if parameters[name] is not None or weights is not None:
        raise StructentError(
            "estimator must have structure=None and weights=None, which are to be learned, got "
            f"structure={parameters[name]!r} and weights={weights!r}"
        )
    return name
