"""Comparisons made of random numbers, for what only shows them."""

import numpy as np

from structent.studies.comparison import (
    ARMS,
    ArmScores,
    Comparison,
    LearningCurve,
    References,
    Task,
)
from structent.studies.differences import Difference
from structent.studies.levels import scored_structure
from structent.studies.plan import NONE, Candidate, Plan
from structent.studies.verdict import Verdict

CANDIDATES = (Candidate(loss=0.4), Candidate(sharing=0.3), Candidate(0.4, 0.6))


def made_comparison(
    structure, *, n_rows=600, n_splits=10, seed=0, learning_curve=False, reduced=(),
    metric="log loss", model="boosting",
):  # fmt: skip
    """A comparison of the right shape: every number in it is drawn."""
    rng = np.random.default_rng(seed)
    k = len(structure.classes)
    levels = tuple(scored_structure(structure).levels)
    labels = rng.integers(k, size=n_rows)
    scores = {
        arm: ArmScores(
            np.stack(
                [
                    rng.normal(2.0 + 0.02 * place, 0.05, size=(n_splits, len(levels))),
                    rng.uniform(0.2, 0.9, size=(n_splits, len(levels))),
                    rng.uniform(0.0, 0.1, size=(n_splits, len(levels))),
                ],
                axis=2,
            ),
            rng.uniform(1, 2, size=n_splits),
        )
        for place, arm in enumerate(ARMS)
    }
    differences = [rng.normal(-0.01, 0.005, size=n_splits) for _ in range(2)]
    curve = None
    if learning_curve:
        curve = LearningCurve((100, 200, 400), *rng.normal(2, 0.1, size=(2, 3, n_splits)))
    tried = [NONE, *CANDIDATES]
    return Comparison(
        Task(
            ("rain", "wind"), n_rows, structure.classes,
            tuple(np.bincount(labels, minlength=k).tolist()), structure.classes[:1],
            ("1 row is known by a block alone",),
        ),
        Plan(5, n_splits // 5, 1, 7, False, CANDIDATES, 2),
        model,
        structure,
        levels,
        scores,
        {
            arm: tuple(tried[place] for place in rng.integers(len(tried), size=n_splits))
            for arm in ("structure", "scrambled")
        },
        *(Difference(d, d.mean(), d.mean() - 0.003, d.mean() + 0.003) for d in differences),
        Verdict(
            "use it", "helps", "Use it: the structure lowers log loss by 0.010 ± 0.003 (95 %).",
            0.004,
        ),
        labels,
        {arm: rng.dirichlet(np.ones(k), size=n_rows) for arm in ("none", "structure")},
        tuple(reduced),
        References({"HistGradientBoostingClassifier": 2.1, "LogisticRegression": 2.3}, 2.0, 2),
        {"boosting": 2.0, "linear": 2.2},
        12.5,
        seed,
        None,
        curve,
        metric,
    )  # fmt: skip
