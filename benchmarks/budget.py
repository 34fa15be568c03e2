"""How long does a large comparison take? 100,000 rows, 20 features and 50 classes, all rows used.

``python -m benchmarks.budget`` makes the table, runs ``structent compare`` as a user would in a
process of its own, and keeps time and memory in ``budget.jsonl``.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TITLE = "A large comparison: 100,000 rows, 20 features, 50 classes, default settings"
KEPT = Path(__file__).parent / "budget.jsonl"
COMMAND = [
    "compare", "big.parquet", "--target", "species", "--structure", "hierarchy:columns=genus",
    "--report", "report.html", "--save", "model.structent", "--json",
]  # fmt: skip


def run() -> None:
    """Run the command once, and keep what it took."""
    with tempfile.TemporaryDirectory() as folder:
        _big_table().write_parquet(Path(folder) / "big.parquet")
        start = time.perf_counter()
        structent = Path(sys.executable).parent / "structent"
        result = subprocess.run(
            [structent, *COMMAND], cwd=folder, capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - start
    found: dict[str, Any] = json.loads(result.stdout)
    line = {
        "model": found["model"],
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "rows": found["rows"],
        "splits": found["splits"],
        "finding": found["verdict"]["finding"],
    }
    with KEPT.open("a") as file:
        file.write(json.dumps(line) + "\n")


def table() -> list[str]:
    """Return what the runs took, as Markdown."""
    limits = "time (at most 15 minutes) | memory (at most 4 GB) | rows used (all) | splits (6)"
    text = ["", f"| model | {limits} | finding |", "|---|---|---|---|---|---|"]
    for line in map(json.loads, KEPT.read_text().splitlines() if KEPT.exists() else []):
        minutes, gigabytes = line["seconds"] / 60, line["megabytes"] / 1024
        text.append(
            f"| {line['model']} | {minutes:.1f} minutes | {gigabytes:.2f} GB "
            f"| {line['rows']:,} | {line['splits']} | {line['finding']} |"
        )
    return text


def _big_table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n_rows, n_features, n_classes = 100_000, 20, 50
    species = rng.integers(n_classes, size=n_rows)
    genus = species // 5
    centres = rng.normal(size=(10, n_features))[genus]
    centres += 0.4 * rng.normal(size=(n_classes, n_features))[species]
    features = centres + 1.5 * rng.normal(size=(n_rows, n_features))
    columns: dict[str, Any] = {
        f"f{j}": features[:, j].astype(np.float32) for j in range(n_features)
    }
    columns["species"] = [f"s{code:02d}" for code in species]
    columns["genus"] = [f"g{code}" for code in genus]
    return pl.DataFrame(columns)


if __name__ == "__main__":
    run()
    print("\n".join(table()))
