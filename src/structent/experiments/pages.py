"""The pages of results: what was run, where and when; tables, figures and claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from structent._files import save_bytes
from structent.experiments.cifar100 import pages as cifar100
from structent.experiments.kept import Finished
from structent.experiments.weather import counties_page, months_page

# Text stays text, and the same results give the same file.
_SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "structent"}


class Page(NamedTuple):
    """What is made of the finished runs of an experiment."""

    text: Callable[[list[Finished], list[str]], str]
    figures: Callable[[list[Finished]], dict[str, Figure]]
    summary: Callable[[list[Finished]], dict[str, Any]]


def page_of(name: str) -> Page:
    """Return the page of an experiment by its name: ``months``, ``cifar100-1A``."""
    if name.startswith("cifar100-"):
        which = name.removeprefix("cifar100-")
        return Page(
            partial(cifar100.page, which),
            partial(cifar100.figures, which),
            partial(cifar100.summary, which),
        )
    module = {"months": months_page, "counties": counties_page}[name]
    return Page(module.page, module.figures, module.summary)


def about(finished: Sequence[Finished], n_runs: int, command: str) -> list[str]:
    """Return the paragraphs that say what was run, how, where and when."""
    if not finished:
        return [f"Command: `{command}`. Nothing has been run yet."]
    first, last = (which(run.date for run in finished) for which in (min, max))
    when = f"on {first}" if first == last else f"between {first} and {last}"
    hours = sum(run.seconds for run in finished) / 3600
    done = (
        f"Command: `{command}`. {len(finished):,} of {n_runs:,} runs are finished; they took "
        f"{hours:.1f} hours in all, {when}."
    )
    return [
        done,
        *[f"Machine: {machine}." for machine in sorted({run.machine for run in finished})],
        *_schedules(finished),
    ]


def write_page(
    name: str, finished: list[Finished], paragraphs: list[str], folder: Path
) -> tuple[str, dict[str, Any]]:
    """Write the page, its figures and its numbers into a folder; return page and numbers."""
    page = page_of(name)
    text = page.text(finished, paragraphs)
    summary = {"about": paragraphs, **page.summary(finished)}
    numbers = json.dumps(summary, indent=1, allow_nan=False)
    drawn = {stem: _svg(figure) for stem, figure in page.figures(finished).items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_bytes(folder / f"{name}.md", f"{text.rstrip()}\n".encode())
    save_bytes(folder / f"{name}.json", f"{numbers}\n".encode())
    for stem, content in drawn.items():
        save_bytes(folder / f"{stem}.svg", content)
    return text, summary


def _svg(figure: Figure) -> bytes:
    content = BytesIO()
    with mpl.rc_context(_SVG):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


def _schedules(finished: Sequence[Finished]) -> list[str]:
    """Return a paragraph for every schedule, with the sizes that had it."""
    sizes: dict[str, set[int]] = {}
    for run in finished:
        schedule = ", ".join(
            f"{name.replace('_', ' ')} {value}"
            for name, value in run.settings["schedule"].items()
            if name != "size"
        )
        preset = run.settings["preset"]
        sizes.setdefault(f'preset "{preset}": {schedule}', set()).add(run.settings["size"])
    return [
        f"Training set sizes {', '.join(f'{size:,}' for size in sorted(had))}, {schedule}."
        for schedule, had in sizes.items()
    ]
