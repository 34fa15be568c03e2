"""The scores of all folds, put together: what was compared, and what follows."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.comparison.arms import FoldScores, Rows, Scored
from structent.comparison.differences import paired_difference, verdict
from structent.comparison.result import (
    METRICS,
    ArmScores,
    Comparison,
    LearningCurve,
    Plan,
    Task,
)
from structent.estimators.classes import Structure
from structent.structure.labels import class_indices


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
