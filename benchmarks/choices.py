"""Why our defaults are what they are: the defaults and single changes of them, on real tables.

``python -m benchmarks.choices`` (in the environment of ``make peers``) runs what is missing in
``choices.jsonl``: one line for each table, split and change. ``python -m benchmarks choices``
prints the table, ``--record`` writes RESULTS.md. The splits differ from those in ``defaults``, so
that our defaults are not evaluated on rows that chose them.
"""

import argparse
from itertools import product
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.lines import keep, kept, table_head, table_row, when_and_where
from benchmarks.timing import limit_threads

TITLE = "Why our defaults are what they are: log loss with one thing changed"
KEPT = Path(__file__).parent / "choices.jsonl"
SPLITS = (100, 101)
DEFAULT = "default"
GROUPS = "whole groups held back"  # only for tables with groups
CHANGES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "splits on the whole gradient": {"split_search": "full"},
    "all rows for each tree": {"subsample": 1.0},
    "60 % of the rows": {"subsample": 0.6},
    "60 % of the columns": {"colsample": 0.6},
    "255 bins": {"max_bins": 255},
    "rate 0.1": {"learning_rate": 0.1},
    "lambda 3": {"reg_lambda": 3.0},
    "no refit": {"refit": False},
    "depth 6": {"max_depth": 6},
    GROUPS: {},
}
SMALL = (
    "led7digit", "movement_libras", "heating", "vowel", "forbes", "segment", "aids",
    "males, occupation", "cars", "satimage", "marketing", "JFK, hour", "penbased", "tuna",
    "New York, month",
)  # fmt: skip


def run(names: list[str], data: Path) -> None:
    """Run what has no line yet."""
    from structent import StructuredBoostingClassifier  # noqa: PLC0415  after the threads are set

    done = {(line["table"], line["split"], line["change"]) for line in kept(KEPT)}
    for name in names:
        table = tables.load(name, data)
        for split, (change, settings) in product(SPLITS, CHANGES.items()):
            if (name, split, change) in done or (change == GROUPS and table.groups is None):
                continue
            train, test = tables.split(table, split)
            model = StructuredBoostingClassifier(random_state=split, n_jobs=1, **settings)
            groups = table.groups[train] if change == GROUPS else None
            model.fit(table.features.iloc[train], table.labels[train], groups=groups)
            proba = model.predict_log_proba(table.features.iloc[test])
            columns = np.searchsorted(model.classes_, table.labels[test])
            loss = float(-proba[np.arange(len(test)), columns].mean())
            line = {"table": name, "split": split, "change": change, "log_loss": loss}
            keep(KEPT, line | {"rounds": model.best_iteration_ + 1, "depth": model.max_depth_})


def page() -> list[str]:
    """Return how much each change raises the log loss, table by table, as Markdown."""
    lines = kept(KEPT)
    if not lines:
        return ["Nothing was measured yet."]
    losses = {(line["table"], line["split"], line["change"]): line["log_loss"] for line in lines}
    names = list(dict.fromkeys(line["table"] for line in lines))
    text = [when_and_where(lines), "", "Log loss against the default, in percent; + is worse.", ""]
    text += table_head("change", *names, "mean", "tables that are better")
    for change in CHANGES:
        if change == DEFAULT:
            continue
        of_tables = [_percent(losses, name, change) for name in names]
        known = [percent for percent in of_tables if percent is not None]
        cells = ["-" if percent is None else f"{percent:+.1f}" for percent in of_tables]
        if known:
            n_better = f"{sum(percent < 0 for percent in known)} of {len(known)}"
            text.append(table_row(change, *cells, f"{mean(known):+.1f}", n_better))
    return text


def _percent(losses: dict[tuple[str, int, str], float], name: str, change: str) -> float | None:
    both = [
        (losses[name, split, change], losses[name, split, DEFAULT])
        for split in SPLITS
        if (name, split, change) in losses and (name, split, DEFAULT) in losses
    ]
    return 100 * (geometric_mean(one / other for one, other in both) - 1) if both else None


if __name__ == "__main__":
    limit_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=tables.TABLES, default=list(SMALL))
    parser.add_argument("--data", type=Path, default=tables.DATA, help="the folder with weather/")
    given = parser.parse_args()
    run(given.tables, given.data)
    print("\n".join(page()))
