"""Structures learned from what a model confuses, and a classifier that learns its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from structent._checks import checked_fraction, checked_integer
from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray, Label
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.structure import Partition, RandomPartition, structure_from_confusion, trivial
from structent.structure.labels import class_indices
from structent.structure.learned import MOST_LEVELS
from structent.structure.random_partition import CLASS_LEVEL
from structent.studies.fitting import (
    Rows,
    checked_rows,
    default_booster,
    drawn_seed,
    in_parallel,
    seeded,
    structure_parameter,
    weights_parameter,
    with_structure,
)
from structent.studies.progress import OnProgress, tell_nobody, telling

# One fold judges a structure, a second one gives the confusion, the others train the models.
FEWEST_FOLDS = 3


def learn_structure(  # noqa: PLR0913  a question has many sides
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    n_folds: int = 5,
    n_levels: Sequence[int] = (1, 2, 3),
    singleton_weights: Sequence[float] = (0.7, 0.4, 0.1),
) -> RandomPartition:
    """Return the structure that helps the estimator most, learned from what it confuses.

    Structures are made from the out-of-fold confusion
    (:func:`~structent.structure.structure_from_confusion`): one for each number of levels and each
    weight of the singletons; the levels share the rest of the weight. Cross-validated log loss
    chooses among these and no structure, which wins ties and is returned as the trivial structure.

    No row is used both to learn a structure and to judge it. A structure that is judged on a fold
    is learned from the rows of the other folds, predicted by models that were trained on neither.
    With F folds this takes F(F - 1)/2 fits, and F more for each candidate.

    Parameters
    ----------
    X, y
        A table or array, (n, columns), and the label of each row, (n,).
    estimator
        A classifier with the parameter ``structure``, or a pipeline that ends in one; its structure
        and weights must be None. :class:`StructuredBoostingClassifier` with a learning rate of 0.1
        if None.
    groups
        The group of each row, (n,), if rows belong together: rows of one group share a fold.
    random_state
        The seed of the folds, also of the estimator if its own ``random_state`` is None; drawn if
        None.
    n_jobs
        How many models to train at a time, in threads; all processors if None or -1.
    progress
        Whether to show a progress bar, or a function that is called with the name of the step, how
        much of it is done, and how much there is.
    n_folds
        Folds of the cross-validation, three or more.
    n_levels
        The numbers of levels to try, beside the classes.
    singleton_weights
        The weights of the singletons to try; 1, no structure, is always tried.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=120)
    >>> X = np.eye(3)[y // 2] @ rng.normal(size=(3, 9)) + rng.normal(size=(120, 9))
    >>> model = StructuredLogisticRegression()
    >>> learned = learn_structure(X, y, estimator=model, n_folds=3, random_state=0)
    >>> learned.levels["level 1"][0].blocks
    ((0, 1), (2, 3), (4, 5))
    """
    folded = _folded(X, y, estimator, groups, random_state, n_folds, n_jobs)
    candidates = _candidates(n_levels, singleton_weights, len(folded.classes))
    if not candidates:
        return trivial(folded.classes)
    with telling(progress) as tell:
        return _best_structure(folded, candidates, tell)


def out_of_fold_confusion(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    n_folds: int = 5,
) -> FloatArray:
    """Return the sums of the out-of-fold probabilities of each class's rows, (classes, classes).

    Every row is predicted by a model without structure that was trained on the other folds.
    Rows and columns are in the order of ``numpy.unique(y)``.
    :func:`~structent.structure.structure_from_confusion` makes a structure of it.

    Parameters
    ----------
    X, y, estimator, groups, random_state, n_jobs, progress, n_folds
        As in :func:`~structent.studies.learn_structure`.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> X, y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), np.repeat(["a", "b"], 3)
    >>> model = StructuredLogisticRegression()
    >>> found = out_of_fold_confusion(X, y, estimator=model, n_folds=3, random_state=0)
    >>> found.sum(axis=1).round(6).tolist()
    [3.0, 3.0]
    """
    folded = _folded(X, y, estimator, groups, random_state, n_folds, n_jobs)
    with telling(progress) as tell:
        return folded.out_of_fold_confusion(tell)


@dataclass(frozen=True)
class LearnedStructure:
    """A structure that has yet to be learned from training rows.

    :func:`structent.compare` takes it in place of a structure, and learns one in every split. The
    levels are always ``"level 1"`` to ``"level n"`` and ``"class"``.

    Parameters
    ----------
    n_levels
        How many levels beside the classes; K classes allow at most K - 2.
    n_folds
        The folds of the out-of-fold confusion.

    Examples
    --------
    >>> from structent import StructuredLogisticRegression
    >>> X = np.array([[place + 0.1 * i] for place in (0, 1, 8, 9) for i in range(6)])
    >>> y = np.repeat(["oak", "ash", "rose", "lily"], 6)
    >>> model = StructuredLogisticRegression()
    >>> learned = LearnedStructure(n_levels=1).of_rows(X, y, estimator=model, random_state=0)
    >>> learned.levels["level 1"][0].blocks
    (('ash', 'oak'), ('lily', 'rose'))
    """

    n_levels: int = 3
    n_folds: int = 5

    def __post_init__(self) -> None:
        checked_integer(self.n_levels, "n_levels", at_least=1, at_most=MOST_LEVELS)
        checked_integer(self.n_folds, "n_folds", at_least=FEWEST_FOLDS, at_most=MOST_LEVELS)

    def of_rows(
        self,
        X: Any,
        y: Any,
        *,
        estimator: Any = None,
        groups: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | OnProgress = False,
    ) -> RandomPartition:
        """Return the structure learned from these rows.

        Parameters
        ----------
        X, y, estimator, groups, random_state, n_jobs, progress
            As in :func:`~structent.studies.learn_structure`.
        """
        folded = _folded(X, y, estimator, groups, random_state, self.n_folds, n_jobs)
        with telling(progress) as tell:
            confusion = folded.out_of_fold_confusion(tell)
        return structure_of_levels(confusion, folded.classes, self.n_levels)

    def learned_from(
        self, rows: Rows, estimator: Any, classes: tuple[Label, ...], rng: np.random.RandomState
    ) -> RandomPartition:
        """Return the structure learned from checked rows, for all classes of the study."""
        folded = _Folded.of(rows, estimator, classes, self.n_folds, rng, n_jobs=1)
        return structure_of_levels(folded.out_of_fold_confusion(), classes, self.n_levels)


class StructureLearner(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn has no types
    MetaEstimatorMixin,  # type: ignore[misc]  # scikit-learn has no types
    BaseEstimator,  # type: ignore[misc]  # scikit-learn has no types
):
    """The estimator with the structure that :func:`learn_structure` finds in the training rows.

    Parameters
    ----------
    estimator, random_state, n_jobs, progress, n_folds, n_levels, singleton_weights
        As in :func:`learn_structure`.

    Attributes
    ----------
    structure_
        The structure that was learned, trivial if none helped.
    estimator_
        The estimator, fitted to all rows with it.
    classes_
        The classes, sorted: the columns of ``predict_proba``.
    seed_
        The seed of all random choices: the same ``random_state`` gives the same structure.
    n_features_in_, feature_names_in_
        Those of ``estimator_``, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from structent import StructuredLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=120)
    >>> X = np.eye(3)[y // 2] @ rng.normal(size=(3, 9)) + rng.normal(size=(120, 9))
    >>> linear = StructuredLogisticRegression()
    >>> model = StructureLearner(linear, n_folds=3, random_state=0).fit(X, y)
    >>> model.structure_.levels["level 1"][0].blocks
    ((0, 1), (2, 3), (4, 5))
    >>> model.predict_proba(X).shape
    (120, 6)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | OnProgress = False,
        n_folds: int = 5,
        n_levels: Sequence[int] = (1, 2, 3),
        singleton_weights: Sequence[float] = (0.7, 0.4, 0.1),
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.n_folds = n_folds
        self.n_levels = n_levels
        self.singleton_weights = singleton_weights

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn the structure of the labels, (n,), and fit the estimator with it."""
        estimator = default_booster() if self.estimator is None else self.estimator
        self.seed_ = drawn_seed(self.random_state)
        self.structure_ = learn_structure(
            X,
            y,
            estimator=estimator,
            groups=groups,
            random_state=self.seed_,
            n_jobs=self.n_jobs,
            progress=self.progress,
            n_folds=self.n_folds,
            n_levels=self.n_levels,
            singleton_weights=self.singleton_weights,
        )
        model = with_structure(seeded(estimator, self.seed_), self.structure_)
        self.estimator_ = model.fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n,)."""
        check_is_fitted(self)
        predicted: NDArray[Any] = self.estimator_.predict(X)
        return predicted

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes, (n, classes)."""
        check_is_fitted(self)
        proba: NDArray[Any] = self.estimator_.predict_proba(X)
        return proba

    @property
    def n_features_in_(self) -> int:
        """How many columns X had."""
        return int(self._of_estimator("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns of X, where it had names."""
        names: NDArray[Any] = self._of_estimator("feature_names_in_")
        return names

    def _of_estimator(self, name: str) -> Any:
        # An AttributeError before fit, as scikit-learn requires for attributes that fit sets.
        return getattr(self.__dict__.get("estimator_"), name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimator = default_booster() if self.estimator is None else self.estimator
        tags.input_tags = get_tags(estimator).input_tags
        return tags


def structure_of_levels(
    confusion: FloatArray, classes: tuple[Label, ...], n_levels: int
) -> RandomPartition:
    """Return as many levels as the classes allow, also if some classes have no rows.

    A class without rows is a block of its own in every cut, because nothing is known about it. If
    that leaves fewer cuts than levels, the finest levels are singletons.
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


class _Candidate(NamedTuple):
    """A way to make a structure from a confusion."""

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
) -> list[_Candidate]:
    for name, values in (("n_levels", n_levels), ("singleton_weights", singleton_weights)):
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
            raise StructentError(f"{name} must be a sequence of numbers to try, got {values!r}")
    checked_levels = [
        checked_integer(n, "n_levels", at_least=1, at_most=MOST_LEVELS) for n in n_levels
    ]
    weights = [checked_fraction(weight, "singleton_weights") for weight in singleton_weights]
    possible = dict.fromkeys(min(n, n_classes - 2) for n in checked_levels)
    return [_Candidate(n, weight) for n in possible if n >= 1 for weight in weights]


def _folded(
    X: Any, y: Any, estimator: Any, groups: Any, random_state: Any, n_folds: int,
    n_jobs: int | None,
) -> _Folded:  # fmt: skip
    """Check the arguments, and return the rows in their folds with a seeded estimator."""
    workers, seed = checked_n_jobs(n_jobs), drawn_seed(random_state)
    estimator = default_booster() if estimator is None else estimator
    _check_that_nothing_is_given(estimator)
    rows = checked_rows(X, y, None, estimator=estimator, groups=groups)
    checked_integer(n_folds, "n_folds", at_least=FEWEST_FOLDS, at_most=max(len(rows), 3))
    model, rng = seeded(estimator, seed), np.random.RandomState(seed)
    return _Folded.of(rows, model, rows.coded.classes, n_folds, rng, n_jobs=workers)


def _check_that_nothing_is_given(estimator: Any) -> None:
    structure, weights = structure_parameter(estimator), weights_parameter(estimator)
    given = estimator.get_params()
    if given[structure] is not None or given.get(weights) is not None:
        raise StructentError(
            "estimator must have structure=None and weights=None, because both are learned, got "
            f"structure={given[structure]!r} and weights={given.get(weights)!r}"
        )


@dataclass(frozen=True, eq=False)
class _Folded:
    """Rows to learn from, each in a fold, and the estimator that learns.

    Attributes
    ----------
    rows, estimator
        The rows, and the estimator without structure.
    classes, codes
        The classes, and the place of each row's label among them.
    fold_of, n_folds
        The fold of each row, and how many folds there are.
    n_jobs
        How many models to train at a time.
    """

    rows: Rows
    estimator: Any
    classes: tuple[Label, ...]
    codes: IndexArray
    fold_of: IndexArray
    n_folds: int
    n_jobs: int

    @classmethod
    def of(
        cls, rows: Rows, estimator: Any, classes: tuple[Label, ...], n_folds: int,
        rng: np.random.RandomState, *, n_jobs: int,
    ) -> _Folded:  # fmt: skip
        """Return rows dealt out to folds."""
        codes = Classes.of_structure(trivial(classes)).encode(rows.coded)
        return cls(rows, estimator, classes, codes, rows.folds(n_folds, rng), n_folds, n_jobs)

    def can_fit_outside(self, *folds: int) -> bool:
        """Whether the rows outside the folds have two classes or more."""
        return len(np.unique(self.codes[~np.isin(self.fold_of, folds)])) > 1

    def fitted_outside(self, *folds: int, structure: RandomPartition | None = None) -> Any:
        """Return a model trained on the rows outside the folds."""
        rows = self.rows.outside(self.fold_of, *folds)
        # The trivial structure, not none: every model has a column for every class.
        model = with_structure(self.estimator, structure or trivial(self.classes))
        return model.fit(rows.features, rows.target)

    def proba(self, model: Any, fold: int) -> FloatArray:
        """Return the probabilities of a fold's rows, (rows, classes), in the order of classes."""
        rows = self.rows.inside(self.fold_of, fold)
        if len(rows) == 0:
            return np.zeros((0, len(self.classes)))
        columns = class_indices(list(self.classes), tuple(model.classes_.tolist()))
        proba: FloatArray = model.predict_proba(rows.features)[:, columns]
        return proba.astype(np.float64)

    def confusion(self, model: Any, fold: int) -> FloatArray:
        """Return the probabilities of a fold's rows, added up by class, (classes, classes)."""
        total = np.zeros((len(self.classes), len(self.classes)))
        np.add.at(total, self.codes[self.fold_of == fold], self.proba(model, fold))
        return total

    def loss(self, model: Any, fold: int) -> float:
        """Return the log losses of a fold's rows, added up."""
        proba, codes = self.proba(model, fold), self.codes[self.fold_of == fold]
        of_label = proba[np.arange(len(codes)), codes]
        # A probability that underflowed to 0 must not make the losses of all candidates infinite.
        return float(-np.log(np.maximum(of_label, np.finfo(np.float64).tiny)).sum())

    def out_of_fold_confusion(self, tell: OnProgress = tell_nobody) -> FloatArray:
        """Return the confusion of all rows, each predicted by a model trained outside its fold."""

        def of_fold(fold: int) -> FloatArray:
            return self.confusion(self.fitted_outside(fold), fold)

        total = np.zeros((len(self.classes), len(self.classes)))
        jobs = [(fold,) for fold in range(self.n_folds) if self.can_fit_outside(fold)]
        for confusion in in_parallel(of_fold, jobs, self.n_jobs, "confusions", tell):
            total += confusion
        return total


def _best_structure(
    folded: _Folded, candidates: list[_Candidate], tell: OnProgress
) -> RandomPartition:
    """Return the structure with the lowest log loss on folds that it was not learned from."""

    def judged(fold: int, candidate: _Candidate | None) -> tuple[float, FloatArray | None]:
        if candidate is None:
            plain = folded.fitted_outside(fold)
            return folded.loss(plain, fold), folded.confusion(plain, fold)
        structure = candidate.structure(apart[fold], folded.classes)
        return folded.loss(folded.fitted_outside(fold, structure=structure), fold), None

    apart = _confusions_apart(folded, tell)
    arms = [None, *candidates]  # no structure comes first: ties go to it
    folds = [f for f in range(folded.n_folds) if apart[f].any() and folded.can_fit_outside(f)]
    jobs = [(fold, arm) for fold in folds for arm in arms]
    losses, confusion = np.zeros(len(arms)), np.zeros_like(apart[0])
    found = in_parallel(judged, jobs, folded.n_jobs, "candidates", tell)
    for number, (loss, of_plain) in enumerate(found):
        losses[number % len(arms)] += loss
        if of_plain is not None:
            confusion += of_plain
    best = arms[int(np.argmin(losses))]
    return trivial(folded.classes) if best is None else best.structure(confusion, folded.classes)


def _confusions_apart(folded: _Folded, tell: OnProgress) -> FloatArray:
    """Return for each fold the confusion of all others, (folds, classes, classes).

    No model used for it was trained on a row of that fold, or on the rows that it predicts. One
    model serves two folds: it is trained without both, and predicts each for the structure that is
    judged on the other.
    """

    def of_pair(first: int, second: int) -> tuple[FloatArray, FloatArray]:
        model = folded.fitted_outside(first, second)
        return folded.confusion(model, first), folded.confusion(model, second)

    n_classes = len(folded.classes)
    total = np.zeros((folded.n_folds, n_classes, n_classes))
    pairs = list(combinations(range(folded.n_folds), 2))
    pairs = [pair for pair in pairs if folded.can_fit_outside(*pair)]
    found = in_parallel(of_pair, pairs, folded.n_jobs, "confusions", tell)
    for (first, second), (of_first, of_second) in zip(pairs, found, strict=True):
        total[first] += of_second
        total[second] += of_first
    return total
