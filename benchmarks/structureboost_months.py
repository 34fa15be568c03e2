"""structureboost 0.7.0, by the author of the paper, on the months: n=1000, five trials.

``python benchmarks/structureboost_months.py --data FOLDER`` (the folder with ``weather/``) runs
what is missing in ``docs/results/structureboost.jsonl``. Every run is a line, so it can be
interrupted and continued. The rows of a trial are the same as in ``python -m paper months``, so the
results are paired with ours. It needs an environment of its own, which does not have structent.

Settings that the paper does not state are the package's defaults: at least 25 rows to split, and 25
thresholds tried per feature.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when NumPy is first imported

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import time  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from datetime import UTC, datetime  # noqa: E402
from importlib.metadata import version  # noqa: E402
from itertools import product  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import structureboost  # noqa: E402

PROJECT = Path(__file__).parent.parent
KEPT = PROJECT / "docs" / "results" / "structureboost.jsonl"
TABLE = Path("weather") / "california_daily_2000_2018.parquet"
FEATURES = ["PRCP", "TMAX", "TMIN"]
N_MONTHS, WIDTH = 12, 3
SIZE, N_TRIALS = 1000, 5
SCHEDULE = {
    "max_trees": 5000, "learning_rate": 0.02, "depths": [2, 3, 4], "penalty": 1.0,
    "rows": "bootstrap", "evaluated_every": 10, "patience": 3, "min_rows_to_split": 25,
    "max_thresholds": 25, "n_validation": 5_000, "n_test": 25_000,
}  # fmt: skip


@dataclass(frozen=True)
class Method:
    """A structure of the months, as the lines name it."""

    name: str
    n_blocks: int | None
    singleton_weight: float

    def target_structure(self) -> dict[str, Any] | None:
        """Return the structure as structureboost takes it; January is 0."""
        if self.name == "standard":
            return None
        if self.name == "fixed":
            partitions = [_blocks_of_neighbours(first) for first in range(WIDTH)]
            return {
                "partition_type": "fixed",
                "singleton_weight": self.singleton_weight,
                "partition_list": partitions,
                "partition_weight_vec": [(1 - self.singleton_weight) / WIDTH] * WIDTH,
            }
        ring = [[month, (month + 1) % N_MONTHS] for month in range(N_MONTHS)]
        return {
            "partition_type": "variable",
            "singleton_weight": self.singleton_weight,
            "random_partition_size": self.n_blocks,
            "num_partitions": 1,
            "rp_method": "span_tree",
            "target_graph": structureboost.graphs.graph_undirected(ring),
        }


METHODS = [
    Method("standard", None, 1.0),
    *(Method("fixed", None, weight) for weight in (0.1, 0.3, 0.5)),
    *(Method("variable", 4, weight) for weight in (0.3, 0.5)),
]


class Rows(NamedTuple):
    """Features, and months from 0."""

    features: pd.DataFrame
    labels: np.ndarray


def main() -> None:
    """Run what is missing, and print a line for every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=PROJECT.parent / "shared" / "data")
    file = parser.parse_args().data / TABLE
    table = pl.read_parquet(file)
    features = pd.DataFrame(table.select(FEATURES).to_numpy(), columns=FEATURES)
    rows = Rows(features, table["month"].to_numpy() - 1)
    data = {TABLE.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16]}
    done = _settings_that_are_kept(data)
    for trial, method in product(range(N_TRIALS), METHODS):
        settings = _settings(method, trial)
        if settings in done:
            continue
        start = time.perf_counter()
        result = _trial(rows, method, trial)
        seconds = round(time.perf_counter() - start, 2)
        _keep(settings, result, seconds, data)
        print(
            method.name, method.singleton_weight, trial, result["test"], f"{seconds} s", flush=True
        )


def _settings_that_are_kept(data: dict[str, str]) -> list[dict[str, Any]]:
    if not KEPT.exists():
        return []
    whole, newline, _ = KEPT.read_text().rpartition("\n")
    KEPT.write_text(whole + newline)  # drops an incomplete last line, whose process was killed
    lines = [json.loads(line) for line in whole.splitlines()]
    other = [line["data"] for line in lines if line["data"] != data]
    if other:
        raise SystemExit(f"the runs in {KEPT} were made from {other[0]}, got {data}")
    return [line["settings"] for line in lines]


def _settings(method: Method, trial: int) -> dict[str, Any]:
    return {
        "experiment": "structureboost", "preset": "paper", "size": SIZE, "method": method.name,
        "n_blocks": method.n_blocks, "singleton_weight": method.singleton_weight, "trial": trial,
        "schedule": SCHEDULE,
    }  # fmt: skip


def _trial(rows: Rows, method: Method, trial: int) -> dict[str, list[float]]:
    test, validation, train = _draw(rows, trial)
    result: dict[str, list[float]] = {"depth": [], "validation": [], "test": [], "trees": []}
    for depth in SCHEDULE["depths"]:
        model = _fitted(method, depth, train, validation, seed=trial)
        result["depth"].append(depth)
        result["validation"].append(_log_loss(model, validation))
        result["test"].append(_log_loss(model, test))
        result["trees"].append(int(model.num_trees_for_prediction))
    return result


def _draw(rows: Rows, trial: int) -> list[Rows]:
    """Return test, validation and training rows, the same as structent's experiment draws."""
    n_test, n_validation = SCHEDULE["n_test"], SCHEDULE["n_validation"]
    rng = np.random.default_rng((trial, SIZE))
    drawn = rng.choice(len(rows.labels), size=n_test + n_validation + SIZE, replace=False)
    return [
        Rows(rows.features.iloc[part].reset_index(drop=True), rows.labels[part])
        for part in np.split(drawn, [n_test, n_test + n_validation])
    ]


def _fitted(method: Method, depth: int, train: Rows, validation: Rows, *, seed: int) -> Any:
    model = structureboost.StructureBoostMulti(
        SCHEDULE["max_trees"],
        N_MONTHS,
        {
            name: {
                "feature_type": "numerical",
                "max_splits_to_search": SCHEDULE["max_thresholds"],
            }
            for name in FEATURES
        },
        target_structure=method.target_structure(),
        subsample=1,
        replace=True,
        min_size_split=SCHEDULE["min_rows_to_split"],
        max_depth=depth,
        reg_lambda=SCHEDULE["penalty"],
        learning_rate=SCHEDULE["learning_rate"],
        random_seed=seed,
    )
    model.fit(
        *train,
        eval_set=validation,
        eval_freq=SCHEDULE["evaluated_every"],
        early_stop_past_steps=SCHEDULE["patience"],
        verbose=0,
    )
    return model


def _log_loss(model: Any, rows: Rows) -> float:
    features = rows.features.to_numpy()
    # In parts: the package holds rows x trees x classes at once.
    proba = np.concatenate(
        [model.predict_proba(part) for part in np.array_split(features, len(features) // 250)]
    )
    return round(float(-np.log(proba[np.arange(len(proba)), rows.labels]).mean()), 6)


def _blocks_of_neighbours(first: int) -> list[list[int]]:
    starts = range(first, first + N_MONTHS, WIDTH)
    return [[(start + i) % N_MONTHS for i in range(WIDTH)] for start in starts]


def _keep(
    settings: dict[str, Any], result: dict[str, Any], seconds: float, data: dict[str, str]
) -> None:
    line = {
        "settings": settings, "result": result, "seconds": seconds,
        "date": datetime.now(UTC).date().isoformat(), "machine": _machine(),
        "data": data,
    }  # fmt: skip
    with KEPT.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _machine() -> str:
    # platform.processor() knows only the architecture on Linux.
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    packages = [f"{name} {version(name)}" for name in ("numpy", "pandas", "structureboost")]
    python = f"Python {platform.python_version()} on {platform.system()}"
    return ", ".join([f"{processor}, one thread", python, *packages])


if __name__ == "__main__":
    main()
