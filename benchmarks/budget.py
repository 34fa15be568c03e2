"""How long does a comparison take? A small and a large table, as a user types the command.

``python -m benchmarks.budget`` makes the tables, runs ``structent compare`` in a process of its
own, and keeps time and memory in ``budget.jsonl``. ``--tables small`` runs one of them. The command
runs once before, on a part of the rows, so that compiled code is in Numba's cache.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.lines import Line, keep, kept, table_head, table_row, when_and_where

TITLE = "How long a comparison takes: structent compare with its default settings"
KEPT = Path(__file__).parent / "budget.jsonl"
MISSES = """Why a goal is missed: this Xeon is less than half as fast as the EPYC. Three of its ten
seconds are imports, most of them scikit-learn's; two are scikit-learn's own trees, which are shown
for comparison. Tried: tables encoded once per penalty, other switch intervals of threads (no gain),
one search of C without refitting estimators (kept)."""


class Table(NamedTuple):
    """A table, the question about it, and what the command may take."""

    name: str
    rows: Callable[[], pl.DataFrame]
    options: tuple[str, ...]
    most_seconds: float
    least_splits: int


def run(names: list[str]) -> None:
    """Run the command on each table once, and keep what it took."""
    for name in names:
        table = TABLES[name]
        with tempfile.TemporaryDirectory() as folder:
            rows = table.rows()
            rows.sample(1000, seed=0).write_parquet(Path(folder) / "part.parquet")
            rows.write_parquet(Path(folder) / "all.parquet")
            _compared("part.parquet", table, folder)
            start = time.perf_counter()
            found = _compared("all.parquet", table, folder)
            seconds = time.perf_counter() - start
        keep(
            KEPT,
            {
                "table": name,
                "model": found["model"],
                "seconds": round(seconds, 2),
                "megabytes": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
                "rows": found["rows"],
                "splits": found["splits"],
                "finding": found["verdict"]["finding"],
            },
        )


def _compared(file: str, table: Table, folder: str) -> Any:
    structent = Path(sys.executable).parent / "structent"
    output = ("--report", "report.html", "--save", "model.structent", "--json")
    result = subprocess.run(
        [structent, "compare", file, *table.options, *output],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


def page() -> list[str]:
    """Return the last run of each table on each machine, as Markdown."""
    last = {(line["table"], line["machine"]): line for line in kept(KEPT)}
    head = ("table", "processor", "model", "time (at most)", "memory (at most)", "rows", "splits",
            "finding")  # fmt: skip
    text = ["", *table_head(*head)]
    text += [_row(TABLES[name], line) for (name, _), line in sorted(last.items())]
    return [when_and_where(list(last.values())), *text, "", MISSES]


def _row(table: Table, line: Line) -> str:
    seconds, most = line["seconds"], table.most_seconds
    missed = "" if seconds <= most else ": missed"
    return table_row(
        table.name, line["machine"], line["model"], f"{seconds:,.1f} s ({most:,.0f} s{missed})",
        f"{line['megabytes'] / 1024:.2f} GB (4 GB)", f"{line['rows']:,}",
        f"{line['splits']} (at least {table.least_splits})", line["finding"],
    )  # fmt: skip


def _large() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n_rows, n_features, n_classes = 100_000, 20, 50
    species = rng.integers(n_classes, size=n_rows)
    genus = species // 5
    centres = rng.normal(size=(10, n_features))[genus]
    centres += 0.4 * rng.normal(size=(n_classes, n_features))[species]
    features = centres + 1.5 * rng.normal(size=(n_rows, n_features))
    columns = _columns(features)
    columns["species"] = [f"s{code:02d}" for code in species]
    columns["genus"] = [f"g{code}" for code in genus]
    return pl.DataFrame(columns)


def _small() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    month = rng.integers(12, size=1000)
    features = rng.normal(size=(1000, 4))
    features[:, 0] += 1.5 * np.cos(2 * np.pi * month / 12)
    features[:, 1] += 1.5 * np.sin(2 * np.pi * month / 12)
    return pl.DataFrame({**_columns(features), "month": month + 1})


def _columns(features: np.ndarray) -> dict[str, Any]:
    return {f"f{j}": features[:, j].astype(np.float32) for j in range(features.shape[1])}


TABLES = {
    "small": Table(
        "1,000 rows x 4 columns x 12 classes", _small,
        ("--target", "month", "--structure", "circular:width=3"), 5, 20,
    ),
    "large": Table(
        "100,000 rows x 20 columns x 50 classes", _large,
        ("--target", "species", "--structure", "hierarchy:columns=genus"), 900, 6,
    ),
}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    run(parser.parse_args().tables)
    print("\n".join(page()))
