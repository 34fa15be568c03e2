"""Answers of any granularity: is what they promise kept, and what does least risk gain?

``python -m benchmarks.beyond.answers --data ../shared/data`` splits test rows of two problems into
rows to calibrate on and rows to answer, 100 times, and lets a linear model on CIFAR-100 answer by
the most probable class and by least risk. Every finished run is a line of
``docs/results/answers.jsonl``.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.beyond.answers_page import TRAININGS, page
from benchmarks.beyond.cifar100_features import cifar100_features
from structent import (
    RandomPartition,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    mix,
)
from structent._files import save_bytes
from structent.decisions import (
    answer_report,
    block_scores,
    calibrated_hedge,
    hedge,
    minimum_risk,
)
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.run import do_runs
from structent.experiments.weather.months import MONTHS
from structent.experiments.weather.rows import draw
from structent.metrics import average_distance, block_accuracy, block_log_loss, mistake_severity
from structent.metrics.distance import class_distances
from structent.structure.catalog import cifar100

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMAND = "python -m benchmarks.beyond.answers --data ../shared/data"

CONFIDENCES, SIZES_OF_CALIBRATION = (0.8, 0.9, 0.95), (100, 300, 1000)
N_SPLITS, N_ANSWERED, N_POOL = 100, 5000, 10_000
IMAGE_SIZES, N_TRIALS = (1000, 2000), 5
N_TO_TRAIN_ON = 8000  # of the 10,000 training images; the others choose C
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
KS = (1, 5, 20)
MEASURES = ("coverage", "average_size", "average_depth")
N_MONTHS_TRAIN, N_MONTHS_VALIDATION = 2000, 5000

# The circle that was trained with, and one that has more blocks to answer with.
CIRCLE = circular(MONTHS, width=3, singleton_weight=0.3)
CIRCLES = mix([circular(MONTHS, width=width) for width in (2, 3, 4, 6)], [0.25] * 4)
PROBLEMS = {"CIFAR-100": cifar100(), "months": CIRCLE, "months, four widths": CIRCLES}

Table = NDArray[np.float64]
Labels = NDArray[Any]


class Judged(NamedTuple):
    """Test rows: their labels, and the probabilities of a model in the order of a structure."""

    labels: Labels
    proba: Table


@dataclass(frozen=True)
class Answers:
    """The runs: coverage for each size of the calibration, least risk for each training."""

    name = "answers"
    kept_in = "answers"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run."""
        coverage = [
            {"question": "coverage", "problem": problem, "n": n, "confidence": confidence}
            for problem in PROBLEMS
            for n in SIZES_OF_CALIBRATION
            for confidence in CONFIDENCES
        ]
        risk = [
            {"question": "risk", "size": size, "training": training, "trial": trial}
            for size in IMAGE_SIZES
            for trial in range(N_TRIALS)
            for training in TRAININGS
        ]
        return [*coverage, *risk]

    def prepare(self, n_threads: int, on_progress: Any) -> None:
        """Models are kept in memory, as long as the command runs."""

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return the result of a run."""
        if settings["question"] == "coverage":
            rows = _pool(self.data, settings["problem"])
            return _coverage(
                rows, PROBLEMS[settings["problem"]], settings["n"], settings["confidence"]
            )
        return _risk(*_images(self.data, settings["size"], settings["training"], settings["trial"]))


# Coverage


def _pool(data: Path, problem: str) -> Judged:
    return _images(data, 2000, "structured", 0)[0] if problem == "CIFAR-100" else _months(data)


@cache
def _months(data: Path) -> Judged:
    rows = draw(
        data, "month", n_train=N_MONTHS_TRAIN, n_validation=N_MONTHS_VALIDATION, n_test=N_POOL,
        trial=0,
    )  # fmt: skip
    model = StructuredBoostingClassifier(CIRCLE, random_state=0, n_jobs=1)
    model.fit(*rows.train, eval_set=tuple(rows.validation))
    return Judged(rows.test.labels, _in_order(model, rows.test.features, CIRCLE))


def _coverage(rows: Judged, structure: RandomPartition, n: int, confidence: float) -> Result:
    """Calibrate on n rows of the pool and answer others, 100 times."""
    rng = np.random.default_rng((n, round(1000 * confidence)))
    scores = block_scores(rows.labels, rows.proba, structure)
    reports = []
    for _ in range(N_SPLITS):
        held_out, answered = np.split(rng.permutation(N_POOL)[: n + N_ANSWERED], [n])
        answers = calibrated_hedge(rows.proba[answered], structure, confidence, scores[held_out])
        reports.append(answer_report(rows.labels[answered], answers))
    # No row is needed to believe a model: this is one answer for every row, whatever the split.
    believed = answer_report(rows.labels, hedge(rows.proba, structure, confidence))
    return {
        "accuracy": round(block_accuracy(rows.labels, rows.proba, structure), 4),
        "calibrated": {
            measure: [round(getattr(report, measure), 4) for report in reports]
            for measure in MEASURES
        },
        "believed": {measure: round(getattr(believed, measure), 4) for measure in MEASURES},
    }


# Least risk


@cache
def _images(data: Path, size: int, training: str, trial: int) -> tuple[Judged, dict[str, Any]]:
    """Return test images judged by the model whose C is best on other images, and that C."""
    features, structure = cifar100_features(data), cifar100()
    names = np.array(structure.classes)
    chosen = np.random.default_rng((trial, size)).choice(N_TO_TRAIN_ON, size, replace=False)
    train, labels = features.train, names[features.train_labels]
    weights = 1.0 if training == "standard" else None

    def validation_loss(model: StructuredLogisticRegression) -> float:
        proba = _in_order(model, train[N_TO_TRAIN_ON:], structure)
        return block_log_loss(labels[N_TO_TRAIN_ON:], proba, structure)

    models = [
        StructuredLogisticRegression(structure, weights=weights, C=C, max_iter=1000).fit(
            train[chosen], labels[chosen]
        )
        for C in PENALTIES
    ]
    best = min(models, key=validation_loss)
    proba = _in_order(best, features.test, structure)
    return Judged(names[features.test_labels], proba), {"C": best.C}


def _risk(rows: Judged, chosen: dict[str, Any]) -> Result:
    structure = cifar100()
    places = np.arange(structure.n_classes)
    cost = class_distances(structure, places[:, None], places[None, :])
    risk = rows.proba @ cost
    # Distances at k rank by probability: less risk is made more of it.
    by_risk = risk.max(axis=1, keepdims=True) - risk
    by_risk /= by_risk.sum(axis=1, keepdims=True)
    of_least_risk = structure.encode(minimum_risk(rows.proba, structure))
    return {
        **chosen,
        "log_loss": round(block_log_loss(rows.labels, rows.proba, structure), 4),
        "argmax": _distances(rows.labels, rows.proba.argmax(axis=1), rows.proba, structure),
        "least risk": _distances(rows.labels, of_least_risk, by_risk, structure),
    }


def _distances(
    labels: Labels, answers: NDArray[np.int64], ranked: Table, structure: RandomPartition
) -> dict[str, float]:
    told = np.eye(structure.n_classes)[answers]
    found = {
        "accuracy": block_accuracy(labels, told, structure),
        "superclass accuracy": block_accuracy(labels, told, structure, level="superclass"),
        "severity": mistake_severity(labels, told, structure),
        "distance at 1": average_distance(labels, told, structure),
    }
    for k in KS[1:]:
        found[f"distance at {k}"] = average_distance(labels, ranked, structure, k=k)
    return {name: round(value, 4) for name, value in found.items()}


def _in_order(model: Any, features: Any, structure: RandomPartition) -> Table:
    """Return probabilities in the order of the structure's classes."""
    proba: Table = model.predict_proba(features)[:, _columns(model.classes_, structure.classes)]
    return proba.astype(np.float64)


def _columns(of_model: Labels, wanted: Iterable[Any]) -> list[int]:
    place = {label: column for column, label in enumerate(of_model.tolist())}
    return [place[label] for label in wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    experiment = Answers(parser.parse_args().data)
    kept = Kept(RESULTS / "answers.jsonl")
    do_runs(experiment, kept, n_jobs=1, on_progress=lambda _, done, n: print(done, "of", n))
    finished = kept.finished_of(experiment.runs())
    save_bytes(RESULTS / "answers.md", page(finished, len(experiment.runs()), COMMAND).encode())


if __name__ == "__main__":
    main()
