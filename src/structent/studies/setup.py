"""What compare and structure_test share: the kind of model, the plan, the splits, and the clock."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from structent._checks import checked_integer
from structent.errors import StructentError
from structent.structure import trivial
from structent.studies.arms import Asked, Contest, Split, TimeIsUpError
from structent.studies.fitting import Rows, checked_folds, seeded
from structent.studies.learn import LearnedStructure
from structent.studies.models import MODELS, StudyModel, model_around, model_of
from structent.studies.plan import FEWEST_FOLDS, Plan, Size, plan_for, with_minutes
from structent.studies.progress import OnProgress


@dataclass(frozen=True)
class Numbers:
    """The numbers that a caller gave, None where the size of the task decides."""

    n_folds: int | None
    n_repeats: int | None
    n_copies: int


@dataclass(frozen=True)
class Clock:
    """When a comparison began, and how many seconds it may take."""

    start: float
    budget: float | None

    def check(self) -> None:
        """Raise if the time is up."""
        if self.budget is not None and time.perf_counter() > self.start + self.budget:
            raise TimeIsUpError


def models_of(name: str, estimator: Any, seed: int, *, allow_blocks: bool) -> list[StudyModel]:
    """Return the kinds of model to choose from: one, or all."""
    if name not in (*MODELS, "auto"):
        raise StructentError(f"model must be 'boosting', 'linear' or 'auto', got {name!r}")
    if estimator is None:
        names = MODELS if name == "auto" else (name,)
        return [model_of(each, seed, allow_blocks=allow_blocks) for each in names]
    if name != "auto":
        raise StructentError(f"give a model or an estimator, got model={name!r} and an estimator")
    own = seeded(estimator, seed)
    return [model_around(own.set_params(allow_blocks=True) if allow_blocks else own)]


def checked_plan(model: StudyModel, rows: Rows, asked: Asked, numbers: Numbers) -> Plan:
    """Return the plan: the caller's numbers, and otherwise those for the size of the task."""
    size = Size(len(rows), _n_columns(rows), len(rows.coded.classes))
    n_learning = asked.n_folds if isinstance(asked, LearnedStructure) else 0
    plan = plan_for(size, model.name, n_learning=n_learning)
    n_folds = plan.n_folds if numbers.n_folds is None else numbers.n_folds
    n_repeats = plan.n_repeats if numbers.n_repeats is None else numbers.n_repeats
    if numbers.n_folds is None and rows.groups is not None:
        n_folds = max(FEWEST_FOLDS, min(n_folds, len(np.unique(rows.groups))))
    checked_folds(n_folds, rows, at_least=FEWEST_FOLDS)
    checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
    checked_integer(numbers.n_copies, "n_copies", at_least=1, at_most=1000)
    given = None if isinstance(asked, LearnedStructure) else asked
    plan = replace(
        plan, n_folds=n_folds, n_repeats=n_repeats, n_copies=numbers.n_copies,
        candidates=model.usable(plan.candidates, given),
    )  # fmt: skip
    return with_minutes(plan, size, model.name)


def _n_columns(rows: Rows) -> int:
    return int(np.shape(rows.features)[1])


def raced_losses(
    models: list[StudyModel], asked: Asked, rows: Rows, numbers: Numbers, seed: int,
    clock: Clock, tell: OnProgress,
) -> dict[str, float]:  # fmt: skip
    """Return the validation log loss of each kind of model without structure on the first split."""
    if len(models) == 1:
        return {}
    plan = checked_plan(models[0], rows, asked, numbers)
    split = splits_of(rows, plan, seed)[0]
    rest = rows.outside(split.fold_of, split.fold)
    # Models without structure do not need the one that would be learned.
    plain = trivial(rows.coded.classes) if isinstance(asked, LearnedStructure) else asked
    raced = {}
    for place, model in enumerate(models):
        tell("models without structure", place, len(models))
        try:
            contest = Contest.of(
                model, plain, rest, rows.coded.classes, plan, split.rng(seed), clock.check
            )
            raced[model.name] = contest.plain().loss
        except TimeIsUpError:
            raise out_of_time(clock, "even the models without structure were trained") from None
    return raced


def out_of_time(clock: Clock, what: str) -> StructentError:
    """Return the error of a study that ended before it could say anything."""
    return StructentError(
        f"the budget of {clock.budget:g} seconds was used up before {what}; allow more time"
    )


def splits_of(rows: Rows, plan: Plan, seed: int) -> list[Split]:
    """Return the splits of every repeat."""
    found: list[Split] = []
    for repeat in range(plan.n_repeats):
        fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, repeat)))
        for fold in range(plan.n_folds):
            if not rows.has_class[fold_of == fold].any():  # only where blocks are allowed
                raise StructentError(
                    "every fold must have a row that is known by its class, got one where all are "
                    "known by blocks or sets of classes; a structure is judged on classes"
                )
            found.append(Split(fold_of, fold, repeat, len(found)))
    return found


@contextmanager
def quiet_and_on_one_thread() -> Iterator[None]:
    """Silence warnings about candidates, and keep BLAS to one thread, during a study.

    A candidate is judged by its loss, whatever it warns about. Splits run in parallel threads,
    where warnings can only be filtered for all of them.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
