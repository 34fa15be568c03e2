"""Does the structure help? Months and counties of California's daily weather, five trials.

``python -m benchmarks.quality --data FOLDER`` (the folder with ``weather/``) runs what is missing
in ``quality.jsonl`` and prints the tables. Every arm of a trial is a line, so a run can be
interrupted and continued. ``--engines`` says which engines to run. ``make bench ARGS=--record``
puts the tables into RESULTS.md.

Each trial draws 25,000 test rows, 5,000 validation rows and n training rows, the same for all arms.
Every arm searches the same grid of depth, learning rate and L2 penalty (with 5,000 rows or more,
only of depth), and takes the setting with the best log loss on the validation rows; the test rows
are used once. Structures: ``circular(width=3)`` ("fixed") and spanning-tree partitions drawn in
every round ("drawn": 4 blocks of the ring of months, 10 of the graph of counties), all with weight
0.1 on the singletons; "none" is plain log loss. A scrambled structure has its classes shuffled.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.lines import Line, keep, kept, when_and_where
from structent import LabelGraph, SpanningTreePartitions, circular, trivial
from structent.estimators.boosting import StructuredBoostingClassifier

TITLE = "Does the structure help? Test log loss on California's daily weather"
ENGINES = {"xgboost": "XGBoost's vector leaves", "structent": "our own engine"}
NOTE = """Arms that search splits on a sketch are compared with none on a sketch, the others
with none on the full gradient."""
KEPT = Path(__file__).parent / "quality.jsonl"
FEATURES = ["PRCP", "TMAX", "TMIN"]
N_TEST, N_VALIDATION, N_TRIALS = 25_000, 5_000, 5
SINGLETON_WEIGHT = 0.1
GRID = [
    {"max_depth": depth, "learning_rate": rate, "reg_lambda": penalty}
    for depth, rate, penalty in product([2, 3], [0.05, 0.1], [1.0, 10.0])
]
# With many rows the penalty hardly matters, and the full grid takes too long.
GRID_OF_LARGE = [
    {"max_depth": depth, "learning_rate": 0.1, "reg_lambda": 1.0} for depth in (2, 3, 4)
]
LARGE = 5000


@dataclass(frozen=True)
class Problem:
    """A label of the weather rows and the structures of its classes."""

    label: str
    structures: dict[str, Any]  # none, and fixed or drawn in every round; scrambled ones too
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Arm:
    """One way to train: the structure of the loss, what splits are searched on, the curvature."""

    loss: str
    splits: str = "full"
    curvature: str = "gradient"
    engine: str = "xgboost"

    @property
    def name(self) -> str:
        return f"{self.loss} / {self.splits} / {self.curvature}"


CURVATURE_ARMS = {
    "months": [Arm(loss, curvature=c) for loss in ("none", "fixed", "drawn") for c in (
        "gradient", "bound", "fisher")],
    "counties": [Arm(loss, curvature=c) for loss in ("none", "drawn") for c in (
        "gradient", "bound", "fisher")],
}  # fmt: skip
SPLIT_ARMS = {
    "months": [
        Arm("none"), Arm("none", "fixed"), Arm("none", "fixed, scrambled"),
        Arm("fixed"), Arm("fixed, scrambled"), Arm("fixed", "fixed"), Arm("drawn"),
    ],
    "counties": [
        Arm("none"), Arm("none", "drawn"), Arm("none", "drawn, scrambled"),
        Arm("drawn"), Arm("drawn, scrambled"), Arm("drawn", "drawn"),
    ],
}  # fmt: skip
CURVATURE_SIZES = (500, 1000, 2000)
LOSSES = {
    "months": ("none", "fixed", "fixed, scrambled"),
    "counties": ("none", "drawn", "drawn, scrambled"),
}
# The same settings as the other arms, and the search that our own engine uses by default.
OWN_ARMS = {
    problem: [Arm(loss, splits, engine="structent") for splits in ("full", "sketch")
              for loss in losses]
    for problem, losses in LOSSES.items()
}  # fmt: skip


def months() -> Problem:
    """The month of a day: a circle of twelve."""
    names = list(range(1, 13))
    ring = [(month, month % 12 + 1) for month in names]
    fixed = circular(names, width=3, singleton_weight=SINGLETON_WEIGHT)
    return Problem(
        "month",
        {
            "none": trivial(names),
            "fixed": fixed,
            "fixed, scrambled": fixed.scramble(np.random.default_rng(0)),
            "drawn": SpanningTreePartitions(LabelGraph(ring), 4, SINGLETON_WEIGHT),
        },
        (500, 2000, 5000, 20_000),
    )


def counties(data: Path) -> Problem:
    """The county of a station: a graph of neighbours."""
    graph = json.loads((data / "weather" / "california_counties_37.json").read_text())
    nodes = graph["nodes"]
    shuffled = np.random.default_rng(0).permutation(nodes).tolist()
    other = dict(zip(nodes, shuffled, strict=True))
    scrambled = [(other[a], other[b]) for a, b in graph["edges"]]
    return Problem(
        "county",
        {
            "none": trivial(nodes),
            "drawn": SpanningTreePartitions(
                LabelGraph(graph["edges"], nodes), 10, SINGLETON_WEIGHT
            ),
            "drawn, scrambled": SpanningTreePartitions(
                LabelGraph(scrambled, nodes), 10, SINGLETON_WEIGHT
            ),
        },
        (500, 1000, 5000, 20_000),
    )


def run(data: Path, engines: list[str], *, n_threads: int) -> None:
    """Run what is missing, smallest sizes first."""
    weather = pl.read_parquet(data / "weather" / "california_daily_2000_2018.parquet")
    problems = {"months": months(), "counties": counties(data)}
    done = {_key(line) for line in kept(KEPT)}
    for name, n_rows, arm in _plan(problems, engines):
        for trial in range(N_TRIALS):
            key = (name, n_rows, arm.engine, arm.name, trial)
            if key not in done:
                done.add(key)
                line = _trial(weather, problems[name], n_rows, arm, trial, n_threads)
                line |= {"problem": name, "n": n_rows, "arm": arm.name, "trial": trial}
                keep(KEPT, line | {"engine": arm.engine})


def _plan(problems: dict[str, Problem], engines: list[str]) -> Iterator[tuple[str, int, Arm]]:
    for size in sorted({size for problem in problems.values() for size in problem.sizes}):
        for name, problem in problems.items():
            if size in problem.sizes:
                arms = [*SPLIT_ARMS[name], *OWN_ARMS[name]]
                if size in CURVATURE_SIZES:
                    arms += CURVATURE_ARMS[name]
                yield from ((name, size, arm) for arm in arms if arm.engine in engines)


def _trial(
    weather: pl.DataFrame, problem: Problem, n_rows: int, arm: Arm, trial: int, n_threads: int
) -> Line:
    rng = np.random.default_rng((trial, n_rows))
    drawn = rng.choice(len(weather), size=N_TEST + N_VALIDATION + n_rows, replace=False)
    X = weather.select(FEATURES).to_numpy()[drawn]  # noqa: N806
    y = weather[problem.label].to_numpy()[drawn]
    test, rest = slice(0, N_TEST), slice(N_TEST, N_TEST + N_VALIDATION)
    train = slice(N_TEST + N_VALIDATION, None)
    best: tuple[float, Any, dict[str, float]] | None = None
    for setting in GRID_OF_LARGE if n_rows >= LARGE else GRID:
        model = _model(problem, arm, setting, trial, n_threads)
        model.fit(X[train], y[train], eval_set=(X[rest], y[rest]))
        score = float(min(model.validation_log_loss_))
        if best is None or score < best[0]:
            best = score, model, setting
    score, model, setting = best
    return {
        "test": _log_loss(model, X[test], y[test]),
        "validation": score,
        **setting,
        "rounds": model.best_iteration_ + 1,
    }


def _model(
    problem: Problem, arm: Arm, setting: dict[str, float], trial: int, n_threads: int
) -> StructuredBoostingClassifier:
    is_search = arm.splits in {"full", "sketch"}
    structure = problem.structures[arm.loss if is_search else arm.splits]
    plain_loss = arm.loss == "none" and not is_search
    # As many bins as XGBoost has, whatever the number of rows.
    of_engine = {"max_bins": 255} if arm.engine == "structent" else {}
    return StructuredBoostingClassifier(
        structure, weights=1.0 if plain_loss else None, curvature=arm.curvature, **setting,
        split_search=arm.splits if is_search else "structured", engine=arm.engine, **of_engine,
        n_estimators=2000, subsample=1.0, colsample=1.0,
        early_stopping_rounds=25, refit=False, random_state=trial, n_jobs=n_threads,
    )  # fmt: skip


def _log_loss(model: StructuredBoostingClassifier, X: Any, y: Any) -> float:  # noqa: N803
    columns = np.searchsorted(model.classes_, y)
    return float(-model.predict_log_proba(X)[np.arange(len(y)), columns].mean())


def page() -> list[str]:
    """Return the results as Markdown: means, spread over trials, and paired differences."""
    lines = kept(KEPT)
    text = [when_and_where(lines), "", NOTE, *_parity(lines)]
    for problem, n_rows in sorted({(line["problem"], line["n"]) for line in lines}):
        for engine, title in ENGINES.items():
            wanted = (problem, n_rows, engine)
            chosen = [line for line in lines if _key(line)[:3] == wanted]
            if chosen:
                text += ["", f"### {problem}, {n_rows:,} training rows, {title}", ""]
                text += ["| loss / splits / curvature | test log loss | sd | against none |"]
                text += ["|---|---|---|---|"]
                text += _rows(chosen)
    return text


def _parity(lines: list[Line]) -> list[str]:
    """Return the difference between the engines with the same settings, trial by trial."""
    by_key = {_key(line): line["test"] for line in lines}
    rows = []
    for problem, n_rows in sorted({(line["problem"], line["n"]) for line in lines}):
        pairs = [
            tuple(by_key.get((problem, n_rows, engine, Arm("none").name, trial))
                  for engine in ENGINES)
            for trial in range(N_TRIALS)
        ]  # fmt: skip
        both = np.array([pair for pair in pairs if None not in pair], dtype=float)
        if len(both) > 1:
            difference = both[:, 1] - both[:, 0]
            error = difference.std(ddof=1) / len(both) ** 0.5
            rows.append(
                f"| {problem} | {n_rows:,} | {both[:, 0].mean():.4f} | {both[:, 1].mean():.4f} "
                f"| {difference.mean():+.4f} +- {error:.4f} |"
            )
    title = "### The same settings, no structure: our own engine against XGBoost's vector leaves"
    head = ["| problem | training rows | XGBoost | ours | difference |", "|---|---|---|---|---|"]
    return ["", title, "", *head, *rows] if rows else []


def _rows(lines: list[Line]) -> list[str]:
    by_arm: dict[str, dict[int, Line]] = {}
    for line in lines:
        by_arm.setdefault(line["arm"], {})[line["trial"]] = line
    rows = []
    for arm, trials in by_arm.items():
        splits = "sketch" if "/ sketch /" in arm else "full"
        baseline = by_arm.get(Arm("none", splits).name, {})
        test = np.array([trials[trial]["test"] for trial in sorted(trials)])
        paired = [t for t in sorted(trials) if t in baseline]
        gains = np.array([trials[t]["test"] - baseline[t]["test"] for t in paired])
        error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else np.nan
        rows.append(
            f"| {arm} | {test.mean():.4f} | {test.std(ddof=1):.4f} "
            f"| {gains.mean():+.4f} +- {error:.4f} |"
        )
    return rows


def _key(line: Line) -> tuple[str, int, str, str, int]:
    return line["problem"], line["n"], line["engine"], line["arm"], line["trial"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with weather/")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()
    run(arguments.data, arguments.engines, n_threads=arguments.threads)
    print("\n".join(page()))
