"""Log loss at growing numbers of training rows, with the structure and without."""

from __future__ import annotations

from typing import Any

import numpy as np

from structent.comparison.arms import Asked, Contest, Rows
from structent.comparison.progress import OnProgress
from structent.comparison.result import LearningCurve, Plan

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
