"""Is the verdict of a comparison calibrated? Given structures that mean nothing, it must not help.

``python -m benchmarks.verdicts`` runs what is missing in ``verdicts.jsonl``. Each run draws rows of
a circle of sixteen classes, and asks about a circular structure whose classes are scrambled. At
most 5 % of the runs, plus two standard errors, may say that it helps. In every fourth run the true
structure is asked about, too, to show how often the verdict can be won.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from structent import RandomPartition, StructuredBoostingClassifier, circular
from structent.studies import compare

TITLE = "The verdict of a comparison: how often it says that the structure helps (engine: XGBoost)"
KEPT = Path(__file__).parent / "verdicts.jsonl"
CIRCLE = circular(range(16), width=4, singleton_weight=0.3)
N_ROWS, NOISE = 400, 0.5


def run(n_runs: int) -> None:
    """Run what is missing."""
    done = {(line["kind"], line["run"]) for line in _lines()}
    for number in range(n_runs):
        for kind in ("scrambled", "true")[: 2 if number % 4 == 0 else 1]:
            if (kind, number) not in done:
                with KEPT.open("a") as file:
                    file.write(json.dumps(_verdict(kind, number)) + "\n")


def table() -> list[str]:
    """Return how often each verdict was given, as Markdown."""
    text = [
        "",
        "| structure | runs | helps | regularisation | no evidence |",
        "|---|---|---|---|---|",
    ]
    for kind, limit in (("scrambled", " (at most 5 % + 2 standard errors)"), ("true", "")):
        findings = [line["finding"] for line in _lines() if line["kind"] == kind]
        if findings:
            shares = [
                f"{findings.count(finding) / len(findings):.1%}"
                for finding in ("helps", "regularisation", "no evidence")
            ]
            error = (0.05 * 0.95 / len(findings)) ** 0.5
            allowed = f"{limit}: {0.05 + 2 * error:.1%}" if limit else ""
            cells = [kind, str(len(findings)), shares[0] + allowed, *shares[1:]]
            text.append("| " + " | ".join(cells) + " |")
    return text


def _verdict(kind: str, number: int) -> dict[str, Any]:
    rng = np.random.default_rng(number)
    labels = rng.integers(16, size=N_ROWS)
    angle = 2 * np.pi * labels / 16 + rng.normal(scale=NOISE, size=N_ROWS)
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    structure = CIRCLE if kind == "true" else _scrambled(rng)
    found = compare(
        features, labels, structure, random_state=number, n_jobs=1, n_copies=1,
        estimator=StructuredBoostingClassifier(
            engine="xgboost", n_estimators=60, learning_rate=0.3, max_depth=2, subsample=1.0,
            colsample=1.0, split_search="full", early_stopping_rounds=10, refit=False,
            random_state=number, n_jobs=1,
        ),
    )  # fmt: skip
    return {
        "kind": kind,
        "run": number,
        "finding": found.verdict.finding,
        "against_none": found.against_none.mean,
        "against_scrambled": found.against_scrambled.mean,
    }


def _scrambled(rng: np.random.Generator) -> RandomPartition:
    """Return a scrambled circle that is not by chance the circle itself."""
    while True:
        scrambled = CIRCLE.scramble(rng)
        if set(scrambled.partitions) != set(CIRCLE.partitions):
            return scrambled


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    run(parser.parse_args().runs)
    print("\n".join(table()))
