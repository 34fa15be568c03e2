"""Rows that are labelled only by a block: is it better to drop them or to learn from them?

``python -m benchmarks.beyond.coarse_labels --data ../shared/data`` trains a linear model on frozen
features of 1,000 CIFAR-100 images, a share of them labelled by superclass, and boosted trees on a
day's weather, a share of the days labelled by quarter. Both arms have the same rows, structure,
candidates and validation rows; only the coarse rows are dropped in one and used in the other.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from benchmarks.beyond.cifar100_features import cifar100_features
from benchmarks.beyond.coarse_labels_page import write_page
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.classes import mixed_labels
from structent.estimators.linear import StructuredLogisticRegression
from structent.experiments.experiment import Result, Settings
from structent.experiments.kept import Kept
from structent.experiments.run import do_runs
from structent.experiments.weather.rows import draw
from structent.metrics import block_accuracy, block_log_loss
from structent.structure import RandomPartition, catalog, circular
from structent.studies.progress import OnProgress

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PROBLEMS = ("months", "cifar100")
SHARES = (0.0, 0.5, 0.8)
N_IMAGES, N_TRIALS_OF_DAYS = 1000, 8
# The first slice was looked at while this was written.
SLICES = range(1, 8)
SIZES_OF_DAYS = (1000, 2000)
N_VALIDATION, N_TEST_OF_DAYS, N_IMAGES_OF_VALIDATION = 1000, 25_000, 2000
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DEPTHS = (2, 3, 4)


class Rows(NamedTuple):
    """Features, (n, columns), and labels, (n,)."""

    features: NDArray[Any]
    labels: NDArray[Any]


class Problem(NamedTuple):
    """Training rows with their classes, validation rows, test rows, and what relates the labels."""

    train: Rows
    validation: Rows
    test: Rows
    structure: RandomPartition
    level: str


@dataclass(frozen=True)
class CoarseLabels:
    """The experiment.

    Parameters
    ----------
    data
        The folder of the images, the network and the weather table.
    problems
        Which of them to run.
    """

    name: ClassVar[str] = "coarse_labels"
    kept_in: ClassVar[str] = "coarse_labels"

    data: Path
    problems: tuple[str, ...] = PROBLEMS

    def runs(self) -> list[Settings]:
        """Return every problem, size, trial, share and arm; without coarse rows there is one."""
        days = [("months", size, range(N_TRIALS_OF_DAYS), DEPTHS) for size in SIZES_OF_DAYS]
        slices = ("cifar100", N_IMAGES, SLICES, STRENGTHS)
        return [
            {
                "problem": problem, "size": size, "trial": trial, "share": share, "arm": arm,
                "candidates": list(candidates),
            }
            for problem, size, trials, candidates in [*days, slices]
            if problem in self.problems
            for trial in trials
            for share in SHARES
            for arm in (("dropped", "used") if share else ("dropped",))
        ]  # fmt: skip

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Nothing is shared but the features, which are kept on disk."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return log loss and accuracy on test rows of the candidate that validation rows chose."""
        size, trial = settings["size"], settings["trial"]
        of_problem = _months if settings["problem"] == "months" else images
        problem = of_problem(self.data, size, trial)
        train = coarsened(problem, settings["share"], trial, is_used=settings["arm"] == "used")
        models = _boosted if settings["problem"] == "months" else _linear
        scored = [
            (_log_loss(model, problem.validation, problem.structure), candidate, model)
            for candidate, model in models(train, problem, trial, n_threads)
        ]
        validation, candidate, best = min(scored, key=lambda each: each[0])
        return {"validation": validation, "candidate": candidate, **_scores(best, problem)}


def _months(data: Path, size: int, trial: int) -> Problem:
    drawn = draw(
        data, "month", trial=trial, n_train=size, n_validation=N_VALIDATION, n_test=N_TEST_OF_DAYS
    )
    train, validation, test = (Rows(*part) for part in (drawn.train, drawn.validation, drawn.test))
    return Problem(train, validation, test, circular(range(1, 13)), "width 3")


def images(data: Path, size: int, trial: int) -> Problem:
    """Return a slice of the training images, the last ones to validate, and all test images."""
    features, structure = _features(data), catalog.cifar100()
    names = np.array(structure.classes)
    own = slice(trial * size, (trial + 1) * size)
    others = slice(len(features.train) - N_IMAGES_OF_VALIDATION, None)
    parts = [(features.train, features.train_labels, part) for part in (own, others)]
    parts.append((features.test, features.test_labels, slice(None)))
    # By the images of the slice alone, coarse or not: without it L-BFGS takes hundreds of steps.
    mean, deviation = features.train[own].mean(axis=0), features.train[own].std(axis=0) + 1e-3
    rows = [Rows((x[part] - mean) / deviation, names[labels[part]]) for x, labels, part in parts]
    return Problem(*rows, structure, "superclass")


_features = cache(cifar100_features)


def coarsened(problem: Problem, share: float, trial: int, *, is_used: bool) -> Rows:
    """Return the training rows, of which a share is known by its block alone or left out."""
    features, labels = problem.train
    n_coarse = round(share * len(labels))
    shuffled = np.random.default_rng(trial).permutation(len(labels))
    coarse, fine = np.split(shuffled, [n_coarse])
    if not is_used:
        return Rows(features[fine], labels[fine])
    # Of the rotations of the circle the first: the quarters of the calendar.
    partition = problem.structure.levels[problem.level][0]
    mixed = mixed_labels(labels)
    for row in coarse:
        block = partition.names[partition.block_of[problem.structure.encode([labels[row]])[0]]]
        mixed[row] = f"{problem.level}:{block}"
    return Rows(features, mixed)


def _boosted(
    train: Rows, problem: Problem, trial: int, n_threads: int
) -> Iterator[tuple[float, Any]]:
    for depth in DEPTHS:
        model = StructuredBoostingClassifier(
            problem.structure, learning_rate=0.1, max_depth=depth, subsample=0.632,
            random_state=trial, n_jobs=n_threads, allow_blocks=True,
        )  # fmt: skip
        yield depth, model.fit(*train, eval_set=tuple(problem.validation))


def _linear(train: Rows, problem: Problem, trial: int, n_threads: int) -> Iterator[Any]:  # noqa: ARG001  BLAS has its own
    for strength in STRENGTHS:
        model = StructuredLogisticRegression(problem.structure, C=strength, allow_blocks=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # 200 steps for every candidate
            yield strength, model.fit(*train)


def _log_loss(model: Any, rows: Rows, structure: RandomPartition) -> float:
    proba = model.predict_proba(rows.features)
    return round(block_log_loss(rows.labels, proba, structure, classes=model.classes_), 6)


def _temperature(model: Any, rows: Rows) -> float:
    """Return what to divide the logits by for the best log loss."""
    logits = model.predict_log_proba(rows.features)
    column_of = {label: column for column, label in enumerate(model.classes_.tolist())}
    true = [column_of[label] for label in rows.labels.tolist()]

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(logits / np.exp(log_temperature), axis=1)
        return float(-scaled[np.arange(len(true)), true].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 3), method="bounded").x))


def _scores(model: Any, problem: Problem) -> Result:
    labels, proba = problem.test.labels, model.predict_proba(problem.test.features)
    accuracy = {
        name: block_accuracy(labels, proba, problem.structure, level=level, classes=model.classes_)
        for name, level in (("accuracy", None), ("block_accuracy", problem.level))
    }
    temperature = _temperature(model, problem.validation)
    scaled = softmax(np.log(np.maximum(proba, np.finfo(proba.dtype).tiny)) / temperature, axis=1)
    losses = {
        name: block_log_loss(labels, table, problem.structure, classes=model.classes_)
        for name, table in (("log_loss", proba), ("scaled_log_loss", scaled))
    }
    found = {**losses, **accuracy, "temperature": temperature}
    return {name: round(value, 6) for name, value in found.items()}


def main() -> None:
    """Do what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--problem", choices=PROBLEMS, nargs="+", default=PROBLEMS)
    arguments = parser.parse_args()
    kept = Kept(RESULTS / "coarse_labels.jsonl")
    experiment = CoarseLabels(arguments.data, tuple(arguments.problem))
    do_runs(experiment, kept, n_jobs=1, on_progress=lambda *told: print(*told, flush=True))
    whole = CoarseLabels(arguments.data).runs()
    cause = Kept(RESULTS / "coarse_labels_cause.jsonl").finished()
    write_page(kept.finished_of(whole), len(whole), cause, RESULTS)


if __name__ == "__main__":
    main()
