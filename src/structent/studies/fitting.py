"""What every study fits: rows that are checked and encoded once, and clones of one estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from structent._checks import checked_integer
from structent._typing import IndexArray
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier, coded_table
from structent.estimators.classes import (
    Classes,
    CodedLabels,
    Labels,
    checked_labels,
    given_structure,
)
from structent.estimators.columns import rows_at
from structent.estimators.folds import checked_groups, dealt_folds, grouped_folds
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure.labels import as_classes, class_indices
from structent.structure.samplers import Structure, checked_structure
from structent.studies.progress import OnProgress

_LARGEST_SEED = 2**32 - 1

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a study, or some of them: checked and encoded when the study begins.

    Attributes
    ----------
    features
        What the estimator is fitted to and predicts from: a
        :class:`~structent.estimators.columns.CodedTable` if it takes one.
    labels
        The class of each row, or its set of classes where no more is known, (n,).
    coded
        The same, encoded.
    groups
        Rows of one group share a fold, (n,); None where rows do not belong together.
    allow_blocks
        Whether labels may be sets of classes.
    takes_codes
        Whether the estimator takes encoded labels.
    """

    features: Any
    labels: NDArray[Any]
    coded: CodedLabels
    groups: NDArray[Any] | None
    allow_blocks: bool
    takes_codes: bool

    @property
    def target(self) -> Labels:
        """The labels as the estimator takes them, (n,)."""
        return self.coded if self.takes_codes else self.labels

    @property
    def has_class(self) -> NDArray[np.bool_]:
        """Which rows are known by their class, (n,)."""
        return self.coded.codes < len(self.coded.classes)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, kept: IndexArray) -> Rows:
        """Return some of the rows, by their places."""
        return replace(
            self,
            features=rows_at(self.features, kept),
            labels=self.labels[kept],
            coded=self.coded[kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def folds(self, n_folds: int, rng: np.random.RandomState) -> IndexArray:
        """Return the fold of each row: whole groups, or every class spread evenly."""
        if self.groups is not None:
            return grouped_folds(self.groups, n_folds, rng)
        # Sets of classes have no order, but their codes do.
        return dealt_folds(self.coded.codes if self.allow_blocks else self.labels, n_folds, rng)

    def inside(self, fold_of: IndexArray, fold: int) -> Rows:
        """Return the rows of a fold."""
        return self.take(np.flatnonzero(fold_of == fold))

    def outside(self, fold_of: IndexArray, *folds: int) -> Rows:
        """Return the rows of all other folds."""
        return self.take(np.flatnonzero(~np.isin(fold_of, folds)))


def checked_rows(
    X: Any,
    y: Any,
    structure: Structure | None,
    *,
    estimator: Any,
    groups: Any,
    allow_blocks: bool = False,
) -> Rows:
    """Return the rows of a study, with labels checked against the structure, if there is one.

    This is the only place where a study looks at labels and categories one by one.
    """
    labels = checked_labels(y, structure, allow_blocks=allow_blocks)
    if not hasattr(X, "shape") and not isinstance(X, list | tuple):
        X = np.asarray(X)
    if np.shape(X)[:1] != (len(labels),):
        raise StructentError(
            f"X must have one row for each of the {len(labels)} labels, got shape {np.shape(X)}"
        )
    if structure is None:
        classes = as_classes(np.unique(labels).tolist())
        coded = CodedLabels(class_indices(labels, classes), classes)
    else:
        of = Classes.of_mixed(structure, labels) if allow_blocks else Classes.of(structure, labels)
        coded = CodedLabels(of.encode(labels), of.labels, of.coarse_sets)
        if allow_blocks:
            labels = of.meanings(coded.codes)  # a scrambled copy has other blocks of the same name
    takes_codes = type(estimator) in (StructuredBoostingClassifier, StructuredLogisticRegression)
    return Rows(
        _features(X, estimator),
        labels,
        coded,
        checked_groups(groups, len(labels)),
        allow_blocks,
        takes_codes,
    )


def checked_folds(n_folds: int, rows: Rows, *, at_least: int) -> int:
    """Return a number of folds that leaves no fold empty."""
    if rows.groups is None:
        return checked_integer(n_folds, "n_folds", at_least=at_least, at_most=len(rows))
    n_groups = len(np.unique(rows.groups))
    reason = ", the number of groups"
    return checked_integer(n_folds, "n_folds", at_least=at_least, at_most=n_groups, reason=reason)


def _features(X: Any, estimator: Any) -> Any:
    encodes = type(estimator) is StructuredLogisticRegression and estimator.encode
    if encodes or type(estimator) is StructuredBoostingClassifier:
        return coded_table(X)
    return X.tocsr() if hasattr(X, "tocsr") else X  # not every sparse format can be indexed


def asked_structure(structure: Any, y: Any, *, allow_blocks: bool = False) -> Structure:
    """Return the structure of a study, which must be one that can be scrambled.

    A short form, such as "circular:width=3", is built from the labels.
    """
    if isinstance(structure, str):
        structure = given_structure(structure, checked_labels(y), allow_blocks=allow_blocks)
    checked = checked_structure(structure)
    if not hasattr(checked, "scramble"):
        raise StructentError(
            "a comparison needs a structure that can be scrambled, as a RandomPartition and the "
            f"samplers of structent can, got {type(structure).__name__}"
        )
    return checked


def structure_parameter(estimator: Any) -> str:
    """Return the name of the parameter that takes the structure, ``step__structure`` in a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> structure_parameter(make_pipeline(StandardScaler(), StructuredLogisticRegression()))
    'structuredlogisticregression__structure'
    """
    if inspect.isclass(estimator):
        raise StructentError(
            f"estimator must be an instance, got the class {estimator.__name__}; "
            f"write {estimator.__name__}()"
        )
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    names = [str(name) for name in parameters if name.rpartition("__")[2] == "structure"]
    if len(names) != 1:
        raise StructentError(
            "estimator must be a classifier with one parameter structure, such as "
            "StructuredBoostingClassifier(), or a pipeline with one, got "
            f"{type(estimator).__name__} with {len(names)}"
        )
    return names[0]


def weights_parameter(estimator: Any) -> str:
    """Return the name of the parameter ``weights`` beside the structure."""
    return structure_parameter(estimator).removesuffix("structure") + "weights"


def prior_parameter(estimator: Any) -> str:
    """Return the name of the parameter ``prior`` beside the structure, of a linear model."""
    return structure_parameter(estimator).removesuffix("structure") + "prior"


def with_structure(estimator: Any, structure: Structure) -> Any:
    """Return a clone of the estimator that has the structure.

    Examples
    --------
    >>> from structent import trivial
    >>> with_structure(StructuredLogisticRegression(), trivial(["a", "b"])).structure.classes
    ('a', 'b')
    """
    return clone(estimator).set_params(**{structure_parameter(estimator): structure})


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone of the estimator that makes the same random choices in every fit.

    If it, or one of its steps, has a ``random_state``, that is kept.

    Examples
    --------
    >>> seeded(StructuredLogisticRegression(), 7).random_state
    7
    """
    unseeded = {
        name: seed
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return clone(estimator).set_params(**unseeded)


def drawn_seed(random_state: Any) -> int:
    """Return the seed of a study: the number that was given, or one that is drawn.

    Examples
    --------
    >>> drawn_seed(7)
    7
    """
    if random_state is None:
        return int(np.random.default_rng().integers(_LARGEST_SEED, endpoint=True))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_LARGEST_SEED, dtype=np.uint32))
    return checked_integer(random_state, "random_state", at_least=0, at_most=_LARGEST_SEED)


def default_booster() -> StructuredBoostingClassifier:
    """Return the default estimator of a study, for one thread: many models train at a time."""
    return StructuredBoostingClassifier(learning_rate=0.1, n_jobs=1)


def in_parallel(
    function: Callable[..., Found], jobs: Sequence[tuple[Any, ...]], n_jobs: int, what: str,
    tell: OnProgress,
) -> Iterator[Found]:  # fmt: skip
    """Call a function with the arguments of each job, in threads, and give the results in order."""
    # Threads, not processes: the compiled loops of training release the interpreter's lock.
    run = Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")
    tell(what, 0, len(jobs))
    for done, found in enumerate(run(delayed(function)(*job) for job in jobs), start=1):
        tell(what, done, len(jobs))
        yield found
