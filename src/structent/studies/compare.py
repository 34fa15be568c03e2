"""The comparison itself: repeated cross-validation of three arms, within the time allowed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from structent._checks import checked_integer
from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import Classes, checked_labels
from structent.structure import trivial
from structent.structure.labels import class_indices
from structent.structure.samplers import Structure, checked_structure
from structent.studies.arms import Asked, Contest, FoldScores, Rows, Scored, run_fold, structure_of
from structent.studies.comparison import (
    METRICS,
    ArmScores,
    Comparison,
    LearningCurve,
    Plan,
    Task,
    paired_difference,
    verdict,
)
from structent.studies.learn import LearnedStructure
from structent.studies.progress import OnProgress

SINGLETON_WEIGHTS = (0.1, 0.4, 0.7)
_PROBED_ROWS = 4000
_PLANNED = 0.7  # of the budget: a probe is a rough guess
_LEARNED = (
    "the structure is learned anew from the training rows of every fold; that which is shown is "
    "learned from all rows"
)


def compare(  # noqa: PLR0913  a question has many sides
    features: Any,
    labels: Any,
    structure: Asked,
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
    allow_blocks: bool = False,
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
        A random partition, spanning-tree partitions, or a
        :class:`~structent.studies.LearnedStructure`, which is learned in every fold from its
        training rows alone; scrambled copies are those of the structure learned there.
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
    allow_blocks
        Whether labels may also be names of blocks, or sets of classes. Rows of such labels are
        trained on in every arm, without structure by the probability of their set, and judged at
        the levels of which one block holds the set. A name means its block of the structure given,
        in scrambled copies, too.

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
    until_learned, n_learning, told = _until_learned(structure, labels)
    rows = checked_rows(features, labels, groups, until_learned, allow_blocks=allow_blocks)
    if metric not in ("log loss", "accuracy"):
        raise StructentError(f"metric must be 'log loss' or 'accuracy', got {metric!r}")
    workers = checked_n_jobs(n_jobs)
    checked_integer(n_folds, "n_folds", at_least=FEWEST_FOLDS, at_most=len(rows.labels))
    checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
    checked_integer(n_copies, "n_copies", at_least=1, at_most=1000)
    checked_integer(seed, "seed", at_least=0, at_most=2**32 - 1)
    _check_budget(budget)
    if estimator is None:
        estimator = StructuredBoostingClassifier(learning_rate=0.1, random_state=seed, n_jobs=1)
    if allow_blocks:
        estimator = clone(estimator).set_params(allow_blocks=True)
    plan = Plan(n_folds, n_repeats, n_copies, SINGLETON_WEIGHTS, (), n_learning)
    on_progress("a timed probe", 0, 1)
    plan, n_used = _affordable_plan(plan, rows, until_learned, estimator, budget, workers, seed)
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
    classes, rng = np.unique(used.kinds), np.random.RandomState(seed)
    shown = structure_of(structure, estimator, used, classes, rng)
    notes = (*notes, *_coarse_rows(used, shown), *told)
    task = described(rows, used, shown, plan, (data, target, group), names, notes)
    return concluded(task, plan, shown, done, used, metric, seed, start, curve)


def drawn_rows(n_rows: int, n_used: int, seed: int) -> IndexArray:
    """Return the rows that a comparison uses where time is short: all, or a random part."""
    if n_used >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:n_used])


def _check_budget(budget: float) -> None:
    is_number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
    if not is_number or not budget > 0:  # nor is NaN
        raise StructentError(f"budget must be a number of seconds above 0, got {budget!r}")


def _until_learned(structure: Asked, labels: Any) -> tuple[Structure, int, tuple[str, ...]]:
    """Return what stands in for a structure, how many more fits it takes a fold, and notes on it.

    A structure that is given stands for itself.
    """
    if isinstance(structure, LearnedStructure):
        return trivial(np.unique(checked_labels(labels)).tolist()), structure.cv, (_LEARNED,)
    return structure, 0, ()


def _coarse_rows(rows: Rows, structure: Structure) -> tuple[str, ...]:
    n_coarse = int((~known_classes(rows, structure)[0]).sum())
    count = "1 row is" if n_coarse == 1 else f"{n_coarse:,} rows are"
    note = (
        f"{count} known by a block or a set of classes alone: trained on by all models, and judged "
        "only at the levels where a block holds all that they may be"
    )
    return (note,) if n_coarse else ()


def checked_rows(
    features: Any, labels: Any, groups: Any, structure: Structure, *, allow_blocks: bool = False
) -> Rows:
    """Return rows whose labels are all in a structure that can be scrambled."""
    checked_structure(structure)
    if not hasattr(structure, "scramble"):
        raise StructentError(
            "a comparison needs a structure that can be scrambled, as a RandomPartition and the "
            f"samplers of structent can, got {type(structure).__name__}"
        )
    as_array = checked_labels(labels, structure, allow_blocks=allow_blocks)
    codes = None
    if allow_blocks:
        classes = Classes.of_mixed(structure, as_array)
        codes = classes.encode(as_array)
        as_array = classes.meanings(codes)  # a scrambled copy has other blocks of the same name
    else:
        Classes.of_structure(structure).encode(as_array)
    grouped = None if groups is None else np.asarray(groups)
    if grouped is not None and len(grouped) != len(as_array):
        raise StructentError(
            f"groups must have one entry for each of the {len(as_array)} rows, got {len(grouped)}"
        )
    return Rows(features, as_array, grouped, codes)


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
            _check_that_classes_are_known(rows, fold_of == fold)
            yield fold_of, fold, repeat


def _check_that_classes_are_known(rows: Rows, is_test: NDArray[np.bool_]) -> None:
    if rows.codes is None:
        return
    coarse = {frozenset} == {type(label) for label in rows.labels[is_test]}
    if coarse:
        raise StructentError(
            "every fold must have a row that is known by its class, got one where all are known by "
            "blocks or sets of classes; a structure is judged on classes"
        )


def _in_parallel(
    rows: Rows, structure: Asked, estimator: Any, plan: Plan,
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


def described(
    rows: Rows, used: Rows, structure: Structure, plan: Plan,
    names: tuple[str, str, str | None], features: tuple[str, ...], notes: tuple[str, ...],
) -> Task:  # fmt: skip
    """Return what was compared: names of data, target and group, features, classes and notes."""
    counts = np.bincount(known_classes(used, structure)[1], minlength=len(structure.classes))
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


def concluded(  # noqa: PLR0913, PLR0917  all that was found
    task: Task, plan: Plan, structure: Structure, done: list[FoldScores], used: Rows, metric: str,
    seed: int, start: float, curve: LearningCurve | None,
) -> Comparison:  # fmt: skip
    """Return all that was found in the folds that were done."""
    scores = {
        "none": _arm([[fold.none] for fold in done]),
        "structure": _arm([[fold.structure] for fold in done]),
        "scrambled": _arm([fold.copies for fold in done]),
    }
    losses = {arm: _class_losses(scored, metric) for arm, scored in scores.items()}
    against_none = paired_difference(losses["structure"] - losses["none"], plan.n_folds)
    against_scrambled = paired_difference(losses["structure"] - losses["scrambled"], plan.n_folds)
    has_class, labels = known_classes(used, structure)
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
        labels, {arm: table[has_class] for arm, table in proba.items()},
        time.perf_counter() - start, seed, curve, metric,
    )  # fmt: skip


def known_classes(rows: Rows, structure: Structure) -> tuple[NDArray[np.bool_], IndexArray]:
    """Return which rows are known by their class, and the class of each of these."""
    n_classes, codes = len(structure.classes), rows.codes
    if codes is None:
        codes = class_indices(rows.labels, structure.classes)
    has_class = codes < n_classes
    return has_class, codes[has_class]


def _arm(folds: list[list[Scored]]) -> ArmScores:
    by_level = [np.mean([scored.by_level for scored in fold], axis=0) for fold in folds]
    severity = [np.mean([scored.severity for scored in fold]) for fold in folds]
    return ArmScores(np.array(by_level), np.array(severity))


def _class_losses(scores: ArmScores, metric: str) -> FloatArray:
    """Return what is better when it is lower, of the classes, (folds,)."""
    values: FloatArray = scores.by_level[:, -1, METRICS.index(metric)]
    return -values if metric == "accuracy" else values


# A model with a structure takes more rounds than one without: measured on the weather data.
_LONGER = 1.4
# Time grows a little faster than the rows: more of them want more rounds, too.
_GROWTH = 1.2
FEWEST_FOLDS = 3
FEWEST_ROWS = 1000


def seconds_needed(plan: Plan, seconds_a_fit: float, n_jobs: int) -> float:
    """Return how long a plan takes, given how long a model without structure does."""
    n_structured = len(plan.singleton_weights) * (1 + plan.n_copies)
    a_fold = (1.0 + plan.n_learning + _LONGER * n_structured) * seconds_a_fit
    the_model_to_keep = _LONGER * seconds_a_fit
    return a_fold * plan.n_folds * plan.n_repeats / n_jobs + the_model_to_keep


def seconds_of_rows(n_rows: int, *, probed_rows: int, probed_seconds: float) -> float:
    """Return how long a fit takes on so many rows, given how long it took on fewer."""
    return float(probed_seconds * (n_rows / probed_rows) ** _GROWTH)


def affordable(
    plan: Plan, n_rows: int, budget: float, *, probed_rows: int, probed_seconds: float, n_jobs: int
) -> tuple[Plan, int]:
    """Return the plan that fits into the budget, in seconds, and how many rows it uses.

    Repeats go first, then scrambled copies, candidates and folds; rows go last.

    Examples
    --------
    >>> plan = Plan(5, 2, 2, (0.1, 0.4, 0.7), ())
    >>> cut, n_rows = affordable(
    ...     plan, 1000, 100.0, probed_rows=1000, probed_seconds=1.0, n_jobs=1
    ... )
    >>> cut.n_repeats, cut.n_copies, cut.cuts
    (1, 2, ('1 repeat of the cross-validation instead of 2',))
    """

    def needed(candidate: Plan, rows: int) -> float:
        fit = seconds_of_rows(rows, probed_rows=probed_rows, probed_seconds=probed_seconds)
        return seconds_needed(candidate, fit, n_jobs)

    for shorter in _shorter(plan):
        if needed(plan, n_rows) <= budget:
            return plan, n_rows
        plan = shorter(plan)
    rows = n_rows
    while needed(plan, rows) > budget and rows > FEWEST_ROWS:
        rows = max(FEWEST_ROWS, int(0.9 * rows))
    if rows < n_rows:
        plan = _with_cut(plan, f"{rows:,} rows, drawn at random, instead of {n_rows:,}")
    return plan, rows


def _shorter(plan: Plan) -> list[Callable[[Plan], Plan]]:
    """Return the steps by which a plan gets shorter, those that change it."""
    steps: list[Callable[[Plan], Plan]] = []
    if plan.n_repeats > 1:
        cut = f"1 repeat of the cross-validation instead of {plan.n_repeats}"
        steps.append(lambda p: _with_cut(replace(p, n_repeats=1), cut))
    if plan.n_copies > 1:
        copies = f"1 scrambled copy in each fold instead of {plan.n_copies}"
        steps.append(lambda p: _with_cut(replace(p, n_copies=1), copies))
    if len(plan.singleton_weights) > 1:
        middle = plan.singleton_weights[len(plan.singleton_weights) // 2]
        weights = (
            f"1 candidate for the weight of the singletons, {middle:g}, instead of "
            f"{len(plan.singleton_weights)}"
        )
        steps.append(lambda p: _with_cut(replace(p, singleton_weights=(middle,)), weights))
    if plan.n_folds > FEWEST_FOLDS:
        folds = f"{FEWEST_FOLDS} folds instead of {plan.n_folds}"
        steps.append(lambda p: _with_cut(replace(p, n_folds=FEWEST_FOLDS), folds))
    return steps


def _with_cut(plan: Plan, cut: str) -> Plan:
    return replace(plan, cuts=(*plan.cuts, cut))


_PARTS = (0.125, 0.25, 0.5, 1.0)


def measured_curve(
    rows: Rows, asked: Asked, estimator: Any, plan: Plan, seed: int, on_progress: OnProgress
) -> LearningCurve:
    """Return the losses on the folds of the first repeat, trained on parts of their rows."""
    n_rows = len(rows.labels)
    sizes = tuple(int(part * n_rows * (1 - 1 / plan.n_folds)) for part in _PARTS)
    fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, 0)))
    table = np.empty((2, len(sizes), plan.n_folds))
    for place, size in enumerate(sizes):
        on_progress("learning curve", place, len(sizes))
        for fold in range(plan.n_folds):
            rng = np.random.RandomState((seed, place, fold))
            rest, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            kept = np.concatenate([rng.permutation(rest)[:size], test])
            part, is_test = rows.take(kept), np.arange(len(kept)) >= len(kept) - len(test)
            contest = Contest.of(estimator, asked, part, is_test.astype(int), 1, rng)
            plain = contest.without_structure()
            best = contest.best_of(plain, contest.structure, plan.singleton_weights)
            for arm, model in enumerate((plain, best)):
                table[arm, place, fold] = contest.scored(model).by_level[-1, 0]
    on_progress("learning curve", len(sizes), len(sizes))
    return LearningCurve(sizes, *table)
