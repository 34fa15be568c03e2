"""One fold: models without structure, with it, and with scrambled copies, on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from structent._typing import FloatArray, IndexArray
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.metrics import level_report
from structent.structure.samplers import Structure
from structent.studies.comparison import METRICS, Plan, scored_structure
from structent.studies.learn import LearnedStructure

# One part in so many of the training rows decides when to stop, and which weights are best.
_VALIDATION_PARTS = 7

# What a comparison may ask about: a structure, or one to be learned in every fold.
Asked: TypeAlias = Structure | LearnedStructure


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, labels and groups of the rows that are compared.

    Where labels may be sets of classes, ``codes`` has the number of each: the classes first, in the
    order of the structure, then the sets. Else it is None.
    """

    features: Any
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    codes: IndexArray | None = None

    @property
    def kinds(self) -> NDArray[Any]:
        """What tells rows of different labels apart, (n,)."""
        return self.labels if self.codes is None else self.codes

    def take(self, kept: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[kept]
        codes = None if self.codes is None else self.codes[kept]
        return Rows(_safe_indexing(self.features, kept), self.labels[kept], groups, codes)

    def folds(self, n_folds: int, rng: np.random.RandomState) -> IndexArray:
        """Return the fold of each row: whole groups, or every class spread evenly."""
        if self.groups is not None:
            return grouped_folds(self.groups, n_folds, rng)
        return dealt_folds(self.kinds, n_folds, rng)


@dataclass(frozen=True, eq=False)
class Scored:
    """What a model is worth on the rows held out.

    Attributes
    ----------
    by_level, severity
        Its scores, (levels, metrics), and the mean distance of its mistakes.
    proba
        Its probabilities, (rows, classes), in the order of the structure's classes.
    singleton_weight
        The weight that its validation rows chose, 1 for no structure.
    levels
        The names of the levels.
    """

    by_level: FloatArray
    severity: float
    proba: FloatArray
    singleton_weight: float
    levels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Contest:
    """The models of one fold: they share training rows, validation rows and test rows.

    Attributes
    ----------
    estimator
        The classifier, with the parameters ``structure``, ``weights`` and an ``eval_set``.
    structure
        The structure asked about, or learned from ``train``.
    train, validation, test
        The rows.
    """

    estimator: Any
    structure: Structure
    train: Rows
    validation: Rows
    test: Rows

    @classmethod
    def of(
        cls, estimator: Any, asked: Asked, rows: Rows, fold_of: IndexArray, fold: int,
        rng: np.random.RandomState,
    ) -> Contest:  # fmt: skip
        """Return the contest of a fold; of rows held out, learning sees which classes there are."""
        rest, test = rows.take(np.flatnonzero(fold_of != fold)), rows.take(fold_of == fold)
        is_validation = rest.folds(_VALIDATION_PARTS, rng) == 0
        train = rest.take(np.flatnonzero(~is_validation))
        structure = structure_of(asked, estimator, train, np.unique(rows.kinds), rng)
        return cls(estimator, structure, train, rest.take(np.flatnonzero(is_validation)), test)

    def without_structure(self) -> Any:
        """Return the model without structure."""
        return self._fitted(self.structure, 1.0)

    def best_of(self, plain: Any, structure: Structure, singleton_weights: Any) -> Any:
        """Return the model with the best validation log loss, that without structure among them."""
        models = [plain, *(self._fitted(structure, weight) for weight in singleton_weights)]
        return models[int(np.argmin([min(model.validation_log_loss_) for model in models]))]

    def scored(self, model: Any) -> Scored:
        """Return the scores of a model on the rows held out."""
        proba = model.predict_proba(self.test.features)
        structure = scored_structure(self.structure)
        report = level_report(
            self.test.labels, proba, structure, classes=model.classes_,
            allow_blocks=self.test.codes is not None,
        )  # fmt: skip
        values = {
            "log loss": [row.log_loss for row in report.rows],
            "accuracy": [row.accuracy for row in report.rows],
            "calibration error": [row.calibration_error for row in report.rows],
        }
        place = {label: column for column, label in enumerate(model.classes_.tolist())}
        in_order = proba[:, [place[label] for label in self.structure.classes]]
        return Scored(
            np.array([values[metric] for metric in METRICS]).T,
            report.mistake_severity,
            in_order,
            # As the candidate was written: in proportion, 0.7 may have become 0.7000000000000001.
            round(float(model.structure_.singleton_weight), 9),
            tuple(row.level for row in report.rows),
        )

    def _fitted(self, structure: Structure, singleton_weight: float) -> Any:
        model = clone(self.estimator).set_params(structure=structure, weights=singleton_weight)
        validation = (self.validation.features, self.validation.labels)
        return model.fit(self.train.features, self.train.labels, eval_set=validation)


def structure_of(
    asked: Asked, estimator: Any, rows: Rows, classes: NDArray[Any], rng: np.random.RandomState
) -> Structure:
    """Return the structure asked about, learned from the rows if it is to be learned."""
    if not isinstance(asked, LearnedStructure):
        return asked
    return asked.of_rows(
        estimator, rows.features, rows.labels, classes=classes, groups=rows.groups, random_state=rng
    )


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What the models of one fold are worth.

    Attributes
    ----------
    test
        The rows held out.
    none, structure, copies
        The scores without structure, with it, and with each of its scrambled copies.
    """

    test: IndexArray
    none: Scored
    structure: Scored
    copies: list[Scored]


def run_fold(
    rows: Rows, asked: Asked, estimator: Any, plan: Plan, fold_of: IndexArray, fold: int,
    repeat: int,
) -> FoldScores:  # fmt: skip
    """Return the scores of the three arms in one fold."""
    contest = Contest.of(
        estimator, asked, rows, fold_of, fold, np.random.RandomState((repeat, fold))
    )
    structure: Any = contest.structure
    plain = contest.without_structure()
    scored_plain = contest.scored(plain)
    best = contest.scored(contest.best_of(plain, structure, plan.singleton_weights))
    copies = []
    for copy in range(plan.n_copies):
        scrambled = structure.scramble(np.random.default_rng((repeat, fold, copy)))
        copies.append(contest.scored(contest.best_of(plain, scrambled, plan.singleton_weights)))
    return FoldScores(np.flatnonzero(fold_of == fold), scored_plain, best, copies)
