"""Is the test of a structure honest, and does it find what is there?

``python -m benchmarks.beyond.significance --data ../shared/data`` asks about structures that mean
nothing (two kinds, 200 runs each), and about the circle of the months on California's
weather; every finished run is a line of ``docs/results/significance.jsonl``.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.beyond.significance_page import page
from structent import StructuredLogisticRegression, circular, hierarchy
from structent._files import save_bytes
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.run import do_runs
from structent.experiments.weather.months import MONTHS
from structent.experiments.weather.rows import draw
from structent.studies import partition_gains, structure_test

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMAND = "python -m benchmarks.beyond.significance --data ../shared/data"

N_RUNS, N_TRIALS, SIZES = 200, 10, (500, 2000)
N_ROWS, N_PERMUTATIONS, STOP_AFTER = 100, 99, 10
# The classes lie on a circle, or in three heaps of three: the data carry a structure.
NULL_STRUCTURES = {
    "circle": circular(range(8), width=2, singleton_weight=0.3),
    "hierarchy": hierarchy({label: (label // 3,) for label in range(9)}),
}


@dataclass(frozen=True)
class Significance:
    """The runs: p-values of structures that mean nothing, and of the months."""

    name = "significance"
    kept_in = "significance"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run; the two kinds and sizes in turn."""
        null = [
            {"question": "null", "structure": structure, "run": run}
            for run in range(N_RUNS)
            for structure in NULL_STRUCTURES
        ]
        power = [
            {"question": "months", "size": size, "run": run}
            for run in range(N_TRIALS)
            for size in SIZES
        ]
        return [*null, *power]

    def prepare(self, n_threads: int, on_progress: Any) -> None:
        """Nothing is shared."""

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return what the test says."""
        if settings["question"] == "null":
            return _null_run(settings["structure"], settings["run"])
        return _months_run(self.data, settings["size"], settings["run"])


def _null_run(name: str, number: int) -> Result:
    """Ask about a random member of the orbit, whatever the data carry."""
    rng = np.random.default_rng((number, len(name)))
    labels, features = _heaps(rng) if name == "hierarchy" else _circle(rng)
    structure = NULL_STRUCTURES[name].scramble(rng)
    with TemporaryDirectory() as folder:
        # What was trained is kept: the second test draws the same copies in the same order.
        whole, early = (
            structure_test(
                features, labels, structure, estimator=StructuredLogisticRegression(tol=1e-3),
                random_state=number, n_jobs=1, n_permutations=N_PERMUTATIONS,
                stop_after=stop_after, n_folds=3, keep_in=Path(folder) / "losses.jsonl",
            )
            for stop_after in (None, STOP_AFTER)
        )  # fmt: skip
    return {
        "p": whole.p_value,
        "n_lower": int((whole.null < whole.loss).sum()),
        "n_as_good": whole.p.n_as_good,
        "n_drawn": whole.p.n_drawn,
        "p_early": early.p_value,
        "n_drawn_early": early.p.n_drawn,
        "effect": round(whole.effect, 6),
        "orbit": whole.orbit_size,
    }


def _circle(rng: np.random.Generator) -> tuple[Any, Any]:
    labels = np.resize(np.arange(8), N_ROWS)
    angle = 2 * np.pi * labels / 8 + rng.normal(scale=0.6, size=N_ROWS)
    return labels, np.column_stack([np.cos(angle), np.sin(angle), rng.normal(size=N_ROWS)])


def _heaps(rng: np.random.Generator) -> tuple[Any, Any]:
    labels = np.resize(np.arange(9), N_ROWS)
    heaps, within = rng.normal(scale=1.5, size=(3, 3)), rng.normal(scale=0.7, size=(9, 3))
    noise = rng.normal(size=(N_ROWS, 3))
    return labels, heaps[labels // 3] + within[labels] + noise


def _months_run(data: Path, size: int, trial: int) -> Result:
    """Ask about the circle of the months, and about its three partitions."""
    train = draw(data, "month", n_train=size, n_validation=1, n_test=1, trial=trial).train
    model = make_pipeline(StandardScaler(), StructuredLogisticRegression(tol=1e-3))
    structure = circular(MONTHS, width=3, singleton_weight=0.3)
    found = structure_test(
        train.features, train.labels, structure, estimator=model, random_state=trial, n_jobs=1,
        n_permutations=N_PERMUTATIONS, stop_after=None,
    )  # fmt: skip
    gains = partition_gains(
        train.features, train.labels, structure, estimator=model, random_state=trial, n_jobs=1
    )  # fmt: skip
    return {
        "p": found.p_value,
        "loss": round(found.loss, 6),
        "null": [round(float(value), 6) for value in (found.null.mean(), found.null.std(ddof=1))],
        "effect": [round(value, 6) for value in (found.effect, *found.effect_interval)],
        "against_none": [
            round(value, 6)
            for value in (found.against_none.mean, found.against_none.low, found.against_none.high)
        ],
        "p_against_none": found.p_value_against_none,
        "left_out": [round(gain.difference.mean, 6) for gain in gains],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1, help="How many runs at a time.")
    arguments = parser.parse_args()
    experiment = Significance(arguments.data)
    kept = Kept(RESULTS / "significance.jsonl")
    do_runs(
        experiment, kept, n_jobs=arguments.jobs, on_progress=lambda _, done, n: print(done, "of", n)
    )
    save_bytes(RESULTS / "significance.md", page(kept.finished(), COMMAND).encode())


if __name__ == "__main__":
    main()
