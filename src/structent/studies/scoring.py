"""How the structures of a test are scored: their losses in every split, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as digest_of
from sklearn.base import clone

from structent._checks import checked_integer
from structent._files import JsonLines
from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.metrics import structured_log_loss
from structent.structure import RandomPartition, trivial
from structent.studies.arms import Contest, Split
from structent.studies.fitting import (
    Rows,
    checked_folds,
    checked_rows,
    prior_parameter,
    seeded,
    structure_parameter,
    weights_parameter,
)
from structent.studies.models import StudyModel, Tried
from structent.studies.orbit import Scrambled, identity
from structent.studies.plan import Plan
from structent.studies.progress import OnProgress
from structent.studies.setup import (
    Clock,
    Numbers,
    checked_plan,
    models_of,
    raced_losses,
    splits_of,
)

_FOLDS = 5

# Fits models with a structure, and gives a loss for every fold: the lower the better.
FitAndScore: TypeAlias = Callable[[Any], Any]


def scoring_of(  # noqa: PLR0913, PLR0917  all that structure_test and partition_gains share
    X: Any, y: Any, structure: Scrambled, model_or_estimator: tuple[str, Any], groups: Any,
    seed: int, n_jobs: int | None, n_folds: int | None, n_repeats: int, path: Path | None,
    tell: OnProgress,
) -> Scoring:  # fmt: skip
    """Check the arguments, and return how the structures of a test are scored."""
    workers, (model, estimator) = checked_n_jobs(n_jobs), model_or_estimator
    checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
    if estimator is None:
        return _choosing(
            X, y, structure, model, groups, seed, workers, n_folds, n_repeats, path, tell
        )
    n_folds = _FOLDS if n_folds is None else n_folds
    if callable(estimator) and not isinstance(estimator, type):
        checked_integer(n_folds, "n_folds", at_least=2, at_most=10_000)
        kept = _KeptLosses(path, "a function")
        return Scoring(estimator, n_folds, None, workers, kept, kept.read())
    _check_parameters(estimator)
    rows = checked_rows(X, y, structure, estimator=estimator, groups=groups)
    checked_folds(n_folds, rows, at_least=2)
    folds_of = [rows.folds(n_folds, np.random.RandomState((seed, i))) for i in range(n_repeats)]
    validated = _CrossValidated(seeded(estimator, seed), rows, tuple(folds_of))
    kept = _KeptLosses(path, "" if path is None else validated.digest(X))
    return Scoring(validated, n_folds, len(rows), workers, kept, kept.read())


def _choosing(  # noqa: PLR0913, PLR0917  the same
    X: Any, y: Any, structure: Scrambled, model: str, groups: Any, seed: int, workers: int,
    n_folds: int | None, n_repeats: int, path: Path | None, tell: OnProgress,
) -> Scoring:  # fmt: skip
    """Return how structures are scored by the models and splits of a comparison."""
    models = models_of(model, None, seed, allow_blocks=False)
    rows = checked_rows(X, y, structure, estimator=models[0].estimator, groups=groups)
    numbers, clock = Numbers(n_folds, n_repeats, 1), Clock(perf_counter(), None)
    raced = raced_losses(models, structure, rows, numbers, seed, clock, tell)
    chosen = min(models, key=lambda each: raced.get(each.name, 0.0))
    plan = checked_plan(chosen, rows, structure, numbers)
    scored = _Compared.of(chosen, structure, rows, plan, seed, workers)
    kept = _KeptLosses(path, "" if path is None else scored.digest(X, seed))
    return Scoring(scored, plan.n_folds, len(rows), workers, kept, kept.read())


@dataclass(frozen=True, eq=False)
class Scoring:
    """How structures are scored: by what, how many at a time, and where their losses are kept.

    Attributes
    ----------
    fit_and_score
        Gives the losses of a structure.
    n_folds, n_rows
        The folds of one repeat, and the rows; None if a function gives the losses.
    n_jobs
        How many structures at a time.
    kept
        The file of losses.
    known
        The losses so far, by the identity of the structure.
    """

    fit_and_score: FitAndScore
    n_folds: int
    n_rows: int | None
    n_jobs: int
    kept: _KeptLosses
    known: dict[str, FloatArray]

    def losses_of(self, structures: Iterable[Scrambled]) -> Generator[FloatArray]:
        """Yield the losses of each structure, (folds,), in the order of the structures."""
        waiting = iter(structures)
        # Threads, not processes: the compiled loops of training release the interpreter's lock.
        with Parallel(n_jobs=self.n_jobs, backend="threading") as run:
            while batch := [(identity(s), s) for s in islice(waiting, self.n_jobs)]:
                missing = {name: s for name, s in batch if name not in self.known}
                scored = run(
                    delayed(_checked_losses)(self.fit_and_score, structure, self.n_folds)
                    for structure in missing.values()
                )
                for name, losses in zip(missing, scored, strict=True):
                    self.known[name] = losses
                    self.kept.add(name, losses)
                for name, _ in batch:
                    yield self._of_same_length(self.known[name])

    def _of_same_length(self, losses: FloatArray) -> FloatArray:
        expected = len(next(iter(self.known.values())))
        if len(losses) != expected:
            raise StructentError(
                "fit_and_score must return the same number of losses for every structure, got "
                f"{expected} and then {len(losses)}"
            )
        return losses


class _Plain(NamedTuple):
    """A split of a comparison: its contest, its test rows, and its model without structure."""

    contest: Contest
    test: Rows
    tried: Tried
    loss: float


@dataclass(frozen=True, eq=False)
class _Compared:
    """The log loss in every split of a comparison, where validation rows choose the candidate.

    Called with a structure, it gives the losses, (splits,). Models without structure are trained
    once for all structures.

    Attributes
    ----------
    model
        The kind of model.
    rows
        Features, labels and groups.
    plan
        The candidates and splits.
    splits
        What all structures share in each split.
    """

    model: StudyModel
    rows: Rows
    plan: Plan
    splits: tuple[_Plain, ...]

    @classmethod
    def of(
        cls, model: StudyModel, structure: Scrambled, rows: Rows, plan: Plan, seed: int,
        workers: int,
    ) -> _Compared:  # fmt: skip
        """Return what scores structures; the models without structure are trained here."""

        def plain(split: Split) -> _Plain:
            rest = rows.outside(split.fold_of, split.fold)
            test = rows.inside(split.fold_of, split.fold)
            contest = Contest.of(model, structure, rest, rows.coded.classes, plan, split.rng(seed))
            tried = contest.plain()
            return _Plain(contest, test, tried, _test_loss(contest.model_of(tried), test))

        run = Parallel(n_jobs=workers, backend="threading")
        splits = run(delayed(plain)(split) for split in splits_of(rows, plan, seed))
        return cls(model, rows, plan, tuple(splits))

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the test rows in each split, (splits,)."""
        return np.array([self._loss(split, structure) for split in self.splits])

    def digest(self, X: Any, seed: int) -> str:
        """Return a text that identifies data, splits and model, but not the structure."""
        settings = (self.model.name, self.model.estimator.get_params(), self.plan, seed)
        found: str = digest_of((settings, X, self.rows.labels.tolist(), self.rows.groups))
        return found

    def _loss(self, split: _Plain, structure: Any) -> float:
        if _is_trivial(structure):
            return split.loss
        best = split.contest.best(split.tried, structure, self.plan.candidates)
        if best is split.tried:
            return split.loss
        return _test_loss(split.contest.model_of(best), split.test)


def _test_loss(model: Any, test: Rows) -> float:
    proba = model.predict_proba(test.features)
    plain = trivial(model.classes_.tolist())
    return structured_log_loss(test.labels, proba, plain, classes=model.classes_)


@dataclass(frozen=True, eq=False)
class _CrossValidated:
    """The log loss of an estimator in every fold of repeated cross-validation.

    Called with a structure, it gives the losses, (folds,), on folds that are always the same.

    Attributes
    ----------
    estimator
        A classifier with a parameter ``structure``, or a pipeline with such a step.
    rows
        Features, labels and groups.
    folds_of
        The fold of each row, in each repeat.
    """

    estimator: Any
    rows: Rows
    folds_of: tuple[IndexArray, ...]

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the rows held out in each fold, (folds,)."""
        model = clone(self.estimator).set_params(**self._parameters(structure))
        return np.array(
            [
                self._held_out_loss(model, fold_of, fold)
                for fold_of in self.folds_of
                for fold in range(int(fold_of.max()) + 1)
            ]
        )

    def digest(self, X: Any) -> str:
        """Return a text that identifies data, folds and estimator, but not the structure."""
        nothing = {structure_parameter(self.estimator): None}
        model = clone(self.estimator).set_params(**nothing)
        rows = (X, self.rows.labels.tolist())
        found: str = digest_of((type(model).__qualname__, model.get_params(), rows, self.folds_of))
        return found

    def _parameters(self, structure: Any) -> dict[str, Any]:
        parameters = {structure_parameter(self.estimator): structure}
        if not _is_trivial(structure):
            return parameters
        # Without other partitions the weight of the singletons means nothing.
        given = self.estimator.get_params()
        weights, prior = weights_parameter(self.estimator), prior_parameter(self.estimator)
        if weights in given:
            parameters[weights] = None
        if isinstance(given.get(prior), Real):
            parameters[prior] = 1.0
        return parameters

    def _held_out_loss(self, model: Any, fold_of: IndexArray, fold: int) -> float:
        train, test = self.rows.outside(fold_of, fold), self.rows.inside(fold_of, fold)
        return _test_loss(model.fit(train.features, train.target), test)


def _checked_losses(fit_and_score: FitAndScore, structure: Any, n_folds: int) -> FloatArray:
    """Return the losses of a structure, (folds,): finite, and of whole cross-validations."""
    try:
        losses = np.atleast_1d(np.array(fit_and_score(structure), dtype=np.float64))
    except TypeError as error:
        raise StructentError(f"fit_and_score must return numbers: {error}") from error
    if losses.ndim != 1 or (len(losses) > 1 and len(losses) % n_folds):
        raise StructentError(
            f"fit_and_score must return one loss, or one for each of the {n_folds} folds of every "
            f"repeat, got shape {losses.shape}; say how many folds there are by n_folds"
        )
    if not np.isfinite(losses).all():
        raise StructentError(
            f"losses must be finite, got {losses.tolist()}; a model that gives the true class the "
            "probability 0 cannot be compared by its log loss"
        )
    return losses


def _check_parameters(estimator: Any) -> None:
    names = weights_parameter(estimator), prior_parameter(estimator)
    for name, allowed in zip(names, ("None, 'auto'", "'auto'"), strict=True):
        given = estimator.get_params().get(name)
        if given is not None and np.ndim(given) > 0:
            raise StructentError(
                f"{name.rpartition('__')[2]} of the estimator must be {allowed} or one number, got "
                "one per partition; give them to the structure: structure.reweight(weights)"
            )


def _is_trivial(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and all(
        partition.is_singletons for partition in structure.partitions
    )


@dataclass(frozen=True)
class _KeptLosses:
    """The losses of structures, in a file that several commands may add to.

    Attributes
    ----------
    path
        The file, or None to keep nothing; it need not exist yet.
    question
        Identifies data, folds and model. Lines of other questions are ignored.
    """

    path: Path | None
    question: str

    def read(self) -> dict[str, FloatArray]:
        """Return the losses of each structure that was scored, by its identity."""
        if self.path is None:
            return {}
        lines = JsonLines(self.path).read(
            _of_line,
            what="hold the losses of a structure",
            then="or keep the losses in another file",
        )
        return {
            structure: losses for question, structure, losses in lines if question == self.question
        }

    def add(self, structure: str, losses: FloatArray) -> None:
        """Append the losses of a structure."""
        if self.path is not None:
            JsonLines(self.path).add(
                {"question": self.question, "structure": structure, "losses": losses.tolist()}
            )


def _of_line(line: Any) -> tuple[str, str, FloatArray]:
    return line["question"], line["structure"], np.array(line["losses"], dtype=np.float64)
