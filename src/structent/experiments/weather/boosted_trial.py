"""One trial of boosted trees: every depth is trained, with early stopping on validation rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from structent.estimators.boosting import StructuredBoostingClassifier
from structent.experiments.experiment import Result
from structent.experiments.weather.rows import Draw, Rows
from structent.metrics import structured_log_loss
from structent.structure import PartitionSampler, RandomPartition, trivial


@dataclass(frozen=True)
class Schedule:
    """How trees are grown, and on how many rows they are chosen and judged.

    The defaults are the paper's. Its booster draws a bootstrap of the rows for every tree; of
    XGBoost's ways to sample, the share of distinct rows that a bootstrap has comes nearest.
    """

    max_trees: int = 5000
    learning_rate: float = 0.02
    depths: tuple[int, ...] = (2, 3, 4)
    penalty: float = 1.0
    row_share: float = 0.632
    patience: int = 30
    n_validation: int = 5_000
    n_test: int = 25_000

    def as_settings(self) -> dict[str, Any]:
        """Return the schedule as JSON values."""
        return {**asdict(self), "depths": list(self.depths)}


PAPER = Schedule()
QUICK = Schedule(learning_rate=0.1, patience=15)
SMOKE = Schedule(max_trees=20, learning_rate=0.3, depths=(2,), n_validation=100, n_test=200)
SCHEDULES = {"paper": PAPER, "quick": QUICK, "smoke": SMOKE}


def boosted_trial(
    rows: Draw,
    structure: RandomPartition | PartitionSampler,
    schedule: Schedule,
    *,
    seed: int,
    n_threads: int,
) -> Result:
    """Return log loss on validation and test rows, and the number of trees, for every depth."""
    result: dict[str, list[float]] = {"depth": [], "validation": [], "test": [], "trees": []}
    for depth in schedule.depths:
        model = StructuredBoostingClassifier(
            structure,
            n_estimators=schedule.max_trees,
            learning_rate=schedule.learning_rate,
            max_depth=depth,
            reg_lambda=schedule.penalty,
            subsample=schedule.row_share,
            early_stopping_rounds=schedule.patience,
            random_state=seed,
            n_jobs=n_threads,
        ).fit(rows.train.features, rows.train.labels, eval_set=tuple(rows.validation))
        result["depth"].append(depth)
        result["validation"].append(_log_loss(model, rows.validation))
        result["test"].append(_log_loss(model, rows.test))
        result["trees"].append(model.best_iteration_ + 1)
    return result


def _log_loss(model: StructuredBoostingClassifier, rows: Rows) -> float:
    # Of the classes, whatever structure the model was trained with.
    proba = model.predict_proba(rows.features)
    classes = list(model.classes_)
    return round(
        float(structured_log_loss(rows.labels, proba, trivial(classes), classes=classes)), 6
    )
