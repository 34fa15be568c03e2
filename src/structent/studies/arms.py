"""The arms of a comparison in one split: no structure, the structure, and its scrambled copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from structent._typing import FloatArray, IndexArray
from structent.structure.samplers import Structure
from structent.studies.comparison import METRICS
from structent.studies.fitting import Rows
from structent.studies.learn import LearnedStructure
from structent.studies.levels import scores_by_level
from structent.studies.models import Parts, StudyModel, Tried
from structent.studies.plan import NONE, Candidate, Plan
from structent.studies.references import reference_losses

# What a comparison may ask about: a structure, or one to be learned in every split.
Asked: TypeAlias = Structure | LearnedStructure


class TimeIsUpError(Exception):
    """A split is stopped, because the time is up."""


class Split(NamedTuple):
    """A split into training and test rows.

    Attributes
    ----------
    fold_of
        The fold of each row, (n,).
    fold
        The fold of the test rows.
    repeat
        The repeat of the cross-validation.
    number
        Its place among all splits.
    """

    fold_of: IndexArray
    fold: int
    repeat: int
    number: int

    def rng(self, seed: int) -> np.random.RandomState:
        """Return the random generator of a split, another one for every seed, repeat and fold."""
        return np.random.RandomState((seed, self.repeat, self.fold))


@dataclass(frozen=True, eq=False)
class SplitScores:
    """The scores of the models of one split.

    Attributes
    ----------
    test
        The places of the test rows.
    none, structure, copies
        The scores without structure, with it, and with each of its scrambled copies.
    references
        The log losses of scikit-learn's own models, where they were fitted.
    """

    test: IndexArray
    none: Scored
    structure: Scored
    copies: list[Scored]
    references: dict[str, float]


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a model on the test rows.

    Attributes
    ----------
    by_level, severity
        Its scores, (levels, metrics), and the mean distance of its mistakes.
    proba
        Its probabilities, (rows, classes), in the order of the structure's classes.
    tried
        What the validation rows chose.
    levels
        The names of the levels.
    """

    by_level: FloatArray
    severity: float
    proba: FloatArray
    tried: Tried
    levels: tuple[str, ...]


def run_split(
    model: StudyModel, asked: Asked, rows: Rows, plan: Plan, split: Split, seed: int,
    check_time: Callable[[], None] = lambda: None,
) -> SplitScores:  # fmt: skip
    """Return the scores of the three arms in one split.

    ``check_time`` is called before every fit; what it raises ends the split.
    """
    rng = split.rng(seed)
    rest, test = rows.outside(split.fold_of, split.fold), rows.inside(split.fold_of, split.fold)
    contest = Contest.of(model, asked, rest, rows.coded.classes, plan, rng, check_time)
    plain = contest.plain()
    without = contest.model_of(plain)
    best = contest.best(plain, contest.structure, plan.candidates)
    found = [_scored(contest.model_of(best, plain, without), best, test, contest.structure)]
    for copy in range(plan.n_copies):
        draw = np.random.default_rng((seed, split.repeat, split.fold, copy))
        scrambled: Any = contest.structure
        tried = contest.best(plain, scrambled.scramble(draw), plan.candidates)
        fitted = contest.model_of(tried, plain, without)
        found.append(_scored(fitted, tried, test, contest.structure))
    references: dict[str, float] = {}
    if split.number < plan.n_references:
        check_time()
        references = reference_losses(rest, test)
    return SplitScores(
        np.flatnonzero(split.fold_of == split.fold),
        _scored(without, plain, test, contest.structure),
        found[0],
        found[1:],
        references,
    )


@dataclass(frozen=True, eq=False)
class Contest:
    """The models of one split, which share training rows.

    Attributes
    ----------
    model
        The kind of model.
    structure
        The structure asked about, or learned from the training rows.
    rest
        All training rows.
    parts
        How they are divided into rows to train on and rows to validate on.
    check_time
        Called before every fit.
    """

    model: StudyModel
    structure: Structure
    rest: Rows
    parts: Parts
    check_time: Callable[[], None]

    @classmethod
    def of(
        cls, model: StudyModel, asked: Asked, rest: Rows, classes: tuple[Any, ...], plan: Plan,
        rng: np.random.RandomState, check_time: Callable[[], None] = lambda: None,
    ) -> Contest:  # fmt: skip
        """Return the contest of a split; a learned structure covers all ``classes``."""
        part_of = rest.folds(plan.n_parts, rng)
        validating = range(plan.n_parts) if plan.chooses_on_all else range(1)
        parts = [(rest.outside(part_of, part), rest.inside(part_of, part)) for part in validating]
        check_time()
        # The structure must not be learned from rows that validate it.
        structure = structure_of(asked, model.estimator, parts[0][0], classes, rng)
        return cls(model, structure, rest, parts, check_time)

    def plain(self) -> Tried:
        """Return the model without structure, as validation rows choose it."""
        self.check_time()
        return self.model.tried(self.parts, self.structure, NONE, None)

    def best(self, plain: Tried, structure: Structure, candidates: Sequence[Candidate]) -> Tried:
        """Return the candidate with the lowest validation log loss; no structure wins ties."""
        found = [plain]
        for candidate in candidates:
            self.check_time()
            found.append(self.model.tried(self.parts, structure, candidate, plain))
        return min(found, key=lambda tried: tried.loss)

    def model_of(self, tried: Tried, plain: Tried | None = None, without: Any = None) -> Any:
        """Return the model of what was chosen, fitted to all training rows, once if it is plain."""
        if tried is plain:
            return without
        self.check_time()
        return self.model.fitted(self.rest, tried)


def structure_of(
    asked: Asked, estimator: Any, train: Rows, classes: tuple[Any, ...], rng: np.random.RandomState
) -> Structure:
    """Return the structure asked about, or one for all classes that is learned from ``train``."""
    if not isinstance(asked, LearnedStructure):
        return asked
    return asked.learned_from(train, estimator, classes, rng)


def _scored(model: Any, tried: Tried, test: Rows, structure: Structure) -> Scored:
    """Return the scores of a model on the test rows, at the levels of the true structure."""
    proba = model.predict_proba(test.features)
    report = scores_by_level(
        test.labels, proba, structure, classes=model.classes_, allow_blocks=test.allow_blocks
    )
    values = {
        "log loss": [row.log_loss for row in report.rows],
        "accuracy": [row.accuracy for row in report.rows],
        "calibration error": [row.calibration_error for row in report.rows],
    }
    return Scored(
        np.array([values[metric] for metric in METRICS]).T,
        report.mistake_severity,
        in_order_of(structure, proba, model.classes_),
        tried,
        tuple(row.level for row in report.rows),
    )


def in_order_of(structure: Structure, proba: FloatArray, classes: Any) -> FloatArray:
    """Return probabilities whose columns are ``classes`` in the order of the structure's."""
    place = {label: column for column, label in enumerate(classes.tolist())}
    return proba[:, [place[label] for label in structure.classes]]
