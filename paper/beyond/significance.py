"""Is the test of a structure valid, and does it find a true structure?

It is run on structures that mean nothing (two kinds, 200 runs each), and on the circle of the
months with California's weather.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from scipy.stats import kstest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paper.beyond import Asked
from paper.digests import Sources
from paper.experiment import Experiment, Finished, Result, Settings
from paper.months import MONTHS
from paper.pages import Mean, Page, interval, mean_of, signed, table, with_error
from paper.weather import draw, weather_sources
from structent import StructuredLogisticRegression, circular, hierarchy
from structent.studies import partition_gains, structure_test

_N_RUNS, _N_TRIALS, _SIZES = 200, 10, (500, 2000)
_N_ROWS, _N_PERMUTATIONS, _STOP_AFTER = 100, 99, 10
# The classes lie on a circle, or in three heaps of three: the data carry a structure.
_NULL_STRUCTURES = {
    "circle": circular(range(8), width=2, singleton_weight=0.3),
    "hierarchy": hierarchy({label: (label // 3,) for label in range(9)}),
}

_LEVELS = (0.01, 0.05, 0.1, 0.2)
_POWER_COLUMNS = (
    *("rows", "trials", "p ≤ 0.05", "p ≤ 0.01", "effect", "its 95 % interval"),
    *("against none", "p ≤ 0.05 against none"),
)
_NAMES = {"circle": "circle of 8", "hierarchy": "hierarchy of 9 in 3 blocks", "both": "both"}
# For each structure, runs from this number on were added after the others had been seen.
_FIRST_LOOK = 100
_HISTORY = (
    f"200 runs of each structure were planned, reduced to {_FIRST_LOOK} to fit the time budget (by "
    "then we had seen p-values of the first circles), and increased again after the first look "
    "gave Kolmogorov-Smirnov p = 0.03. So the first look, and all runs together, are not free of "
    "peeking; only the later runs by themselves are a clean check. We looked for a bug and found "
    "none: rebuilt and automorphic copies give the same losses to the last bit, and a made-up "
    "statistic gives uniform p-values with the same code."
)
_PILOT = (
    "The model and the weight were chosen after a pilot on the rows of trial 0 (three sets of "
    "features, two weights, 9 copies), which is one of the trials, so power is slightly "
    "overestimated. 20 trials of each size were planned, and reduced to 10 to fit the time budget."
)


@dataclass(frozen=True)
class Significance:
    """The runs: p-values of structures that mean nothing, and of the months."""

    name: ClassVar[str] = "significance"
    kept_in: ClassVar[str] = "significance"

    data: Path

    def runs(self) -> list[Settings]:
        """Return every run; the two kinds and sizes in turn."""
        null = [
            {"question": "null", "structure": structure, "run": run}
            for run in range(_N_RUNS)
            for structure in _NULL_STRUCTURES
        ]
        power = [
            {"question": "months", "size": size, "run": run}
            for run in range(_N_TRIALS)
            for size in _SIZES
        ]
        return [*null, *power]

    def sources(self, settings: Settings) -> Sources:
        """Return the weather; problems without meaning are drawn."""
        return {} if settings["question"] == "null" else weather_sources(self.data)

    def run(self, settings: Settings, n_threads: int) -> Result:  # noqa: ARG002  one is enough
        """Return what the test says."""
        if settings["question"] == "null":
            return _null_run(settings["structure"], settings["run"])
        return _months_run(self.data, settings["size"], settings["run"])


def experiments(asked: Asked) -> list[Experiment]:
    """Return what is run."""
    return [Significance(asked.data)]


def page(asked: Asked) -> Page:
    """Return the page."""
    finished = asked.kept("significance").finished()
    null = [run for run in finished if run.settings["question"] == "null"]
    months = [run for run in finished if run.settings["question"] == "months"]
    minutes = sum(run.seconds for run in finished) / 60
    parts = [
        "# Testing a structure",
        (
            "`structure_test` asks whether a structure helps more than the same structure with its "
            "classes scrambled. Here it is run on structures that mean nothing, where it must "
            "rarely report a benefit, and on the circle of the months, where it should."
        ),
        (
            f"Command: `{asked.command}`. {len(finished)} runs took {minutes:.0f} minutes in all, "
            f"until {max(run.date for run in finished)}."
        ),
        f"Machine: {finished[-1].machine}.",
        *_null(null),
        *_months(months),
    ]
    return Page("significance", "\n\n".join(parts))


def _null_run(name: str, number: int) -> Result:
    """Test a random member of the orbit, whatever structure the data have."""
    rng = np.random.default_rng((number, len(name)))
    labels, features = _heaps(rng) if name == "hierarchy" else _circle(rng)
    structure = _NULL_STRUCTURES[name].scramble(rng)
    with TemporaryDirectory() as folder:
        # Losses are kept, because the second test draws the same copies in the same order.
        whole, early = (
            structure_test(
                features, labels, structure, estimator=StructuredLogisticRegression(tol=1e-3),
                random_state=number, n_jobs=1, n_permutations=_N_PERMUTATIONS,
                stop_after=stop_after, n_folds=3, keep_in=Path(folder) / "losses.jsonl",
            )
            for stop_after in (None, _STOP_AFTER)
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
    labels = np.resize(np.arange(8), _N_ROWS)
    angle = 2 * np.pi * labels / 8 + rng.normal(scale=0.6, size=_N_ROWS)
    return labels, np.column_stack([np.cos(angle), np.sin(angle), rng.normal(size=_N_ROWS)])


def _heaps(rng: np.random.Generator) -> tuple[Any, Any]:
    labels = np.resize(np.arange(9), _N_ROWS)
    heaps, within = rng.normal(scale=1.5, size=(3, 3)), rng.normal(scale=0.7, size=(9, 3))
    noise = rng.normal(size=(_N_ROWS, 3))
    return labels, heaps[labels // 3] + within[labels] + noise


def _months_run(data: Path, size: int, trial: int) -> Result:
    """Test the circle of the months, and leave out each of its three partitions."""
    train = draw(data, "month", n_train=size, n_validation=1, n_test=1, trial=trial).train
    model = make_pipeline(StandardScaler(), StructuredLogisticRegression(tol=1e-3))
    structure = circular(MONTHS, width=3, singleton_weight=0.3)
    found = structure_test(
        train.features, train.labels, structure, estimator=model, random_state=trial, n_jobs=1,
        n_permutations=_N_PERMUTATIONS, stop_after=None,
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


def _null(runs: list[Finished]) -> list[str]:
    return [
        "## Structures that mean nothing",
        (
            "Every run draws 100 rows whose classes lie on a circle (8 classes, three features), "
            "or in three clusters of three (9 classes), and tests a random member of the "
            "structure's orbit: circular of width 2, or a hierarchy of three blocks, with the "
            "classes in random order. `StructuredLogisticRegression`, 3 folds, 99 copies. The "
            "circle has 2,520 different copies, the hierarchy 280, which are listed before 99 are "
            "drawn. Early stopping follows Besag and Clifford, at 10 copies that are as good. "
            "The allowed standard error is sqrt(a (1 - a) / runs)."
        ),
        table(
            ["structure", "runs", "p at most", "with early stopping", "without", "allowed"],
            [row for name in _NAMES for row in _level_rows(name, _of_structure(runs, name))],
            n_left=1,
        ),
        table(
            [
                "structure",
                "mean p",
                "Kolmogorov-Smirnov distance",
                "p of it",
                "copies trained, early stopping",
            ],
            [
                _uniformity_row(f"{_NAMES[name]}, {which}", part)
                for name in _NAMES
                for which, part in _looks(_of_structure(runs, name)).items()
            ],
        ),
        _HISTORY,
        _null_finding(runs),
    ]


def _level_rows(name: str, runs: list[Finished]) -> list[list[str]]:
    rows = []
    for level in _LEVELS:
        error = np.sqrt(level * (1 - level) / len(runs))
        shares = [_share(runs, key, level) for key in ("p_early", "p")]
        cells = [f"{share:.3f}" for share in shares]
        allowed = f"{level + 2 * error:.3f} = {level:g} + 2 * {error:.4f}"
        rows.append([_NAMES[name], str(len(runs)), f"{level:g}", *cells, allowed])
    return rows


def _looks(runs: list[Finished]) -> dict[str, list[Finished]]:
    """Return the runs of the first look, the later runs, and all runs, if there are any."""
    later = [run for run in runs if run.settings["run"] >= _FIRST_LOOK]
    first = [run for run in runs if run.settings["run"] < _FIRST_LOOK]
    looks = {"first look": first, "later runs": later, "all": runs}
    return {f"{which} ({len(part)})": part for which, part in looks.items() if part}


def _uniformity_row(name: str, runs: list[Finished]) -> list[str]:
    found = kstest(_tie_randomised(runs), "uniform")
    drawn = np.mean([run.result["n_drawn_early"] for run in runs])
    mean = f"{np.mean([run.result['p'] for run in runs]):.3f}"
    return [
        name,
        mean,
        f"{found.statistic:.3f}",
        f"{found.pvalue:.2f}",
        f"{drawn:.0f} of 99",
    ]


def _tie_randomised(runs: list[Finished]) -> list[float]:
    """Return p-values with ties broken at random."""
    values = []
    for run in runs:
        found = run.result
        n_tied = found["n_as_good"] - found["n_lower"]
        chance = np.random.default_rng(run.settings["run"]).uniform()
        values.append((found["n_lower"] + chance * (1 + n_tied)) / (1 + found["n_drawn"]))
    return values


def _null_finding(runs: list[Finished]) -> str:
    within = [
        _share(runs, "p_early", level) <= level + 2 * np.sqrt(level * (1 - level) / len(runs))
        for level in _LEVELS
    ]
    uniform = kstest(_tie_randomised(runs), "uniform").pvalue
    return (
        f"With early stopping P(p ≤ a) is below a + 2 standard errors at {sum(within)} of the "
        f"{len(_LEVELS)} levels over all {len(runs)} runs; without it the tie-randomised p-values "
        f"{'do not differ clearly from' if uniform > 0.05 else 'differ from'} uniform ones "
        f"(Kolmogorov-Smirnov, p = {uniform:.2f})."
    )


def _months(runs: list[Finished]) -> list[str]:
    sizes = sorted({run.settings["size"] for run in runs})
    return [
        "## The months of California's weather",
        (
            "Rain and two temperatures of a day; a standardised linear model "
            "(`StructuredLogisticRegression`), circular of width 3 with singleton weight 0.3, "
            "5 folds, 99 copies without early stopping, so that p is at least 0.01. Every trial "
            "draws its own rows. Log loss is in nats per row; the effect is the mean loss of the "
            "copies minus the loss of the structure; ± is the standard error over trials."
        ),
        _PILOT,
        table(_POWER_COLUMNS, [_power_row(size, _of(runs, size=size)) for size in sizes]),
        *(_power_finding(size, _of(runs, size=size)) for size in sizes),
        (
            "The effect of leaving out a partition (log loss with the partition minus log loss "
            "without it; below 0 the partition helps), and of leaving out all three:"
        ),
        table(
            ["rows", "quarters from January", "from November", "from December", "all three"],
            [_left_out_row(size, _of(runs, size=size)) for size in sizes],
        ),
    ]


def _power_row(size: int, runs: list[Finished]) -> list[str]:
    effect = _mean(run.result["effect"][0] for run in runs)
    none = _mean(run.result["against_none"][0] for run in runs)
    return [
        f"{size:,}",
        str(len(runs)),
        *(f"{_share(runs, 'p', level):.0%}" for level in (0.05, 0.01)),
        with_error(effect),
        interval(effect),
        f"{signed(none)}, {interval(none)}",
        f"{_share(runs, 'p_against_none', 0.05):.0%}",
    ]


def _power_finding(size: int, runs: list[Finished]) -> str:
    none = _mean(run.result["against_none"][0] for run in runs)
    changes = "raises" if none.is_higher else "does not clearly change"
    return (
        f"With {size:,} rows the test recognises the circle at the level 0.05 in "
        f"{_share(runs, 'p', 0.05):.0%} of {len(runs)} trials; over the trials the structure "
        f"{'lowers' if none.is_lower else changes} the log loss of a model without one "
        f"({signed(none)})."
    )


def _left_out_row(size: int, runs: list[Finished]) -> list[str]:
    by_part = zip(*(run.result["left_out"] for run in runs), strict=True)
    return [f"{size:,}", *(signed(_mean(values)) for values in by_part)]


def _of_structure(runs: list[Finished], name: str) -> list[Finished]:
    return runs if name == "both" else _of(runs, structure=name)


def _of(runs: list[Finished], **settings: Any) -> list[Finished]:
    return [run for run in runs if settings.items() <= run.settings.items()]


def _share(runs: list[Finished], key: str, level: float) -> float:
    # 5 / 100 is a p-value of 0.05, however it was rounded.
    return float(np.mean([run.result[key] <= level + 1e-12 for run in runs]))


def _mean(values: Any) -> Mean:
    return mean_of(dict(enumerate(values)))
