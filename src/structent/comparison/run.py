"""The comparison itself: repeated cross-validation of three arms, within the time allowed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from structent._checks import checked_integer
from structent._typing import IndexArray
from structent.comparison.arms import Contest, FoldScores, Rows, run_fold
from structent.comparison.findings import concluded, described
from structent.comparison.learning_curve import measured_curve
from structent.comparison.plan import affordable
from structent.comparison.progress import OnProgress
from structent.comparison.result import Comparison, Plan
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import Structure, checked_labels, checked_structure
from structent.losses.rounds import available_threads
from structent.structure import RandomPartition, SpanningTreePartitions
from structent.structure.labels import class_indices

SINGLETON_WEIGHTS = (0.1, 0.4, 0.7)
_PROBED_ROWS = 4000
_PLANNED = 0.7  # of the budget: a probe is a rough guess


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
    used = rows.take(drawn_rows(len(rows.labels), n_used, seed))
    folds = list(_folds(used, plan, seed))
    done: list[FoldScores] = []
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
        curve = measured_curve(used, structure, estimator, plan, seed, on_progress)
    names = feature_names or tuple(map(str, getattr(features, "columns", range(_width(features)))))
    task = described(rows, used, structure, plan, (data, target, group), names, notes)
    return concluded(task, plan, structure, done, used, metric, seed, start, curve)


def drawn_rows(n_rows: int, n_used: int, seed: int) -> IndexArray:
    """Return the rows that a comparison uses where time is short: all, or a random part."""
    if n_used >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:n_used])


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


def _affordable_plan(
    plan: Plan, rows: Rows, structure: Structure, estimator: Any, budget: float, workers: int,
    seed: int,
) -> tuple[Plan, int]:  # fmt: skip
    n_probed = min(len(rows.labels), _PROBED_ROWS)
    probe = rows.take(drawn_rows(len(rows.labels), n_probed, seed))
    rng = np.random.RandomState(seed)
    fold_of = probe.folds(plan.n_folds, rng)
    start = time.perf_counter()
    contest = Contest.of(estimator, structure, probe, fold_of, 0, rng)
    contest.scored(contest.without_structure())
    seconds = time.perf_counter() - start
    return affordable(
        plan,
        len(rows.labels),
        max(_PLANNED * budget - seconds, 0.0),
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
) -> Iterator[FoldScores]:  # fmt: skip
    # Threads, not processes: XGBoost and the kernel release the interpreter's lock.
    run = Parallel(n_jobs=workers, backend="threading", return_as="generator")
    yield from run(
        delayed(run_fold)(rows, structure, estimator, plan, fold_of, fold, repeat)
        for fold_of, fold, repeat in folds
    )


def _width(features: Any) -> int:
    return int(np.shape(features)[1])
