"""Structures scored one after another, several at a time, each of them once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

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
from structent.studies.arms import Rows
from structent.studies.compare import checked_rows
from structent.studies.orbit import Scrambled, identity


@dataclass(frozen=True, eq=False)
class Scoring:
    """How structures are scored: by what, how many at a time, and where their losses are kept.

    Attributes
    ----------
    fit_and_score
        Gives the losses of a structure.
    n_folds
        The folds of one repeat.
    n_jobs
        How many structures at a time.
    kept
        The file of losses.
    known
        The losses so far, by the identity of the structure.
    """

    fit_and_score: FitAndScore
    n_folds: int
    n_jobs: int
    kept: KeptLosses
    known: dict[str, FloatArray]

    def losses_of(self, structures: Iterable[Scrambled]) -> Generator[FloatArray]:
        """Give the losses of each structure, (folds,), in the order of the structures."""
        waiting = iter(structures)
        # Threads, not processes: XGBoost and the kernel release the interpreter's lock.
        with Parallel(n_jobs=self.n_jobs, backend="threading") as run:
            while batch := [(identity(s), s) for s in islice(waiting, self.n_jobs)]:
                missing = {name: s for name, s in batch if name not in self.known}
                scored = run(
                    delayed(checked_losses)(self.fit_and_score, structure, self.n_folds)
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
                "fit_and_score must return as many losses for every structure, got "
                f"{expected} and then {len(losses)}"
            )
        return losses


def scoring_of(  # noqa: PLR0913  a question has many sides
    estimator: Any,
    X: Any,
    y: Any,
    structure: Scrambled,
    *,
    groups: Any,
    n_folds: int,
    n_repeats: int,
    seed: int,
    n_jobs: int | None,
    keep_in: str | os.PathLike[str] | None,
) -> Scoring:
    """Return how the structures of a test are scored, all that was given checked."""
    workers = checked_n_jobs(n_jobs)
    checked_integer(seed, "seed", at_least=0, at_most=2**32 - 1)
    path = None if keep_in is None else Path(keep_in)
    if path is not None and not path.parent.is_dir():
        raise StructentError(f"keep_in must be a file in a folder that exists, got {path}")
    if callable(estimator) and not isinstance(estimator, type):
        checked_integer(n_folds, "n_folds", at_least=2, at_most=10_000)
        question, fit_and_score = "a function", estimator
    else:
        rows = checked_rows(X, y, groups, structure)
        checked_integer(n_folds, "n_folds", at_least=2, at_most=len(rows.labels))
        checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
        fit_and_score = CrossValidated.of(
            estimator, rows, n_folds=n_folds, n_repeats=n_repeats, seed=seed
        )
        question = "" if path is None else fit_and_score.digest()
    kept = KeptLosses(path, question)
    return Scoring(fit_and_score, n_folds, workers, kept, kept.read())


# Fits models with a structure, and gives a loss for every fold: the lower the better.
FitAndScore: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """The log loss of an estimator in every fold of repeated cross-validation.

    Called with a structure, it gives the losses, (folds,), on folds that are always the same.

    Attributes
    ----------
    estimator
        A classifier one of whose parameters, or of its steps', is called ``structure``.
    rows
        Features, labels and groups.
    folds_of
        The fold of each row, in each repeat.
    """

    estimator: Any
    rows: Rows
    folds_of: tuple[IndexArray, ...]

    @classmethod
    def of(
        cls, estimator: Any, rows: Rows, *, n_folds: int, n_repeats: int, seed: int
    ) -> CrossValidated:
        """Return the cross-validation whose folds, and unseeded models, follow from a seed."""
        _check_parameters(estimator)
        parameters = estimator.get_params()
        unseeded = {
            name: seed
            for name, value in parameters.items()
            if name.rpartition("__")[2] == "random_state" and value is None
        }
        folds_of = [rows.folds(n_folds, np.random.RandomState((seed, i))) for i in range(n_repeats)]
        return cls(clone(estimator).set_params(**unseeded), rows, tuple(folds_of))

    def __call__(self, structure: Any) -> FloatArray:
        """Return the log loss of the rows held out in each fold, (folds,)."""
        model = clone(self.estimator).set_params(**self._parameters(structure))
        return np.array(
            [
                self._held_out_loss(model, structure, fold_of == fold)
                for fold_of in self.folds_of
                for fold in range(int(fold_of.max()) + 1)
            ]
        )

    def digest(self) -> str:
        """Return a text that stands for data, folds and estimator, whatever its structure."""
        nothing = {structure_parameter(self.estimator): None}
        model = clone(self.estimator).set_params(**nothing)
        rows = (self.rows.features, self.rows.labels.tolist())
        found: str = digest_of((type(model).__qualname__, model.get_params(), rows, self.folds_of))
        return found

    def _parameters(self, structure: Any) -> dict[str, Any]:
        name = structure_parameter(self.estimator)
        parameters = {name: structure}
        weights = name.removesuffix("structure") + "weights"
        if weights in self.estimator.get_params() and _is_trivial(structure):
            parameters[weights] = None  # a weight of the singletons has nothing to be set against
        return parameters

    def _held_out_loss(self, model: Any, structure: Any, is_test: Any) -> float:
        train, test = self.rows.take(np.flatnonzero(~is_test)), self.rows.take(is_test)
        model.fit(train.features, train.labels)
        proba = model.predict_proba(test.features)
        plain = trivial(structure.classes)
        return structured_log_loss(test.labels, proba, plain, classes=model.classes_)


def structure_parameter(estimator: Any) -> str:
    """Return the name of the parameter that takes the structure, ``step__structure`` in a pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from structent import StructuredLogisticRegression
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
            "estimator must be a classifier with one parameter 'structure', or a function that "
            f"takes a structure and returns its losses, got {type(estimator).__name__}"
        )
    return names[0]


def checked_losses(fit_and_score: FitAndScore, structure: Any, n_folds: int) -> FloatArray:
    """Return the losses of a structure, (folds,): finite, and those of whole cross-validations."""
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
    name = structure_parameter(estimator)
    weights = estimator.get_params().get(name.removesuffix("structure") + "weights")
    if weights is not None and not isinstance(weights, str) and np.ndim(weights) > 0:
        raise StructentError(
            "weights of the estimator must be None, 'auto' or one number, got one a partition; "
            "give them to the structure: structure.reweight(weights)"
        )


def _is_trivial(structure: Any) -> bool:
    return isinstance(structure, RandomPartition) and all(
        partition.is_singletons for partition in structure.partitions
    )


@dataclass(frozen=True)
class KeptLosses:
    """The losses of structures, in a file that several commands may add to.

    Attributes
    ----------
    path
        The file, or None to keep nothing; it need not exist yet.
    question
        Stands for data, folds and model. Lines of other questions are left alone.
    """

    path: Path | None
    question: str

    def read(self) -> dict[str, FloatArray]:
        """Return the losses of each structure that was scored, by its identity."""
        if self.path is None:
            return {}
        lines = JsonLines(self.path).read(
            _parts, what="hold the losses of a structure", then="or keep the losses in another file"
        )
        return {
            structure: losses for question, structure, losses in lines if question == self.question
        }

    def add(self, structure: str, losses: FloatArray) -> None:
        """Write down the losses of a structure."""
        if self.path is not None:
            JsonLines(self.path).add(
                {"question": self.question, "structure": structure, "losses": losses.tolist()}
            )


def _parts(line: Any) -> tuple[str, str, FloatArray]:
    return line["question"], line["structure"], np.array(line["losses"], dtype=np.float64)
