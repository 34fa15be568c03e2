"""The tables of docs/reliability.md, which attacks on the package write."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
END = "<!-- end -->"


def table(
    what: str, found: Iterable[tuple[str, str]], shown: Mapping[str, str], worst: Sequence[str]
) -> list[str]:
    """Return a table in Markdown, with a line for each group of tries and one for all.

    Parameters
    ----------
    what
        What the groups are.
    found
        The group of each try, and what came of it.
    shown
        The title of the column of each outcome that is no failure.
    worst
        The outcomes that are failures, the worst first.
    """
    found = list(found)
    titles = (what, "tries", *shown.values(), "failures", "the worst of them")
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for group in (*dict.fromkeys(group for group, _ in found), "all"):
        times = Counter(outcome for own, outcome in found if group in (own, "all"))
        failures = [kind for kind in worst if times[kind]]
        n_failures = sum(times[kind] for kind in failures)
        numbers = (times.total(), *(times[outcome] for outcome in shown), n_failures)
        cells = (group, *(f"{number:,}" for number in numbers), *failures[:1])
        lines.append(f"| {' | '.join(cells)} |" if failures else f"| {' | '.join(cells)} | none |")
    return lines


def record(about: str, lines: Sequence[str], seed: int, packages: Sequence[str]) -> None:
    """Put a table into the page, after the mark of what it is about, with the day and versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    day = datetime.now(UTC).date().isoformat()
    python = platform.python_version()
    measured = f"Measured on {day}, seed {seed}, with Python {python}, {versions}."
    text, mark = PAGE.read_text(), f"<!-- {about} -->"
    start = text.index(mark)
    before, after = text[:start], text[text.index(END, start) :]
    PAGE.write_text(before + "\n".join([mark, "", *lines, "", measured, "", after]))
