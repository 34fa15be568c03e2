"""Is the verdict of a comparison calibrated, and how often does it find a true structure?

``python -m benchmarks.verdicts`` runs what is missing in ``verdicts.jsonl``: comparisons with
classes on a circle, or in an order, and a structure whose classes are scrambled, so that it means
nothing. In every design at most 5 % of the runs, plus two standard errors, may say "use it". Other
designs use the true structure, to show how often "use it" is found. ``--designs 3 7`` runs some of
the designs, ``--runs 50`` fewer runs of each. Other tests of the same splits are shown, too.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from structent import RandomPartition, circular, ordinal
from structent.studies import Comparison, compare
from structent.studies.differences import Difference

TITLE = "The verdict of a comparison: how often it says that the structure is to be used"
KEPT = Path(__file__).parent / "verdicts.jsonl"


class Design(NamedTuple):
    """A way to draw rows, and what is asked about them."""

    model: str
    n_rows: int
    n_classes: int
    shape: str = "circle"
    noise: float = 0.5
    is_true: bool = False

    @property
    def name(self) -> str:
        kind = "true" if self.is_true else "scrambled"
        return f"{kind} {self.shape}, {self.n_classes} classes, {self.n_rows:,} rows, {self.model}"

    @property
    def structure(self) -> RandomPartition:
        if self.shape == "order":
            return ordinal(range(self.n_classes))
        return circular(
            range(self.n_classes), width=max(2, self.n_classes // 4), singleton_weight=0.3
        )

    def rows(self, rng: np.random.Generator) -> tuple[Any, Any]:
        labels = rng.integers(self.n_classes, size=self.n_rows)
        if self.shape == "order":
            place = labels + self.n_classes * self.noise * rng.normal(size=self.n_rows)
            return np.column_stack([place, rng.normal(size=self.n_rows)]), labels
        angle = 2 * np.pi * labels / self.n_classes + rng.normal(scale=self.noise, size=self.n_rows)
        return np.column_stack([np.cos(angle), np.sin(angle)]), labels


DESIGNS = (
    Design("boosting", 400, 16, is_true=True),
    Design("boosting", 400, 16),
    Design("linear", 400, 16),
    Design("boosting", 200, 6),
    Design("linear", 200, 6),
    Design("boosting", 500, 3, "order"),
    Design("linear", 500, 3, "order"),
    Design("boosting", 1000, 12, noise=1.0),
    Design("linear", 1000, 12, noise=1.0),
    Design("linear", 1000, 60),
    Design("boosting", 2000, 60),
    Design("linear", 5000, 12),
    Design("boosting", 5000, 8, "order"),
    Design("boosting", 20_000, 12),
)
MOST_RUNS = {DESIGNS[0]: 50, DESIGNS[10]: 50, DESIGNS[13]: 20}  # designs with slow fits


def run(n_runs: int, designs: list[int]) -> None:
    """Run what is missing, the first runs of all designs first."""
    done = {(line["design"], line["run"]) for line in _lines()}
    for number in range(n_runs):
        for design in (DESIGNS[place] for place in designs):
            if number < MOST_RUNS.get(design, n_runs) and (design.name, number) not in done:
                with KEPT.open("a") as file:
                    file.write(json.dumps(_found(design, number)) + "\n")


def page() -> list[str]:
    """Return how often each finding was made, and the results of other tests, as Markdown."""
    tests = list(_TESTS)
    text = [
        f"{len(_lines()):,} comparisons, run in November 2026 on AMD EPYC and Intel Xeon.",
        "",
        f"| design | runs | use it | do not use it | undecided | {' | '.join(tests)} |",
        "|---|---|---|---|---|" + "---|" * len(tests),
    ]
    for design in DESIGNS:
        lines = [line for line in _lines() if line["design"] == design.name]
        if not lines:
            continue
        n = len(lines)
        shares = [
            sum(line["finding"] == finding for line in lines) / n
            for finding in ("use it", "do not use it", "undecided")
        ]
        limit = "" if design.is_true else f" (at most {0.05 + 2 * (0.05 * 0.95 / n) ** 0.5:.1%})"
        cells = [design.name, str(n), f"{shares[0]:.1%}{limit}", f"{shares[1]:.1%}"]
        cells += [f"{shares[2]:.1%}"]
        cells += [f"{sum(test in line['positive'] for line in lines) / n:.1%}" for test in tests]
        text.append("| " + " | ".join(cells) + " |")
    return text


def _found(design: Design, number: int) -> dict[str, Any]:
    rng = np.random.default_rng((design.n_rows, design.n_classes, number))
    features, labels = design.rows(rng)
    structure = design.structure if design.is_true else _scrambled(design.structure, rng)
    found = compare(features, labels, structure, model=design.model, random_state=number, n_jobs=1)
    return {
        "design": design.name,
        "run": number,
        "finding": found.verdict.finding,
        "reason": found.verdict.reason,
        "against_none": _interval(found.against_none),
        "against_scrambled": _interval(found.against_scrambled),
        "positive": [name for name, test in _TESTS.items() if test(found)],
        "seconds": round(found.seconds, 1),
    }


def _interval(difference: Difference) -> dict[str, float]:
    """Return the mean and the interval, without the differences of the single splits."""
    return {name: round(getattr(difference, name), 6) for name in ("mean", "low", "high")}


def _scrambled(structure: RandomPartition, rng: np.random.Generator) -> RandomPartition:
    """Return a scrambled structure that differs from the structure itself."""
    while True:
        scrambled = structure.scramble(rng)
        if set(scrambled.partitions) != set(structure.partitions):
            return scrambled


def _one_cross_validation(found: Comparison) -> bool:
    """Whether the corrected t of the first repeat alone is below 0."""
    n_folds = found.plan.n_folds
    first = found.against_none.per_split[:n_folds]
    error = np.sqrt((1 / n_folds + 1 / (n_folds - 1)) * first.var(ddof=1))
    return bool(first.mean() + t.ppf(0.975, n_folds - 1) * error < 0)


def _one_sided(found: Comparison) -> bool:
    """Whether the corrected t of all splits is below 0 at a one-sided level of 5 %."""
    difference = found.against_none
    limit = t.ppf(0.95, len(difference.per_split) - 1)
    return bool(difference.mean + limit * difference.standard_error < 0)


def _per_row(found: Comparison, inflation: float) -> bool:
    """Whether the mean difference of the rows of the first repeat is below 0 by a z-test."""
    rows = np.arange(len(found.labels))
    losses = {arm: -np.log(proba[rows, found.labels]) for arm, proba in found.proba.items()}
    differences = losses["structure"] - losses["none"]
    error = inflation * differences.std(ddof=1) / np.sqrt(len(differences))
    return bool(differences.mean() + norm.ppf(0.975) * error < 0)


# These compare only with no structure; the verdict requires more.
_TESTS: dict[str, Callable[[Comparison], bool]] = {
    "corrected t, all splits": lambda found: found.against_none.is_lower,
    "one-sided": _one_sided,
    "corrected t, one cross-validation": _one_cross_validation,
    "z of rows": lambda found: _per_row(found, 1.0),
    "z of rows, error times 1.3": lambda found: _per_row(found, 1.3),
}


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--designs", type=int, nargs="*", default=list(range(len(DESIGNS))))
    given = parser.parse_args()
    run(given.runs, given.designs)
    print("\n".join(page()))
