"""Run the benchmarks: ``python -m benchmarks [NAME ...]`` prints tables, ``--record`` keeps them.

One thread each; alternatives take turns in one process; medians. Sections that are not run stay in
RESULTS.md as they are, each with its own date.
"""

import os

from benchmarks.timing import limit_threads

limit_threads(1)  # read when NumPy and Numba are first imported
os.environ["KERAS_BACKEND"] = "torch"

import argparse  # noqa: E402
import platform  # noqa: E402
import re  # noqa: E402
from collections.abc import Callable  # noqa: E402
from datetime import UTC, datetime  # noqa: E402
from importlib import import_module  # noqa: E402
from importlib.metadata import version  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks import (  # noqa: E402
    budget,
    choices,
    defaults_page,
    engine_page,
    growth,
    quality,
    verdicts,
)
from benchmarks.lines import commit, machine  # noqa: E402

TIMED = ("structures", "losses", "layers", "jax_losses", "boosting", "linear")
# Measured by scripts of their own, which also say when and where.
BY_LINES: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "budget": (budget.TITLE, budget.page),
    "verdicts": (verdicts.TITLE, verdicts.page),
    "defaults": (defaults_page.TITLE, defaults_page.page),
    "engine": (engine_page.TITLE, engine_page.page),
    "choices": (choices.TITLE, choices.page),
    "growth": (growth.TITLE, growth.page),
    "quality": (quality.TITLE, quality.page),
}
ALL = (*TIMED, *BY_LINES)
VERSIONS = (
    "numpy", "scipy", "numba", "torch", "keras", "jax", "scikit-learn", "xgboost", "lightgbm",
)  # fmt: skip
RESULTS = Path(__file__).parent / "RESULTS.md"
HEADER = """# Benchmark results

Written by `make bench ARGS=--record`, or section by section: `make bench ARGS="linear --record"`.
The machine is shared, so absolute times vary. Ratios come from alternatives that take turns in one
process, on one thread. The goal of a row is in brackets; if it is missed, the section says why.
Goals of rows that had none before 2026-11-19 are the record of the day before plus about a tenth:
they show when something became slower.
"""


def section(name: str) -> tuple[str, str]:
    """Return the title of a section, and its text as Markdown."""
    if name in BY_LINES:
        title, table = BY_LINES[name]
        return title, "\n".join(table())
    module = import_module(f"benchmarks.{name}")
    lines = [_when_and_where(), "", "| case | structent | baseline | ratio |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in module.rows()]
    return module.TITLE, "\n".join([*lines, "", module.MISSES] if module.MISSES else lines)


def record(sections: dict[str, str]) -> None:
    """Write the sections into RESULTS.md, in place of what they were."""
    parts = re.split(r"^## (.*)\n", RESULTS.read_text(), flags=re.MULTILINE)[1:]
    kept = {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
    whole = kept | sections
    text = "\n\n".join(f"## {title}\n\n{content.strip()}" for title, content in whole.items())
    RESULTS.write_text(f"{HEADER}\n{text}\n")


def _when_and_where() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    today, python = datetime.now(UTC), platform.python_version()
    return f"{today:%Y-%m-%d}, commit {commit()}, {machine()}, Python {python}, {versions}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(ALL)}; all if none")
    parser.add_argument("--record", action="store_true", help="write RESULTS.md")
    arguments = parser.parse_args()
    made = dict(section(name) for name in arguments.names or ALL)
    for title, text in made.items():
        print(f"## {title}\n\n{text}\n")
    if arguments.record:
        record(made)
