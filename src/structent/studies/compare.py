"""The comparison itself: repeated cross-validation of three arms, within the time allowed.

:func:`compare` plans what fits into the time, deals the rows out to folds, scores the arms of every
fold (:mod:`structent.studies.arms`), and draws the conclusion
(:mod:`structent.studies.comparison`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from structent._checks import checked_integer
from structent._threads import checked_n_jobs
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.structure import trivial
from structent.structure.samplers import Structure
from structent.studies.arms import Asked, Contest, Fold, FoldScores, Scored, run_fold, structure_of
from structent.studies.comparison import (
    METRICS,
    ArmName,
    ArmScores,
    Comparison,
    LearningCurve,
    Plan,
    Task,
    paired_difference,
    verdict,
)
from structent.studies.fitting import (
    Rows,
    asked_structure,
    checked_folds,
    checked_rows,
    default_booster,
    drawn_seed,
    in_parallel,
    seeded,
    structure_parameter,
)
from structent.studies.learn import LearnedStructure
from structent.studies.progress import OnProgress, telling

SINGLETON_WEIGHTS = (0.1, 0.4, 0.7)
FEWEST_FOLDS = 3
FEWEST_ROWS = 1000
_DECIDING = ("log loss", "accuracy")
_PROBED_ROWS = 4000
_PLANNED = 0.7  # of the budget: a probe is a rough guess
_LEARNED = (
    "the structure is learned again from the training rows of every fold; the one that is shown is "
    "learned from all rows"
)


def compare(  # noqa: PLR0913  a question has many sides
    X: Any,
    y: Any,
    structure: Asked | str,
    *,
    estimator: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    metric: str = "log loss",
    n_folds: int = 5,
    n_repeats: int = 2,
    n_copies: int = 2,
    budget: float = 600.0,
    learning_curve: bool = False,
    allow_blocks: bool = False,
) -> Comparison:
    """Return whether knowing the structure helps, and how sure that is.

    Models without structure, with it, and with scrambled copies of it are trained on the same folds
    of repeated cross-validation. In every fold validation rows choose the weight of the singletons,
    "no structure" among the candidates, for the structure and for its copies alike. The verdict
    says that the structure helps only if it beats both: where a copy helps as much, the gain is
    just regularisation.

    Parameters
    ----------
    X, y
        A table or array, (n, columns), and the label of each row, (n,).
    structure
        A random partition, spanning-tree partitions, a short form of the command line
        ("circular:width=3", "ordinal"), which is built from the labels, or a
        :class:`~structent.studies.LearnedStructure`, which is learned in every fold from its
        training rows alone; scrambled copies are then copies of the structure learned there.
    estimator
        The classifier: :class:`StructuredBoostingClassifier` with a learning rate of 0.1 if None,
        or one like it, whose ``fit`` takes an ``eval_set`` and keeps ``validation_log_loss_``.
    groups
        Rows of one group share a fold, (n,), where rows belong together.
    random_state
        Seeds all that is drawn, and the estimator where its own ``random_state`` is None. If None,
        a seed is drawn; the comparison has it as ``seed``.
    n_jobs
        How many folds to run at a time, in threads; all processors if None or -1.
    progress
        Whether to show a progress bar, or a function that is called with what is being done, how
        much is done, and how much there is.
    metric
        What decides: "log loss" or "accuracy".
    n_folds, n_repeats, n_copies
        Folds of the cross-validation, its repeats with other folds, and scrambled copies in each
        fold.
    budget
        The seconds it may take. A probe is timed first; where time is short, repeats, copies,
        candidates, folds and finally rows are left out, and the plan says so.
    learning_curve
        Whether to train on smaller parts of the rows, too.
    allow_blocks
        Whether labels may also be names of blocks, or sets of classes. Rows of such labels are
        trained on in every arm, without structure by the probability of their set, and judged at
        the levels of which one block holds the set. A name means its block of the structure given,
        in scrambled copies, too.

    Examples
    --------
    >>> from structent import circular
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(6, size=300)
    >>> angle = 2 * np.pi * y / 6 + rng.normal(scale=0.8, size=300)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> found = compare(X, y, circular(range(6)), n_repeats=1, n_copies=1, random_state=0)
    >>> found.verdict.finding in ("helps", "regularisation", "no evidence")
    True
    """
    start = time.perf_counter()
    if metric not in _DECIDING:
        raise StructentError(f"metric must be 'log loss' or 'accuracy', got {metric!r}")
    seed, workers = drawn_seed(random_state), checked_n_jobs(n_jobs)
    model = _checked_estimator(estimator, seed, allow_blocks=allow_blocks)
    asked, given = _checked_question(structure, y, allow_blocks=allow_blocks)
    rows = checked_rows(X, y, given, estimator=model, groups=groups, allow_blocks=allow_blocks)
    n_learning = asked.n_folds if isinstance(asked, LearnedStructure) else 0
    whole = _checked_plan(n_folds, n_repeats, n_copies, n_learning, rows)
    _check_budget(budget)
    with telling(progress) as tell:
        tell("a timed probe", 0, 1)
        plan, n_used = _affordable_plan(whole, rows, given, model, budget, workers, seed)
        used = rows.take(drawn_rows(len(rows), n_used, seed))
        done = _scored_folds(used, asked, model, plan, seed, workers, start + budget, tell)
        plan = _with_repeats(plan, len(done) // plan.n_folds)
        curve = _measured_curve(used, asked, model, plan, seed, tell) if learning_curve else None
    shown = structure_of(asked, model, used, used, np.random.RandomState(seed))
    task = _described(X, rows, used, shown, plan)
    return _concluded(task, plan, shown, done, used, metric, seed, start, curve)


def drawn_rows(n_rows: int, n_used: int, seed: int) -> IndexArray:
    """Return the rows that a comparison uses where time is short: all, or a random part."""
    if n_used >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:n_used])


def _checked_estimator(estimator: Any, seed: int, *, allow_blocks: bool) -> Any:
    """Return the seeded estimator, one that is told its validation rows."""
    if estimator is None:
        estimator = default_booster()
    structure_parameter(estimator)
    if not has_fit_parameter(estimator, "eval_set"):
        raise StructentError(
            "a comparison needs an estimator whose fit takes an eval_set and keeps "
            "validation_log_loss_, as StructuredBoostingClassifier does, got "
            f"{type(estimator).__name__}; structure_test takes others"
        )
    model = seeded(estimator, seed)
    return model.set_params(allow_blocks=True) if allow_blocks else model


def _checked_question(
    structure: Any, y: Any, *, allow_blocks: bool
) -> tuple[Asked, Structure | None]:
    """Return what is asked about, and the structure that is given: None if it is to be learned."""
    if not isinstance(structure, LearnedStructure):
        asked = asked_structure(structure, y, allow_blocks=allow_blocks)
        return asked, asked
    if allow_blocks:
        raise StructentError(
            "allow_blocks=True needs a structure that says what a block is, got one that is to be "
            "learned"
        )
    return structure, None


def _checked_plan(n_folds: int, n_repeats: int, n_copies: int, n_learning: int, rows: Rows) -> Plan:
    checked_folds(n_folds, rows, at_least=FEWEST_FOLDS)
    checked_integer(n_repeats, "n_repeats", at_least=1, at_most=1000)
    checked_integer(n_copies, "n_copies", at_least=1, at_most=1000)
    return Plan(n_folds, n_repeats, n_copies, SINGLETON_WEIGHTS, (), n_learning)


def _check_budget(budget: float) -> None:
    is_number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
    if not is_number or not budget > 0:  # NaN is not above 0 either
        raise StructentError(f"budget must be a number of seconds above 0, got {budget!r}")


def _affordable_plan(
    plan: Plan, rows: Rows, structure: Structure | None, estimator: Any, budget: float,
    workers: int, seed: int,
) -> tuple[Plan, int]:  # fmt: skip
    """Return the plan that fits into the budget, and how many rows it uses, by a timed probe."""
    n_probed = min(len(rows), _PROBED_ROWS)
    probe = rows.take(drawn_rows(len(rows), n_probed, seed))
    rng = np.random.RandomState(seed)
    fold_of = probe.folds(plan.n_folds, rng)
    until_learned = trivial(rows.coded.classes) if structure is None else structure
    start = time.perf_counter()
    contest = Contest.of(estimator, until_learned, probe, fold_of, 0, rng)
    contest.scored(contest.without_structure())
    seconds = time.perf_counter() - start
    return affordable(
        plan,
        len(rows),
        max(_PLANNED * budget - seconds, 0.0),
        probed_rows=n_probed,
        probed_seconds=seconds,
        n_jobs=min(workers, plan.n_folds),
    )


# A model with a structure takes more rounds than one without: measured on the weather data.
_LONGER = 1.4
# Time grows a little faster than the rows: more of them want more rounds, too.
_GROWTH = 1.2


def seconds_needed(plan: Plan, seconds_a_fit: float, n_jobs: int) -> float:
    """Return how long a plan takes, given how long a model without structure does."""
    n_structured = len(plan.singleton_weights) * (1 + plan.n_copies)
    a_fold = (1.0 + plan.n_learning + _LONGER * n_structured) * seconds_a_fit
    the_model_to_keep = _LONGER * seconds_a_fit
    return a_fold * plan.n_folds * plan.n_repeats / n_jobs + the_model_to_keep


def seconds_of_rows(n_rows: int, *, probed_rows: int, probed_seconds: float) -> float:
    """Return how long a fit takes on a number of rows, given how long it took on fewer."""
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
    """Return the steps that shorten a plan, in their order."""
    steps: list[Callable[[Plan], Plan]] = []
    if plan.n_repeats > 1:
        cut = f"{_repeats(1)} instead of {plan.n_repeats}"
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


def _repeats(n_repeats: int) -> str:
    return f"{n_repeats} repeat{'s' * (n_repeats > 1)} of the cross-validation"


def _scored_folds(
    rows: Rows, asked: Asked, estimator: Any, plan: Plan, seed: int, workers: int, end: float,
    tell: OnProgress,
) -> list[FoldScores]:  # fmt: skip
    """Return the scores of all folds of the repeats that begin before the end of the time."""
    is_late: dict[int, bool] = {}

    def scored(fold: Fold) -> FoldScores | None:
        late = fold.repeat > 0 and time.perf_counter() > end
        if is_late.setdefault(fold.repeat, late):  # its first fold decides for the whole repeat
            return None
        return run_fold(estimator, asked, rows, plan, fold, seed)

    jobs = [(fold,) for fold in _folds(rows, plan, seed)]
    found = in_parallel(scored, jobs, workers, "folds", tell)
    return [fold for fold in found if fold is not None]


def _folds(rows: Rows, plan: Plan, seed: int) -> list[Fold]:
    """Return the folds of every repeat."""
    found = []
    for repeat in range(plan.n_repeats):
        fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, repeat)))
        for fold in range(plan.n_folds):
            if not rows.has_class[fold_of == fold].any():  # only where blocks are allowed
                raise StructentError(
                    "every fold must have a row that is known by its class, got one where all are "
                    "known by blocks or sets of classes; a structure is judged on classes"
                )
            found.append(Fold(fold_of, fold, repeat))
    return found


def _with_repeats(plan: Plan, n_repeats: int) -> Plan:
    """Return the plan as it was carried out."""
    if n_repeats == plan.n_repeats:
        return plan
    cut = f"{_repeats(n_repeats)} instead of {plan.n_repeats}, because the time was up"
    return _with_cut(replace(plan, n_repeats=n_repeats), cut)


_PARTS = (0.125, 0.25, 0.5, 1.0)


def _measured_curve(
    rows: Rows, asked: Asked, estimator: Any, plan: Plan, seed: int, tell: OnProgress
) -> LearningCurve:
    """Return the losses on the folds of the first repeat, trained on parts of their rows."""
    sizes = tuple(int(part * len(rows) * (1 - 1 / plan.n_folds)) for part in _PARTS)
    fold_of = rows.folds(plan.n_folds, np.random.RandomState((seed, 0)))
    table = np.empty((2, len(sizes), plan.n_folds))
    for place, size in enumerate(sizes):
        tell("learning curve", place, len(sizes))
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
    tell("learning curve", len(sizes), len(sizes))
    return LearningCurve(sizes, *table)


def _described(X: Any, rows: Rows, used: Rows, structure: Structure, plan: Plan) -> Task:
    """Return what was compared."""
    counts = np.bincount(_known_classes(used, structure), minlength=len(structure.classes))
    rare = tuple(
        label
        for label, count in zip(structure.classes, counts.tolist(), strict=True)
        if 0 < count < plan.n_folds
    )
    return Task(
        tuple(map(str, getattr(X, "columns", range(np.shape(X)[1])))),
        len(rows),
        len(used),
        structure.classes,
        tuple(counts.tolist()),
        rare,
        (*_coarse_rows(used), *((_LEARNED,) if plan.n_learning else ())),
    )


def _coarse_rows(rows: Rows) -> tuple[str, ...]:
    n_coarse = int((~rows.has_class).sum())
    count = "1 row is" if n_coarse == 1 else f"{n_coarse:,} rows are"
    note = (
        f"{count} known by a block or a set of classes alone: trained on by all models, and judged "
        "only at the levels where a block holds all that they may be"
    )
    return (note,) if n_coarse else ()


def _known_classes(rows: Rows, structure: Structure) -> IndexArray:
    """Return the class of each row that is known by its class, as a place in the structure."""
    known = rows.coded[rows.has_class]
    return Classes.of_structure(structure).encode(replace(known, sets=()))


def _concluded(  # noqa: PLR0913, PLR0917  all that was found
    task: Task, plan: Plan, structure: Structure, done: list[FoldScores], used: Rows, metric: str,
    seed: int, start: float, curve: LearningCurve | None,
) -> Comparison:  # fmt: skip
    """Return all that was found in the folds that were done."""
    scores: dict[ArmName, ArmScores] = {
        "none": _arm([[fold.none] for fold in done]),
        "structure": _arm([[fold.structure] for fold in done]),
        "scrambled": _arm([fold.copies for fold in done]),
    }
    losses = {arm: _class_losses(scored, metric) for arm, scored in scores.items()}
    against_none = paired_difference(losses["structure"] - losses["none"], plan.n_folds)
    against_scrambled = paired_difference(losses["structure"] - losses["scrambled"], plan.n_folds)
    none, with_structure = np.zeros((2, len(used), len(structure.classes)))
    for fold in done[: plan.n_folds]:  # every row once
        none[fold.test] = fold.none.proba
        with_structure[fold.test] = fold.structure.proba
    return Comparison(
        task, plan, structure, done[0].none.levels, scores,
        np.array([fold.structure.singleton_weight for fold in done]),
        against_none, against_scrambled, verdict(against_none, against_scrambled, metric),
        _known_classes(used, structure),
        {"none": none[used.has_class], "structure": with_structure[used.has_class]},
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
