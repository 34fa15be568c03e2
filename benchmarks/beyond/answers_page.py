"""The page of answers of any granularity: coverage, size and depth, and what least risk gains."""

from collections import Counter
from collections.abc import Callable, Sequence

from structent.experiments.kept import Finished
from structent.experiments.markdown import table, with_error
from structent.experiments.paired import Mean, difference_of, mean_of

TRAININGS, RULES = ("standard", "structured"), ("argmax", "least risk")
MEASURES = (
    "accuracy", "superclass accuracy", "severity", "distance at 1", "distance at 5",
    "distance at 20",
)  # fmt: skip
ALLOWED = 0.01  # from nominal coverage


def page(finished: Sequence[Finished], n_runs: int, command: str) -> str:
    """Return the page as Markdown."""
    coverage = [run for run in finished if run.settings["question"] == "coverage"]
    risk = [run for run in finished if run.settings["question"] == "risk"]
    minutes = sum(run.seconds for run in finished) / 60
    parts = [
        "# Answers of any granularity",
        (
            f"Command: `{command}`. {len(finished)} of {n_runs} runs are finished; they took "
            f"{minutes:.0f} minutes, until {max(run.date for run in finished)}."
        ),
        f"Machine: {finished[-1].machine}.",
        *_coverage_part(coverage),
        *_risk_part(risk),
    ]
    return "\n\n".join(parts) + "\n"


# Coverage


def _coverage_part(runs: list[Finished]) -> list[str]:
    problems = list(dict.fromkeys(run.settings["problem"] for run in runs))
    parts = [
        "## Is what they promise kept?",
        (
            "`calibrate_blocks` on n rows, then `predict_blocks` for 5,000 others, both drawn from "
            "10,000 test rows, 100 times; the model is trained once. CIFAR-100: "
            "`StructuredLogisticRegression` on the features of 2,000 images under the paper's "
            "hierarchy, C chosen on 2,000 other images. Months: `StructuredBoostingClassifier` on "
            "2,000 rows of California's weather, circle of width 3, early stopping on 5,000 rows. "
            '"Four widths" has the same probabilities and answers with blocks of 2, 3, 4 and 6 '
            "neighbours. ± is a standard error over the splits, the interval is for 95 %. "
            '"Believed" are the answers without calibration, for all 10,000 rows. Size is the '
            "number of classes in an answer, depth that of the levels it settles (of 4 for "
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
    within = sum(abs(value) <= ALLOWED for value in calibrated)
    return [
        (
            f"Calibrated, {within} of {len(runs)} mean coverages are within one point of nominal; "
            f"they lie between {100 * min(calibrated):+.2f} and {100 * max(calibrated):+.2f} "
            "points from it."
        ),
        (
            f"Believed, they lie between {100 * min(believed):+.2f} and "
            f"{100 * max(believed):+.2f} points from nominal: sets come in steps, and the first "
            "that has the confidence mostly has more. Calibrated answers need fewer classes."
        ),
        _of_sizes(runs),
        _of_widths(runs),
    ]


def _of_sizes(runs: list[Finished]) -> str:
    """Say what more rows of calibration are good for."""
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
        f"More rows of calibration do not change the mean, but how far a single calibration is "
        f"from it: a standard deviation of up to {100 * spread[sizes[0]]:.1f} points with "
        f"{sizes[0]:,} rows, {100 * spread[sizes[-1]]:.1f} with {sizes[-1]:,}."
    )


def _of_widths(runs: list[Finished]) -> str:
    """Compare the circle that was trained with, and that with more blocks, at most rows."""
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
        "Which blocks there are decides how precise an answer can be, not whether it is right: "
        f"with four widths an answer has {', '.join(pairs)} months on average."
    )


# Least risk


def _risk_part(runs: list[Finished]) -> list[str]:
    trials = Counter((run.settings["size"], run.settings["training"]) for run in runs)
    # A size that has just been begun has nothing to compare yet.
    sizes = sorted({size for size, _ in trials if min(_counts(trials, size)) > 1})
    parts = [
        "## The class of least risk against the most probable one",
        (
            "`minimum_risk` with the hierarchy's own distance (its four levels have equal weight, "
            "so that the risk of a class is its expected tree distance to the truth) on the 10,000 "
            "test images; `StructuredLogisticRegression` on the features of 1,000 and 2,000 "
            "images, with all weight on the classes (standard) or with the hierarchy (structured), "
            "C chosen for each by the log loss of 2,000 other images. Severity is the mean "
            "distance of the mistakes, distance at k that of the k first classes, over all images; "
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
    return [trials[size, training] for training in TRAININGS]


def _risk_table(runs: list[Finished]) -> str:
    rows = [
        [
            training,
            rule,
            with_error(mean_of(_by_trial(runs, training, lambda result: result["log_loss"]))),
            *(with_error(mean_of(_measured(runs, training, rule, each))) for each in MEASURES),
        ]
        for training in TRAININGS
        for rule in RULES
    ]
    return table(["training", "answer", "log loss", *MEASURES], rows, n_left=2)


def _difference_table(runs: list[Finished]) -> str:
    rows = [
        [name, *(_with_interval(_difference(runs, first, second, each), 4) for each in MEASURES)]
        for name, (first, second) in COMPARED.items()
    ]
    return table(["difference", *MEASURES], rows, n_left=1)


COMPARED = {
    "standard: least risk - argmax": (("standard", "least risk"), ("standard", "argmax")),
    "structured: least risk - argmax": (("structured", "least risk"), ("structured", "argmax")),
    "argmax: structured - standard": (("structured", "argmax"), ("standard", "argmax")),
    "least risk: structured - standard": (("structured", "least risk"), ("standard", "least risk")),
    "both: structured, least risk - standard, argmax": (
        ("structured", "least risk"),
        ("standard", "argmax"),
    ),
}


def _risk_findings(runs: list[Finished], size: int) -> list[str]:
    of_size = [run for run in runs if run.settings["size"] == size]
    sentences = []
    for name, pair in COMPARED.items():
        changes = {each: _difference(of_size, *pair, each) for each in MEASURES}
        lowered = [each for each, change in changes.items() if change.is_lower]
        raised = [each for each, change in changes.items() if change.is_higher]
        open_ = [each for each in MEASURES if each not in (*lowered, *raised)]
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
    runs: list[Finished], training: str, value: Callable[[dict], float]
) -> dict[int, float]:
    return {
        run.settings["trial"]: value(run.result)
        for run in runs
        if run.settings["training"] == training
    }


def _with_interval(mean: Mean, digits: int) -> str:
    return f"{mean.value:+.{digits}f} ± {mean.half_width:.{digits}f}"
