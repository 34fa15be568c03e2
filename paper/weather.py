"""California's daily weather, and boosted trees on it: what Problems 2 and 3 share.

The paper's own table is not available. The one used here (NOAA GHCN-Daily) has the same columns and
37 of California's counties. Log losses differ from the paper's, but differences between methods can
be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paper.digests import Sources
from paper.experiment import Result, Settings
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.inputs import features_and_labels, open_table
from structent.metrics import structured_log_loss
from structent.structure import LabelGraph, PartitionSampler, RandomPartition, trivial

_FEATURES = ("PRCP", "TMAX", "TMIN")
_TABLE = "california_daily_2000_2018.parquet"
_GRAPH = "california_counties_37.json"


class Examples(NamedTuple):
    """Rows of a table: their features, (n, 3), and their labels, (n,)."""

    features: NDArray[np.floating[Any]]
    labels: NDArray[np.generic]


@dataclass(frozen=True)
class Draw:
    """The rows of one trial, drawn without replacement: no row is in two of the three parts."""

    train: Examples
    validation: Examples
    test: Examples


def draw(
    data: Path, label: str, *, n_train: int, n_validation: int, n_test: int, trial: int
) -> Draw:
    """Return the rows of a trial, the same for every method.

    Parameters
    ----------
    data
        The folder that holds the table, or one that holds it in ``weather``.
    label
        The column to predict.
    n_train, n_validation, n_test
        How many rows.
    trial
        The number of the trial; with ``n_train`` it seeds the draw.
    """
    rows = _rows(data, label)
    wanted = n_test + n_validation + n_train
    if wanted > len(rows.labels):
        raise StructentError(
            f"a trial needs {wanted:,} rows, got a table with {len(rows.labels):,}; use a smaller "
            "preset"
        )
    rng = np.random.default_rng((trial, n_train))
    drawn = rng.choice(len(rows.labels), size=wanted, replace=False)
    parts = np.split(drawn, [n_test, n_test + n_validation])
    test, validation, train = (Examples(rows.features[part], rows.labels[part]) for part in parts)
    return Draw(train, validation, test)


def weather_sources(data: Path) -> Sources:
    """Return the table, as a source of runs."""
    return {_TABLE: (_file(data, _TABLE),)}


def county_sources(data: Path) -> Sources:
    """Return the table and the graph of the counties, as sources of runs."""
    return {**weather_sources(data), _GRAPH: (_file(data, _GRAPH),)}


@cache
def county_graph(data: Path) -> LabelGraph:
    """Return the graph of neighbouring counties that comes with the table."""
    file = _file(data, _GRAPH)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return LabelGraph(content["edges"], content["nodes"])
    except StructentError as error:
        raise StructentError(f"{file} must hold a graph of counties: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise StructentError(
            f"{file} must be a JSON object with the counties in nodes and pairs of them in edges"
        ) from None


# The settings of all recorded runs on trees, whatever the defaults of the estimator become.
BOOSTER: dict[str, Any] = {
    "engine": "xgboost",
    "n_estimators": 2000,
    "learning_rate": 0.05,
    "max_depth": 3,
    "subsample": 1.0,
    "colsample": 1.0,
    "split_search": "full",
    "early_stopping_rounds": 25,
    "refit": False,
}


@dataclass(frozen=True)
class Schedule:
    """How trees are grown, and the numbers of validation and test rows.

    The defaults are the paper's. Its booster draws a bootstrap of the rows for every tree. The
    closest setting of XGBoost is to sample the share of distinct rows that a bootstrap has.
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


SCHEDULES = {
    "paper": Schedule(),
    "quick": Schedule(learning_rate=0.1, patience=15),
    "smoke": Schedule(max_trees=20, learning_rate=0.3, depths=(2,), n_validation=100, n_test=200),
}


def boosted_trial(
    rows: Draw,
    structure: RandomPartition | PartitionSampler,
    schedule: Schedule,
    *,
    seed: int,
    n_threads: int,
    engine: str = "xgboost",
) -> Result:
    """Return log loss on validation and test rows, and the number of trees, for every depth."""
    result: dict[str, list[float]] = {"depth": [], "validation": [], "test": [], "trees": []}
    for depth in schedule.depths:
        of_schedule = {
            "engine": engine,
            "n_estimators": schedule.max_trees,
            "learning_rate": schedule.learning_rate,
            "max_depth": depth,
            "reg_lambda": schedule.penalty,
            "subsample": schedule.row_share,
            "early_stopping_rounds": schedule.patience,
        }
        model = StructuredBoostingClassifier(
            structure, random_state=seed, n_jobs=n_threads, **(BOOSTER | of_schedule)
        ).fit(rows.train.features, rows.train.labels, eval_set=tuple(rows.validation))
        result["depth"].append(depth)
        result["validation"].append(_log_loss(model, rows.validation))
        result["test"].append(_log_loss(model, rows.test))
        result["trees"].append(model.best_iteration_ + 1)
    return result


def settings_of_trials(
    experiment: str,
    preset: str,
    arms: Sequence[tuple[str, int | None, float]],
    *,
    sizes: Iterable[int],
    n_trials: int,
) -> list[Settings]:
    """Return the settings of every size, trial and arm: what decides a result except the data.

    An arm is a method, its number of blocks if it has one, and its weight of the singletons.
    """
    return [
        {
            "experiment": experiment,
            "preset": preset,
            "size": size,
            "method": method,
            "n_blocks": n_blocks,
            "singleton_weight": weight,
            "trial": trial,
            "schedule": SCHEDULES[preset].as_settings(),
        }
        for size in sizes
        for trial in range(n_trials)
        for method, n_blocks, weight in arms
    ]


@cache
def _rows(data: Path, label: str) -> Examples:
    file = _file(data, _TABLE)
    table = features_and_labels(open_table(file, [label, *_FEATURES]), label, features=_FEATURES)
    wrong = [column.name for column in table.columns if column.kind != "number"]
    if wrong:
        raise StructentError(f"{file} must hold numbers in {', '.join(wrong)}, got other values")
    return Examples(table.features.to_numpy().astype(np.float64), table.labels)


def _file(data: Path, name: str) -> Path:
    for folder in (data, data / "weather"):
        if (folder / name).is_file():
            return folder / name
    raise StructentError(
        f"--data must be a folder that holds {name}, by itself or in weather/, got {data}"
    )


def _log_loss(model: StructuredBoostingClassifier, rows: Examples) -> float:
    # The log loss of the classes, whatever structure the model was trained with.
    proba = model.predict_proba(rows.features)
    classes = list(model.classes_)
    return round(
        float(structured_log_loss(rows.labels, proba, trivial(classes), classes=classes)), 6
    )
