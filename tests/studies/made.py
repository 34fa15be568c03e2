"""Comparisons made of random numbers, for what only shows them."""

import numpy as np

from structent.studies.comparison import (
    ARMS,
    ArmScores,
    Comparison,
    Difference,
    LearningCurve,
    Plan,
    Task,
    Verdict,
    scored_structure,
)


def made_comparison(
    structure, *, n_rows=600, n_folds=10, seed=0, learning_curve=False, cuts=(), metric="log loss"
):
    """A comparison of the right shape: every number in it is drawn."""
    rng = np.random.default_rng(seed)
    k = len(structure.classes)
    levels = tuple(scored_structure(structure).levels)
    labels = rng.integers(k, size=n_rows)
    scores = {
        arm: ArmScores(
            np.stack(
                [
                    rng.normal(2.0 + 0.02 * place, 0.05, size=(n_folds, len(levels))),
                    rng.uniform(0.2, 0.9, size=(n_folds, len(levels))),
                    rng.uniform(0.0, 0.1, size=(n_folds, len(levels))),
                ],
                axis=2,
            ),
            rng.uniform(1, 2, size=n_folds),
        )
        for place, arm in enumerate(ARMS)
    }
    differences = [rng.normal(-0.01, 0.005, size=n_folds) for _ in range(2)]
    curve = None
    if learning_curve:
        curve = LearningCurve((100, 200, 400), *rng.normal(2, 0.1, size=(2, 3, n_folds)))
    return Comparison(
        Task(
            ("rain", "wind"), n_rows, n_rows, structure.classes,
            tuple(np.bincount(labels, minlength=k).tolist()), structure.classes[:1],
            ("1 row is known by a block alone",),
        ),
        Plan(5, n_folds // 5, 2, (0.1, 0.4, 0.7), tuple(cuts)),
        structure,
        levels,
        scores,
        rng.choice([0.1, 0.4, 1.0], size=n_folds),
        *(Difference(d, d.mean(), d.mean() - 0.003, d.mean() + 0.003) for d in differences),
        Verdict("helps", "The structure lowers log loss by 0.010 ± 0.003 (95 %)."),
        labels,
        {arm: rng.dirichlet(np.ones(k), size=n_rows) for arm in ("none", "structure")},
        12.5,
        seed,
        curve,
        metric,
    )  # fmt: skip
