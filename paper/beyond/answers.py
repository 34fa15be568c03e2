"""Answers of any granularity: do they reach the promised coverage, and what does least risk gain?

Test rows of two problems are split into rows to calibrate on and rows to answer, 100 times. Also, a
linear model on CIFAR-100 answers with the most probable class and with the class of least risk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.features import cifar100_features, feature_sources
from paper.months import MONTHS
from paper.pages import Mean, Page, difference_of, mean_of, table, with_error
from paper.weather import BOOSTER, draw, weather_sources
from structent import (
    RandomPartition,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    mix,
)
from structent.decisions import (
    answer_report,
    block_scores,
    calibrated_hedge,
    hedge,
    minimum_risk,
)
from structent.metrics import average_distance, block_accuracy, block_log_loss, mistake_severity
from structent.metrics.distance import class_distances
from structent.structure.catalog import cifar100

_CONFIDENCES, _SIZES_OF_CALIBRATION = (0.8, 0.9, 0.95), (100, 300, 1000)
_N_SPLITS, _N_ANSWERED, _N_POOL = 100, 5000, 10_000
_IMAGE_SIZES, _N_TRIALS = (1000, 2000), 5
_N_TO_TRAIN_ON = 8000  # of the 10,000 training images; the others choose C
_PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
_KS = (1, 5, 20)
_COVERAGE_MEASURES = ("coverage", "average_size", "average_depth")
_N_DAYS, _N_DAYS_OF_VALIDATION = 2000, 5000

# The circle that was trained with, and one that has more blocks to answer with.
_CIRCLE = circular(MONTHS, width=3, singleton_weight=0.3)
_CIRCLES = mix([circular(MONTHS, width=width) for width in (2, 3, 4, 6)], [0.25] * 4)
_PROBLEMS = {"CIFAR-100": cifar100(), "months": _CIRCLE, "months, four widths": _CIRCLES}

_TRAININGS, _RULES = ("standard", "structured"), ("argmax", "least risk")
_RISK_MEASURES = (
    "accuracy", "superclass accuracy", "severity", "distance at 1", "distance at 5",
    "distance at 20",
)  # fmt: skip
_ALLOWED = 0.01  # from nominal coverage
_COMPARED = {
    "standard: least risk - argmax": (("standard", "least risk"), ("standard", "argmax")),
    "structured: least risk - argmax": (("structured", "least risk"), ("structured", "argmax")),
    "argmax: structured - standard": (("structured", "argmax"), ("standard", "argmax")),
    "least risk: structured - standard": (("structured", "least risk"), ("standard", "least risk")),
    "both: structured, least risk - standard, argmax": (
        ("structured", "least risk"),
        ("standard", "argmax"),
    ),
}

_Table = NDArray[np.float64]
_Labels = NDArray[Any]


@dataclass(frozen=True)
class Answers:
    """The runs: coverage for each size of the calibration, least risk for each training."""

    name: ClassVar[str] = "answers"
    kept_in: ClassVar[str] = "answers"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run."""
        coverage = [
            {"question": "coverage", "problem": problem, "n": n, "confidence": confidence}
            for problem in _PROBLEMS
            for n in _SIZES_OF_CALIBRATION
            for confidence in _CONFIDENCES
        ]
        risk = [
            {"question": "risk", "size": size, "training": training, "trial": trial}
            for size in _IMAGE_SIZES
            for trial in range(_N_TRIALS)
            for training in _TRAININGS
        ]
        return [*coverage, *risk]

    def sources(self, settings: Settings) -> Sources:
        """Return the weather, or the images and their network."""
        is_months = settings.get("problem") == "months"
        return weather_sources(self.data) if is_months else feature_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return the result of a run."""
        if settings["question"] == "coverage":
            rows = _pool(self.data, settings["problem"])
            return _coverage(
                rows, _PROBLEMS[settings["problem"]], settings["n"], settings["confidence"]
            )
        return _risk(*_images(self.data, settings["size"], settings["training"], settings["trial"]))


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Answers(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page."""
    runs = Answers(asked.data).runs()
    finished = asked.kept("answers").finished_of(runs)
    coverage = [run for run in finished if run.settings["question"] == "coverage"]
    risk = [run for run in finished if run.settings["question"] == "risk"]
    minutes = sum(run.seconds for run in finished) / 60
    parts = [
        "# Answers of any granularity",
        (
            f"Command: `{asked.command}`. {len(finished)} of {len(runs)} runs are finished; they "
            f"took {minutes:.0f} minutes, until {max(run.date for run in finished)}."
        ),
        f"Machine: {finished[-1].machine}.",
        *_coverage_part(coverage),
        *_risk_part(risk),
    ]
    return Page("answers", "\n\n".join(parts))


class _Judged(NamedTuple):
    """Test rows: their labels, and the probabilities of a model in the order of a structure."""

    labels: _Labels
    proba: _Table


def _pool(data: Path, problem: str) -> _Judged:
    return _images(data, 2000, "structured", 0)[0] if problem == "CIFAR-100" else _months(data)


@cache
def _months(data: Path) -> _Judged:
    rows = draw(
        data, "month", n_train=_N_DAYS, n_validation=_N_DAYS_OF_VALIDATION, n_test=_N_POOL,
        trial=0,
    )  # fmt: skip
    model = StructuredBoostingClassifier(_CIRCLE, random_state=0, n_jobs=1, **BOOSTER)
    model.fit(*rows.train, eval_set=tuple(rows.validation))
    return _Judged(rows.test.labels, _in_order(model, rows.test.features, _CIRCLE))


def _coverage(rows: _Judged, structure: RandomPartition, n: int, confidence: float) -> Result:
    """Calibrate on n rows of the pool and answer others, 100 times."""
    rng = np.random.default_rng((n, round(1000 * confidence)))
    scores = block_scores(rows.labels, rows.proba, structure)
    reports = []
    for _ in range(_N_SPLITS):
        held_out, answered = np.split(rng.permutation(_N_POOL)[: n + _N_ANSWERED], [n])
        answers = calibrated_hedge(rows.proba[answered], structure, confidence, scores[held_out])
        reports.append(answer_report(rows.labels[answered], answers))
    # Without calibration there is one answer for every row, whatever the split.
    believed = answer_report(rows.labels, hedge(rows.proba, structure, confidence))
    return {
        "accuracy": round(block_accuracy(rows.labels, rows.proba, structure), 4),
        "calibrated": {
            measure: [round(getattr(report, measure), 4) for report in reports]
            for measure in _COVERAGE_MEASURES
        },
        "believed": {
            measure: round(getattr(believed, measure), 4) for measure in _COVERAGE_MEASURES
        },
    }


@cache
def _images(data: Path, size: int, training: str, trial: int) -> tuple[_Judged, dict[str, Any]]:
    """Return predictions of test images by a model whose C is best on other images, and that C."""
    features, structure = cifar100_features(data), cifar100()
    names = np.array(structure.classes)
    chosen = np.random.default_rng((trial, size)).choice(_N_TO_TRAIN_ON, size, replace=False)
    train, labels = features.train, names[features.train_labels]
    weights = 1.0 if training == "standard" else None

    def validation_loss(model: StructuredLogisticRegression) -> float:
        proba = _in_order(model, train[_N_TO_TRAIN_ON:], structure)
        return block_log_loss(labels[_N_TO_TRAIN_ON:], proba, structure)

    models = [
        StructuredLogisticRegression(structure, weights=weights, C=C, max_iter=1000).fit(
            train[chosen], labels[chosen]
        )
        for C in _PENALTIES
    ]
    best = min(models, key=validation_loss)
    proba = _in_order(best, features.test, structure)
    return _Judged(names[features.test_labels], proba), {"C": best.C}


def _risk(rows: _Judged, chosen: dict[str, Any]) -> Result:
    structure = cifar100()
    places = np.arange(structure.n_classes)
    cost = class_distances(structure, places[:, None], places[None, :])
    risk = rows.proba @ cost
    # Distances at k rank classes by probability, so low risks are turned into high values.
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
    labels: _Labels, answers: NDArray[np.int64], ranked: _Table, structure: RandomPartition
) -> dict[str, float]:
    told = np.eye(structure.n_classes)[answers]
    found = {
        "accuracy": block_accuracy(labels, told, structure),
        "superclass accuracy": block_accuracy(labels, told, structure, level="superclass"),
        "severity": mistake_severity(labels, told, structure),
        "distance at 1": average_distance(labels, told, structure),
    }
    for k in _KS[1:]:
        found[f"distance at {k}"] = average_distance(labels, ranked, structure, k=k)
    return {name: round(value, 4) for name, value in found.items()}


def _in_order(model: Any, features: Any, structure: RandomPartition) -> _Table:
    """Return probabilities in the order of the structure's classes."""
    proba: _Table = model.predict_proba(features)[:, _columns(model.classes_, structure.classes)]
    return proba.astype(np.float64)


def _columns(of_model: _Labels, wanted: Iterable[Any]) -> list[int]:
    place = {label: column for column, label in enumerate(of_model.tolist())}
    return [place[label] for label in wanted]


def _coverage_part(runs: list[Finished]) -> list[str]:
    problems = list(dict.fromkeys(run.settings["problem"] for run in runs))
    parts = [
        "## Do the answers reach the promised coverage?",
        (
            "`calibrate_blocks` on n rows, then `predict_blocks` for 5,000 others, both drawn from "
            "10,000 test rows, 100 times; the model is trained once. CIFAR-100: "
            "`StructuredLogisticRegression` on the features of 2,000 images under the paper's "
            "hierarchy, C chosen on 2,000 other images. Months: `StructuredBoostingClassifier` "
            "(XGBoost) on 2,000 rows of California's weather, circle of width 3, early stopping on "
            '5,000 rows. "Four widths" has the same probabilities and answers with blocks of 2, 3, '
            "4 and 6 neighbours. ± is a standard error over the splits, the interval is for 95 %. "
            '"Believed" are answers without calibration, for all 10,000 rows. Size is the '
            "number of classes in an answer, depth the number of levels it settles (of 4 for "
            "CIFAR-100, of 2 for months, of 5 with four widths)."
        ),
    ]
    for problem in problems:
        of_problem = [run for run in runs if run.settings["problem"] == problem]
        parts += [
            f"### {problem}",
            f"Accuracy of the most probable class: {of_problem[0].result['accuracy']:.3f}.",
            table(
                [
                    "confidence", "n", "coverage", "minus nominal, points", "size", "depth",
                    "believed: coverage", "size", "depth",
                ],
                [_coverage_row(run) for run in of_problem],
                n_left=1,
            ),
        ]  # fmt: skip
    return [*parts, "\n".join(f"- {finding}" for finding in _coverage_findings(runs))]


def _coverage_row(run: Finished) -> list[str]:
    nominal = run.settings["confidence"]
    calibrated, believed = _splits(run), run.result["believed"]
    excess = _points(calibrated["coverage"], nominal)
    return [
        f"{nominal:.0%}",
        f"{run.settings['n']:,}",
        with_error(calibrated["coverage"]),
        _with_interval(excess, 2),
        f"{calibrated['average_size'].value:.2f}",
        f"{calibrated['average_depth'].value:.2f}",
        f"{believed['coverage']:.4f}",
        f"{believed['average_size']:.2f}",
        f"{believed['average_depth']:.2f}",
    ]


def _splits(run: Finished) -> dict[str, Mean]:
    """Return the mean of each measure over the splits."""
    measures = run.result["calibrated"].items()
    return {measure: mean_of(dict(enumerate(values))) for measure, values in measures}


def _points(coverage: Mean, nominal: float) -> Mean:
    return Mean(100 * (coverage.value - nominal), 100 * coverage.error, coverage.n_trials)


def _coverage_findings(runs: list[Finished]) -> list[str]:
    calibrated = [_splits(run)["coverage"].value - run.settings["confidence"] for run in runs]
    believed = [run.result["believed"]["coverage"] - run.settings["confidence"] for run in runs]
    within = sum(abs(value) <= _ALLOWED for value in calibrated)
    return [
        (
            f"Calibrated, {within} of {len(runs)} mean coverages are within one point of nominal; "
            f"they lie between {100 * min(calibrated):+.2f} and {100 * max(calibrated):+.2f} "
            "points from it."
        ),
        (
            f"Without calibration, they lie between {100 * min(believed):+.2f} and "
            f"{100 * max(believed):+.2f} points from nominal: probabilities of sets grow in steps, "
            "so the first set that reaches the confidence usually exceeds it. Calibrated answers "
            "need fewer classes."
        ),
        _of_sizes(runs),
        _of_widths(runs),
    ]


def _of_sizes(runs: list[Finished]) -> str:
    """Return a sentence on what more calibration rows change."""
    sizes = sorted({run.settings["n"] for run in runs})
    spread = {
        n: max(
            _splits(run)["coverage"].error * len(run.result["calibrated"]["coverage"]) ** 0.5
            for run in runs
            if run.settings["n"] == n
        )
        for n in (sizes[0], sizes[-1])
    }
    return (
        f"More calibration rows do not change the mean coverage, but they reduce the spread of "
        f"single calibrations: its standard deviation is up to {100 * spread[sizes[0]]:.1f} points "
        f"with {sizes[0]:,} rows, {100 * spread[sizes[-1]]:.1f} with {sizes[-1]:,}."
    )


def _of_widths(runs: list[Finished]) -> str:
    """Compare the circle used in training with the one with more blocks, at the most rows."""
    most = max(run.settings["n"] for run in runs)
    size = {
        (run.settings["problem"], run.settings["confidence"]): _splits(run)["average_size"].value
        for run in runs
        if run.settings["n"] == most
    }
    pairs = [
        f"{size['months, four widths', nominal]:.1f} instead of {size['months', nominal]:.1f} at "
        f"{nominal:.0%}"
        for problem, nominal in size
        if problem == "months"
    ]
    return (
        "The available blocks decide how precise an answer can be, not whether it is right: "
        f"with four widths an answer has {', '.join(pairs)} months on average."
    )


def _risk_part(runs: list[Finished]) -> list[str]:
    trials = Counter((run.settings["size"], run.settings["training"]) for run in runs)
    # A size whose first runs are not finished has nothing to compare yet.
    sizes = sorted({size for size, _ in trials if min(_counts(trials, size)) > 1})
    parts = [
        "## The class of least risk against the most probable one",
        (
            "`minimum_risk` with the hierarchy's own distance (its four levels have equal weight, "
            "so that the risk of a class is its expected tree distance to the truth) on the 10,000 "
            "test images; `StructuredLogisticRegression` on the features of 1,000 and 2,000 "
            "images, with all weight on the classes (standard) or with the hierarchy (structured), "
            "C chosen for each by the log loss of 2,000 other images. Severity is the mean "
            "distance of mistakes, distance at k the mean distance of the first k classes, over "
            "all images; "
            "classes are ranked by probability or by risk. Differences are paired by trial, with "
            "95 % interval."
        ),
    ]
    for size in sizes:
        of_size = [run for run in runs if run.settings["size"] == size]
        parts += [f"### {size:,} images", _risk_table(of_size), _difference_table(of_size)]
    findings = [finding for size in sizes for finding in _risk_findings(runs, size)]
    return [*parts, "\n".join(f"- {finding}" for finding in findings)]


def _counts(trials: Counter[tuple[int, str]], size: int) -> list[int]:
    return [trials[size, training] for training in _TRAININGS]


def _risk_table(runs: list[Finished]) -> str:
    rows = [
        [
            training,
            rule,
            with_error(mean_of(_by_trial(runs, training, lambda result: result["log_loss"]))),
            *(
                with_error(mean_of(_measured(runs, training, rule, each)))
                for each in _RISK_MEASURES
            ),
        ]
        for training in _TRAININGS
        for rule in _RULES
    ]
    return table(["training", "answer", "log loss", *_RISK_MEASURES], rows, n_left=2)


def _difference_table(runs: list[Finished]) -> str:
    rows = [
        [
            name,
            *(_with_interval(_difference(runs, first, second, each), 4) for each in _RISK_MEASURES),
        ]
        for name, (first, second) in _COMPARED.items()
    ]
    return table(["difference", *_RISK_MEASURES], rows, n_left=1)


def _risk_findings(runs: list[Finished], size: int) -> list[str]:
    of_size = [run for run in runs if run.settings["size"] == size]
    sentences = []
    for name, pair in _COMPARED.items():
        changes = {each: _difference(of_size, *pair, each) for each in _RISK_MEASURES}
        lowered = [each for each, change in changes.items() if change.is_lower]
        raised = [each for each, change in changes.items() if change.is_higher]
        open_ = [each for each in _RISK_MEASURES if each not in (*lowered, *raised)]
        said = [
            f"{verb} {', '.join(which)}"
            for verb, which in (("lowers", lowered), ("raises", raised), ("leaves open", open_))
            if which
        ]
        sentences.append(f"{size:,} images, {name}: {'; '.join(said)}.")
    return sentences


def _difference(
    runs: list[Finished], first: tuple[str, str], second: tuple[str, str], measure: str
) -> Mean:
    return difference_of(_measured(runs, *first, measure), _measured(runs, *second, measure))


def _measured(runs: list[Finished], training: str, rule: str, measure: str) -> dict[int, float]:
    return _by_trial(runs, training, lambda result: result[rule][measure])


def _by_trial(
    runs: list[Finished], training: str, value: Callable[[Result], float]
) -> dict[int, float]:
    return {
        run.settings["trial"]: value(run.result)
        for run in runs
        if run.settings["training"] == training
    }


def _with_interval(mean: Mean, digits: int) -> str:
    return f"{mean.value:+.{digits}f} ± {mean.half_width:.{digits}f}"
