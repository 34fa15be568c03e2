"""The arms of a comparison in one fold: no structure, the structure, and its scrambled copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from structent._typing import FloatArray, IndexArray
from structent.metrics import level_report
from structent.structure.samplers import Structure
from structent.studies.comparison import METRICS, Plan, scored_structure
from structent.studies.fitting import Rows
from structent.studies.learn import LearnedStructure

# One of seven parts of the training rows decides when to stop, and which weights are best.
_VALIDATION_PARTS = 7

# What a comparison may ask about: a structure, or one to be learned in every fold.
Asked: TypeAlias = Structure | LearnedStructure


class Fold(NamedTuple):
    """A fold: the fold of each row, (n,), its own number among them, and its repeat."""

    fold_of: IndexArray
    number: int
    repeat: int


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What the models of one fold are worth.

    Attributes
    ----------
    test
        The places of the rows held out.
    none, structure, copies
        The scores without structure, with it, and with each of its scrambled copies.
    """

    test: IndexArray
    none: Scored
    structure: Scored
    copies: list[Scored]


def run_fold(
    estimator: Any, asked: Asked, rows: Rows, plan: Plan, fold: Fold, seed: int
) -> FoldScores:
    """Return the scores of the three arms in one fold."""
    # The repeat and the fold as well as the seed: all draw differently.
    rng = np.random.RandomState((seed, fold.repeat, fold.number))
    contest = Contest.of(estimator, asked, rows, fold.fold_of, fold.number, rng)
    structure: Any = contest.structure
    plain = contest.without_structure()
    best = contest.best_of(plain, structure, plan.singleton_weights)
    copies = []
    for copy in range(plan.n_copies):
        draw = np.random.default_rng((seed, fold.repeat, fold.number, copy))
        scrambled = structure.scramble(draw)
        copies.append(contest.scored(contest.best_of(plain, scrambled, plan.singleton_weights)))
    test = np.flatnonzero(fold.fold_of == fold.number)
    return FoldScores(test, contest.scored(plain), contest.scored(best), copies)


@dataclass(frozen=True, eq=False)
class Contest:
    """The models of one fold: they share training rows, validation rows and test rows.

    Attributes
    ----------
    estimator
        The classifier, with the parameters ``structure`` and ``weights``, whose ``fit`` takes an
        ``eval_set`` and keeps ``validation_log_loss_``.
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
        rest, test = rows.outside(fold_of, fold), rows.inside(fold_of, fold)
        part_of = rest.folds(_VALIDATION_PARTS, rng)
        train, validation = rest.outside(part_of, 0), rest.inside(part_of, 0)
        structure = structure_of(asked, estimator, train, rows, rng)
        return cls(estimator, structure, train, validation, test)

    def without_structure(self) -> Any:
        """Return the model without structure, neither in the loss nor in the leaves."""
        estimator = clone(self.estimator)
        if "leaf_smoothing" in estimator.get_params():
            estimator.set_params(leaf_smoothing=None)
        return replace(self, estimator=estimator)._fitted(self.structure, 1.0)

    def best_of(self, plain: Any, structure: Structure, singleton_weights: Sequence[float]) -> Any:
        """Return the model with the best validation log loss, that without structure among them."""
        models = [plain, *(self._fitted(structure, weight) for weight in singleton_weights)]
        return models[int(np.argmin([min(model.validation_log_loss_) for model in models]))]

    def scored(self, model: Any) -> Scored:
        """Return the scores of a model on the rows held out."""
        proba = model.predict_proba(self.test.features)
        report = level_report(
            self.test.labels, proba, scored_structure(self.structure), classes=model.classes_,
            allow_blocks=self.test.allow_blocks,
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
        validation = (self.validation.features, self.validation.target)
        return model.fit(self.train.features, self.train.target, eval_set=validation)


def structure_of(
    asked: Asked, estimator: Any, train: Rows, rows: Rows, rng: np.random.RandomState
) -> Structure:
    """Return the structure asked about; if it is to be learned, from ``train``, for all classes."""
    if not isinstance(asked, LearnedStructure):
        return asked
    return asked.learned_from(train, estimator, rows.classes, rng)


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
