"""The comparison itself: three arms on random splits; the size of the task says how many.

:func:`compare` makes a plan for the size of the task (:mod:`structent.studies.plan`), divides the
rows into splits, scores the arms of every split (:mod:`structent.studies.arms`), and draws the
conclusion (:mod:`structent.studies.verdict`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.structure import RandomPartition
from structent.structure.samplers import Structure
from structent.studies.arms import (
    Asked,
    Scored,
    Split,
    SplitScores,
    TimeIsUpError,
    in_order_of,
    run_split,
    structure_of,
)
from structent.studies.comparison import (
    METRICS,
    ArmName,
    ArmScores,
    Comparison,
    LearningCurve,
    References,
    Task,
)
from structent.studies.differences import paired_difference
from structent.studies.fitting import (
    Rows,
    asked_structure,
    checked_rows,
    drawn_seed,
    in_parallel,
)
from structent.studies.learn import LearnedStructure
from structent.studies.models import StudyModel, Tried
from structent.studies.plan import NONE, Plan
from structent.studies.progress import OnProgress, telling
from structent.studies.setup import (
    Clock,
    Numbers,
    checked_plan,
    models_of,
    out_of_time,
    quiet_and_on_one_thread,
    raced_losses,
    splits_of,
)
from structent.studies.verdict import verdict

_DECIDING = ("log loss", "accuracy")
_FEWEST_SPLITS = 2  # one split has no interval
_LEARNED = (
    "the structure is learned again from the training rows of every split; the one that is shown "
    "is learned from all rows"
)


def compare(  # noqa: PLR0913  a question has many sides
    X: Any,
    y: Any,
    structure: Asked | str,
    *,
    model: str = "auto",
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    metric: str = "log loss",
    n_folds: int | None = None,
    n_repeats: int | None = None,
    n_copies: int = 1,
    budget: float | None = None,
    learning_curve: bool = False,
    allow_blocks: bool = False,
    on_plan: Callable[[Plan], None] = lambda _plan: None,
) -> Comparison:
    """Return whether to use the structure, and how sure that is.

    Models without structure, with it, and with scrambled copies of it are trained on the same
    splits of repeated cross-validation. In every split validation rows choose where the structure
    acts and how much: in the loss, in the parameters (a prior, or leaves that borrow from related
    classes), in both, or nowhere. The copies have the same choice. The structure is recommended
    only if it beats both: if a copy helps as much, the gain is just regularisation.

    The size of the task decides how many splits there are and what is tried. All rows are used.
    The same call with the same ``random_state`` gives the same figures on every machine and with
    every ``n_jobs``, unless ``budget`` ends it early.

    Parameters
    ----------
    X, y
        A table or array, (n, columns), and the label of each row, (n,).
    structure
        A random partition, spanning-tree partitions, a short form of the command line
        ("circular:width=3", "ordinal"), which is built from the labels, or a
        :class:`~structent.studies.LearnedStructure`, which is learned in every split from its
        training rows alone; scrambled copies are then copies of the structure learned there.
    model
        "boosting", "linear", or "auto": both are tried without structure on the first split, and
        the one with the lower validation log loss goes on.
    estimator
        A classifier of your own in place of these: a :class:`StructuredBoostingClassifier`, one
        like it, whose ``fit`` takes an ``eval_set`` and keeps ``validation_log_loss_``, or a
        :class:`StructuredLogisticRegression`.
    groups
        The group of each row, (n,), if rows belong together: rows of one group share a fold.
    random_state
        The seed of all random choices, also of the estimator if its own ``random_state`` is None.
        If None, a seed is drawn; it is the comparison's ``seed``.
    n_jobs
        How many splits to run at a time, in threads; all processors if None or -1.
    progress
        Whether to show a progress bar, or a function that is called with the name of the step, how
        much of it is done, and how much there is.
    metric
        The metric that decides: "log loss" or "accuracy".
    n_folds, n_repeats
        Folds of the cross-validation, and its repeats with other folds; if None, the size of the
        task decides.
    n_copies
        Scrambled copies in each split.
    budget
        The seconds after which it stops with the splits that are done. If None, there is no limit,
        except for tasks that take more than ten minutes: these stop after twice their expected time
        (``plan.cap``). ``float("inf")`` is never a limit.
    learning_curve
        Whether to train on smaller parts of the rows, too.
    allow_blocks
        Whether labels may also be names of blocks, or sets of classes. All arms train on such rows;
        the one without structure uses the probability of the set. They are scored at the levels
        where one block contains the set. A name means its block of the structure given, also in
        scrambled copies.
    on_plan
        Called with the plan before the first split.

    Examples
    --------
    >>> from structent import circular
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=300)
    >>> angle = 2 * np.pi * y / 6 + rng.normal(scale=0.8, size=300)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> found = compare(X, y, circular(range(6)), model="boosting", n_repeats=1, random_state=0)
    >>> found.verdict.finding in ("use it", "do not use it", "undecided")
    True
    """
    start = time.perf_counter()
    if metric not in _DECIDING:
        raise StructentError(f"metric must be 'log loss' or 'accuracy', got {metric!r}")
    _check_budget(budget)
    seed, workers = drawn_seed(random_state), checked_n_jobs(n_jobs)
    models = models_of(model, estimator, seed, allow_blocks=allow_blocks)
    asked, given = _checked_question(structure, y, allow_blocks=allow_blocks)
    rows = checked_rows(
        X, y, given, estimator=models[0].estimator, groups=groups, allow_blocks=allow_blocks
    )
    numbers = Numbers(n_folds, n_repeats, n_copies)
    clock = Clock(start, budget)
    with telling(progress) as tell, quiet_and_on_one_thread():
        raced = raced_losses(models, asked, rows, numbers, seed, clock, tell)
        kept = min(models, key=lambda each: raced.get(each.name, 0.0))
        plan = checked_plan(kept, rows, asked, numbers)
        on_plan(plan)
        if budget is None and plan.cap is not None:
            clock = Clock(start, 60 * plan.cap)
        done = _scored_splits(kept, asked, rows, plan, seed, workers, clock, tell)
        curve = _measured_curve(kept, asked, rows, plan, seed, tell) if learning_curve else None
        shown = structure_of(
            asked, kept.estimator, rows, rows.coded.classes, np.random.RandomState(seed)
        )
    task = _described(X, rows, shown, plan)
    study = _Study(kept, X, rows, plan, tuple(done), metric, seed, raced)
    return study.concluded(task, shown, curve, time.perf_counter() - start)


def _check_budget(budget: float | None) -> None:
    if budget is None:
        return
    is_number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
    if not is_number or not budget > 0:  # NaN is not above 0 either
        raise StructentError(f"budget must be a number of seconds above 0, or None, got {budget!r}")


def _checked_question(
    structure: Any, y: Any, *, allow_blocks: bool
) -> tuple[Asked, Structure | None]:
    """Return what is asked about, and the given structure, which is None if one is learned."""
    if not isinstance(structure, LearnedStructure):
        asked = asked_structure(structure, y, allow_blocks=allow_blocks)
        return asked, asked
    if allow_blocks:
        raise StructentError(
            "allow_blocks=True needs a structure with named blocks, got one that is to be learned"
        )
    return structure, None


def _scored_splits(
    model: StudyModel, asked: Asked, rows: Rows, plan: Plan, seed: int, workers: int,
    clock: Clock, tell: OnProgress,
) -> list[SplitScores]:  # fmt: skip
    """Return the scores of all splits that were done before the time was up, in order."""

    def scored(split: Split) -> SplitScores | None:
        try:
            return run_split(model, asked, rows, plan, split, seed, clock.check)
        except TimeIsUpError:
            return None

    splits = [(split,) for split in splits_of(rows, plan, seed)]
    found = list(in_parallel(scored, splits, workers, "splits", tell))
    done = [split for split in found if split is not None]
    if len(done) < _FEWEST_SPLITS:
        raise out_of_time(clock, f"{_FEWEST_SPLITS} of {plan.n_splits} splits were done")
    return done


_PARTS = (0.125, 0.25, 0.5, 1.0)


def _measured_curve(
    model: StudyModel, asked: Asked, rows: Rows, plan: Plan, seed: int, tell: OnProgress
) -> LearningCurve:
    """Return the losses on the folds of the first repeat, trained on parts of their rows."""
    sizes = tuple(int(part * len(rows) * (1 - 1 / plan.n_folds)) for part in _PARTS)
    splits = splits_of(rows, replace(plan, n_repeats=1), seed)
    short = replace(plan, n_copies=0, n_references=0)
    table = np.empty((2, len(sizes), plan.n_folds))
    for place, size in enumerate(sizes):
        tell("learning curve", place, len(sizes))
        for split in splits:
            is_test = split.fold_of == split.fold
            rng = np.random.RandomState((seed, place, split.fold))
            train = rng.permutation(np.flatnonzero(~is_test))[:size]
            kept = np.concatenate([train, np.flatnonzero(is_test)])
            part = split._replace(fold_of=is_test[kept].astype(int), fold=1)
            scores = run_split(model, asked, rows.take(kept), short, part, seed)
            for arm, scored in enumerate((scores.none, scores.structure)):
                table[arm, place, split.fold] = scored.by_level[-1, 0]
    tell("learning curve", len(sizes), len(sizes))
    return LearningCurve(sizes, *table)


def _described(X: Any, rows: Rows, structure: Structure, plan: Plan) -> Task:
    """Return what was compared."""
    counts = np.bincount(_known_classes(rows, structure), minlength=len(structure.classes))
    rare = tuple(
        label
        for label, count in zip(structure.classes, counts.tolist(), strict=True)
        if 0 < count < plan.n_folds
    )
    return Task(
        tuple(map(str, getattr(X, "columns", range(np.shape(X)[1])))),
        len(rows),
        structure.classes,
        tuple(counts.tolist()),
        rare,
        (*_coarse_rows(rows), *((_LEARNED,) if plan.n_learning else ())),
    )


def _coarse_rows(rows: Rows) -> tuple[str, ...]:
    n_coarse = int((~rows.has_class).sum())
    count = "1 row is" if n_coarse == 1 else f"{n_coarse:,} rows are"
    note = (
        f"{count} known only by a block or a set of classes: all models train on them, and they "
        "are scored only at the levels where one block contains the set"
    )
    return (note,) if n_coarse else ()


def _known_classes(rows: Rows, structure: Structure) -> IndexArray:
    """Return the class of each row whose class is known, as an index into the structure."""
    known = rows.coded[rows.has_class]
    return Classes.of_structure(structure).encode(replace(known, sets=()))


@dataclass(frozen=True, eq=False)
class _Study:
    """The splits that were done: concludes from them, and trains the recommended model.

    Attributes
    ----------
    model
        The kind of model.
    table
        The features as they were given, with the names of their columns.
    rows
        All rows.
    plan
        What was to be done.
    done
        The scores of the splits that were done.
    metric, seed
        As in :func:`compare`.
    raced
        The losses of both kinds of model, where both were tried.
    """

    model: StudyModel
    table: Any
    rows: Rows
    plan: Plan
    done: tuple[SplitScores, ...]
    metric: str
    seed: int
    raced: dict[str, float]

    def concluded(
        self, task: Task, structure: Structure, curve: LearningCurve | None, seconds: float
    ) -> Comparison:
        """Return what the splits found."""
        done = self.done
        scores: dict[ArmName, ArmScores] = {
            "none": _arm([[split.none] for split in done]),
            "structure": _arm([[split.structure] for split in done]),
            "scrambled": _arm([split.copies for split in done]),
        }
        losses = {arm: _class_losses(scored, self.metric) for arm, scored in scores.items()}
        pairs: tuple[tuple[ArmName, ArmName], ...] = (
            ("structure", "none"), ("structure", "scrambled"), ("scrambled", "none"),
        )  # fmt: skip
        none, scrambled, copies = (
            paired_difference(losses[arm] - losses[other], self.plan.n_folds)
            for arm, other in pairs
        )
        chosen = tuple(split.structure.tried.candidate for split in done)
        found = verdict(
            none, scrambled, copies, metric=self.metric,
            without=float(abs(losses["none"].mean())), n_plain=chosen.count(NONE),
        )  # fmt: skip
        split_of, proba = self._split_of(), self._tested(len(structure.classes))
        tested = split_of >= 0
        known = tested & self.rows.has_class
        return Comparison(
            task, self.plan, self.model.name, structure, done[0].none.levels, scores,
            {
                "structure": chosen,
                "scrambled": tuple(copy.tried.candidate for s in done for copy in s.copies),
            },
            none, scrambled, found,
            _known_classes(self.rows.take(np.flatnonzero(tested)), structure),
            {arm: of_arm[known] for arm, of_arm in proba.items()},
            self._reduced(), self._references(), self.raced, seconds, self.seed, self, curve,
            self.metric, split_of[known],
        )  # fmt: skip

    def trained(self, comparison: Comparison, n_jobs: int | None) -> Any:
        """Return the recommended model, trained on all rows and calibrated by the test rows."""
        candidate, structure = comparison.recommended, comparison.structure
        arm: ArmName = "none" if candidate == NONE else "structure"
        tried = [getattr(split, arm).tried for split in self.done]
        same = [each for each in tried if each.candidate == candidate]
        model = self.model.whole(structure, candidate, same)
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=n_jobs)
        groups = {} if self.rows.groups is None else {"groups": self.rows.groups}
        model.fit(self.table, self.rows.target, **groups)
        if isinstance(structure, RandomPartition) and not self.rows.allow_blocks:
            order = np.argsort(Classes.of_structure(structure).columns)
            labels = np.array(structure.classes, dtype=object)[comparison.labels]
            proba = self._out_of_fold(comparison, arm, same[0])
            model.calibrate_blocks(None, labels, proba=proba[:, order])
        return model

    def _out_of_fold(self, comparison: Comparison, arm: ArmName, like: Tried) -> FloatArray:
        """Return the probabilities of the test rows, all by models like the one that is kept.

        If the validation rows of a split chose another candidate, a model like the kept one is
        fitted again: the confidence of the other model says little about this one.
        """
        proba, split_of = comparison.proba[arm].copy(), np.asarray(comparison.split_of)
        known = np.flatnonzero(self.rows.has_class & (self._split_of() >= 0))
        for number in np.unique(split_of):
            split = self.done[number]
            tried = getattr(split, arm).tried
            if tried.candidate == like.candidate:
                continue
            rest = self.rows.take(np.delete(np.arange(len(self.rows)), split.test))
            fitted = self.model.fitted(rest, like._replace(structure=tried.structure))
            tested = self.rows.take(known[split_of == number])
            proba[split_of == number] = in_order_of(
                comparison.structure, fitted.predict_proba(tested.features), fitted.classes_
            )
        return proba

    def _split_of(self) -> IndexArray:
        """Return the first split that tested each row, -1 if none did."""
        split_of = np.full(len(self.rows), -1)
        for number, split in reversed(list(enumerate(self.done))):
            split_of[split.test] = number
        return split_of

    def _tested(self, n_classes: int) -> dict[ArmName, FloatArray]:
        """Return the probabilities of each row in the first split that tested it."""
        none, structure = np.zeros((2, len(self.rows), n_classes))
        for split in reversed(self.done):
            none[split.test], structure[split.test] = split.none.proba, split.structure.proba
        return {"none": none, "structure": structure}

    def _references(self) -> References:
        fitted = [split for split in self.done if split.references]
        if not fitted:
            return References({}, float("nan"), 0)
        names = fitted[0].references
        return References(
            {name: float(np.mean([split.references[name] for split in fitted])) for name in names},
            float(
                np.mean([split.none.by_level[-1, METRICS.index("log loss")] for split in fitted])
            ),
            len(fitted),
        )

    def _reduced(self) -> tuple[str, ...]:
        plan, n_missing = self.plan, self.plan.n_splits - len(self.done)
        lines = []
        if n_missing:
            lines.append(
                f"{n_missing} of {plan.n_splits} splits are missing, because the time was up"
            )
        if plan.n_left_out:
            n_tried = len(plan.candidates)
            settings = "1 setting" if n_tried == 1 else f"{n_tried} settings"
            lines.append(
                f"{settings} of the structure tried in place of {n_tried + plan.n_left_out}, "
                "because the table is large"
            )
        return tuple(lines)


def _arm(splits: list[list[Scored]]) -> ArmScores:
    by_level = [np.mean([scored.by_level for scored in split], axis=0) for split in splits]
    severity = [np.mean([scored.severity for scored in split]) for split in splits]
    return ArmScores(np.array(by_level), np.array(severity))


def _class_losses(scores: ArmScores, metric: str) -> FloatArray:
    """Return the loss at the class level in each split, lower is better, (splits,)."""
    values: FloatArray = scores.by_level[:, -1, METRICS.index(metric)]
    return -values if metric == "accuracy" else values
