"""The comparison itself: repeated cross-validation of three arms, within the time allowed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed

from structent._checks import checked_integer
from structent._typing import FloatArray, IndexArray
from structent.comparison.arms import Contest, Rows, Scored
from structent.comparison.differences import paired_difference, verdict
from structent.comparison.plan import affordable
from structent.comparison.result import (
    METRICS,
    ArmScores,
    Comparison,
    LearningCurve,
    Plan,
    Task,
)
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import Structure, checked_labels, checked_structure
from structent.losses.rounds import available_threads
from structent.structure import RandomPartition, SpanningTreePartitions
from structent.structure.labels import class_indices

# Told what is done, and how much of all there is to do: "folds", 3, 10.
OnProgress: TypeAlias = Callable[[str, int, int], None]

SINGLETON_WEIGHTS = (0.1, 0.4, 0.7)
_PROBED_ROWS = 4000
_CURVE_PARTS = (0.125, 0.25, 0.5, 1.0)


def compare(  # noqa: PLR0913  a question has many sides
    features: Any,
    labels: Any,
    structure: Structure,
    *,
    groups: Any = None,
    data: str = "table",
    target: str = "label",
    group: str | None = None,
    feature_names: tuple[str, ...] | None = None,
    notes: tuple[str, ...] = (),
    metric: str = "log loss",
    n_folds: int = 5,
    n_repeats: int = 2,
    n_copies: int = 2,
    budget: float = 600.0,
    learning_curve: bool = False,
    estimator: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_progress: OnProgress = lambda _what, _done, _total: None,
) -> Comparison:
    """Return whether knowing the structure helps, and how sure that is.

    Models without structure, with it, and with scrambled copies of it are trained on the same folds
    of repeated cross-validation. In every fold validation rows choose the weight of the singletons,
    "no structure" among the candidates, for the structure and for its copies alike. The verdict
    says that the structure helps only if it beats both: a copy that helps as much shows that the
    gain is that of any penalty.

    Parameters
    ----------
    features, labels
        A table or array, (n, columns), and the label of each row, (n,).
    structure
        A random partition, or spanning-tree partitions.
    groups
        Rows of one group share a fold, (n,), where rows belong together.
    data, target, group, feature_names, notes
        What to call things in a report.
    metric
        What decides: "log loss" or "accuracy".
    n_folds, n_repeats, n_copies
        Folds of the cross-validation, its repeats, and scrambled copies in each fold.
    budget
        The seconds it may take. A probe is timed first; repeats, copies, candidates, folds and at
        last rows are left out as need be, and the plan says so.
    learning_curve
        Whether to train on smaller parts of the rows, too.
    estimator
        The classifier, :class:`StructuredBoostingClassifier` with a learning rate of 0.1 if None.
    seed
        Seeds all that is drawn.
    n_jobs
        How many folds to run at a time, all processors if None.
    on_progress
        Called with what is being done, how much is done, and how much there is.

    Examples
    --------
    >>> from structent import circular
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(6, size=300)
    >>> angle = 2 * np.pi * labels / 6 + rng.normal(scale=0.8, size=300)
    >>> features = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> found = compare(features, labels, circular(range(6)), n_repeats=1, n_copies=1)
    >>> found.verdict.finding in ("helps", "regularisation", "no evidence")
    True
    """
    start = time.perf_counter()
    rows = _checked_rows(features, labels, groups, structure)
    if metric not in ("log loss", "accuracy"):
        raise StructentError(f"metric must be 'log loss' or 'accuracy', got {metric!r}")
    checked_integer(n_folds, "n_folds", at_least=3, at_most=len(rows.labels))
    workers = available_threads() if n_jobs is None else n_jobs
    if estimator is None:
        estimator = StructuredBoostingClassifier(learning_rate=0.1, random_state=seed, n_jobs=1)
    plan = Plan(n_folds, n_repeats, n_copies, SINGLETON_WEIGHTS, ())
    on_progress("a timed probe", 0, 1)
    plan, n_used = _affordable_plan(plan, rows, structure, estimator, budget, workers, seed)
    used = rows.take(_drawn_rows(rows, n_used, seed))
    folds = list(_folds(used, plan, seed))
    done: list[_Fold] = []
    on_progress("folds", 0, len(folds))
    for fold in _in_parallel(used, structure, estimator, plan, folds, workers):
        done.append(fold)
        on_progress("folds", len(done), len(folds))
        is_late = time.perf_counter() - start > budget
        if is_late and len(done) >= plan.n_folds and len(done) % plan.n_folds == 0:
            break
    if len(done) < len(folds):
        cut = f"{len(done)} folds of the {len(folds)} planned, for time was up"
        plan = replace(plan, cuts=(*plan.cuts, cut))
    curve = None
    if learning_curve:
        curve = _learning_curve(used, structure, estimator, plan, seed, on_progress)
    names = feature_names or tuple(map(str, getattr(features, "columns", range(_width(features)))))
    task = _task(rows, used, structure, plan, (data, target, group), names, notes)
    return _comparison(task, plan, structure, done, used, metric, seed, start, curve)


class _Fold:
    """The scores of one fold: of each arm, those of the copies in a list, and its rows."""

    def __init__(self, test: IndexArray, plain: Scored, best: Scored, copies: list[Scored]) -> None:
        self.test = test
        self.none = plain
        self.structure = best
        self.copies = copies


def _checked_rows(features: Any, labels: Any, groups: Any, structure: Structure) -> Rows:
    checked_structure(structure)
    if not isinstance(structure, RandomPartition | SpanningTreePartitions):
        raise StructentError(
            "a comparison needs a structure that can be scrambled, a RandomPartition or "
            f"SpanningTreePartitions, got {type(structure).__name__}"
        )
    as_array = checked_labels(labels)
    class_indices(as_array, structure.classes)
    grouped = None if groups is None else np.asarray(groups)
    if grouped is not None and len(grouped) != len(as_array):
        raise StructentError(
            f"groups must have one entry for each of the {len(as_array)} rows, got {len(grouped)}"
        )
    return Rows(features, as_array, grouped)


def _drawn_rows(rows: Rows, n_used: int, seed: int) -> IndexArray:
    if n_used >= len(rows.labels):
        return np.arange(len(rows.labels))
    return np.sort(np.random.default_rng(seed).permutation(len(rows.labels))[:n_used])


def _affordable_plan(
    plan: Plan, rows: Rows, structure: Structure, estimator: Any, budget: float, workers: int,
    seed: int,
) -> tuple[Plan, int]:  # fmt: skip
    n_probed = min(len(rows.labels), _PROBED_ROWS)
    probe = rows.take(_drawn_rows(rows, n_probed, seed))
    rng = np.random.RandomState(seed)
    fold_of = probe.folds(plan.n_folds, rng)
    start = time.perf_counter()
    contest = Contest.of(estimator, structure, probe, fold_of, 0, rng)
    contest.scored(contest.without_structure())
    seconds = time.perf_counter() - start
    return affordable(
        plan,
        len(rows.labels),
        max(budget - seconds, 0.0),
        probed_rows=n_probed,
        probed_seconds=seconds,
        n_jobs=min(workers, plan.n_folds),
    )


def _folds(rows: Rows, plan: Plan, seed: int) -> Iterator[tuple[IndexArray, int, int]]:
    for repeat in range(plan.n_repeats):
        fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, repeat)))
        for fold in range(plan.n_folds):
            yield fold_of, fold, repeat


def _in_parallel(
    rows: Rows, structure: Any, estimator: Any, plan: Plan,
    folds: list[tuple[IndexArray, int, int]], workers: int,
) -> Iterator[_Fold]:  # fmt: skip
    # Threads, not processes: XGBoost and the kernel release the interpreter's lock.
    run = Parallel(n_jobs=workers, backend="threading", return_as="generator")
    yield from run(
        delayed(_run_fold)(rows, structure, estimator, plan, fold_of, fold, repeat)
        for fold_of, fold, repeat in folds
    )


def _run_fold(
    rows: Rows, structure: Any, estimator: Any, plan: Plan, fold_of: IndexArray, fold: int,
    repeat: int,
) -> _Fold:  # fmt: skip
    contest = Contest.of(
        estimator, structure, rows, fold_of, fold, np.random.RandomState((repeat, fold))
    )
    plain = contest.without_structure()
    scored_plain = contest.scored(plain)
    best = contest.scored(contest.best_of(plain, structure, plan.singleton_weights))
    copies = []
    for copy in range(plan.n_copies):
        scrambled = structure.scramble(np.random.default_rng((repeat, fold, copy)))
        copies.append(contest.scored(contest.best_of(plain, scrambled, plan.singleton_weights)))
    return _Fold(np.flatnonzero(fold_of == fold), scored_plain, best, copies)


def _learning_curve(
    rows: Rows, structure: Any, estimator: Any, plan: Plan, seed: int, on_progress: OnProgress
) -> LearningCurve:
    n_rows = len(rows.labels)
    sizes = tuple(int(part * n_rows * (1 - 1 / plan.n_folds)) for part in _CURVE_PARTS)
    fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, 0)))
    table = np.empty((2, len(sizes), plan.n_folds))
    for place, size in enumerate(sizes):
        on_progress("learning curve", place, len(sizes))
        for fold in range(plan.n_folds):
            rng = np.random.RandomState((seed, place, fold))
            rest, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            kept = np.concatenate([rng.permutation(rest)[:size], test])
            part, is_test = rows.take(kept), np.arange(len(kept)) >= len(kept) - len(test)
            contest = Contest.of(estimator, structure, part, is_test.astype(int), 1, rng)
            plain = contest.without_structure()
            best = contest.best_of(plain, structure, plan.singleton_weights)
            for arm, model in enumerate((plain, best)):
                table[arm, place, fold] = contest.scored(model).by_level[-1, 0]
    on_progress("learning curve", len(sizes), len(sizes))
    return LearningCurve(sizes, *table)


def _task(
    rows: Rows, used: Rows, structure: Structure, plan: Plan,
    names: tuple[str, str, str | None], features: tuple[str, ...], notes: tuple[str, ...],
) -> Task:  # fmt: skip
    counts = np.bincount(
        class_indices(used.labels, structure.classes), minlength=len(structure.classes)
    )
    rare = tuple(
        label
        for label, count in zip(structure.classes, counts.tolist(), strict=True)
        if 0 < count < plan.n_folds
    )
    data, target, group = names
    return Task(
        data, target, group, features, len(rows.labels), len(used.labels), structure.classes,
        tuple(counts.tolist()), rare, notes,
    )  # fmt: skip


def _comparison(  # noqa: PLR0913, PLR0917  all that was found
    task: Task, plan: Plan, structure: Structure, done: list[_Fold], used: Rows, metric: str,
    seed: int, start: float, curve: LearningCurve | None,
) -> Comparison:  # fmt: skip
    scores = {
        "none": _arm([[fold.none] for fold in done]),
        "structure": _arm([[fold.structure] for fold in done]),
        "scrambled": _arm([fold.copies for fold in done]),
    }
    losses = {arm: _class_losses(scored, metric) for arm, scored in scores.items()}
    against_none = paired_difference(losses["structure"] - losses["none"], plan.n_folds)
    against_scrambled = paired_difference(losses["structure"] - losses["scrambled"], plan.n_folds)
    proba = {
        arm: np.zeros((len(used.labels), len(structure.classes))) for arm in ("none", "structure")
    }
    for fold in done[: plan.n_folds]:  # every row once
        proba["none"][fold.test] = fold.none.proba
        proba["structure"][fold.test] = fold.structure.proba
    return Comparison(
        task, plan, structure, done[0].none.levels, scores,
        np.array([fold.structure.singleton_weight for fold in done]),
        against_none, against_scrambled, verdict(against_none, against_scrambled, metric),
        class_indices(used.labels, structure.classes), proba,
        time.perf_counter() - start, seed, curve, metric,
    )  # fmt: skip


def _arm(folds: list[list[Scored]]) -> ArmScores:
    by_level = [np.mean([scored.by_level for scored in fold], axis=0) for fold in folds]
    severity = [np.mean([scored.severity for scored in fold]) for fold in folds]
    return ArmScores(np.array(by_level), np.array(severity))


def _class_losses(scores: ArmScores, metric: str) -> FloatArray:
    """Return what is better when it is lower, of the classes, (folds,)."""
    values: FloatArray = scores.by_level[:, -1, METRICS.index(metric)]
    return -values if metric == "accuracy" else values


def _width(features: Any) -> int:
    return int(np.shape(features)[1])
