"""The parts of pages of results: means over trials, tables, claims, and the files on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t

from paper.experiment import Finished
from structent._files import save_bytes

NOT_RUN = "not run"
_CONFIDENCE = 0.95
_SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "structent"}


class Page(NamedTuple):
    """A page of results.

    Attributes
    ----------
    name
        The name of its file, without a suffix.
    text
        The page in Markdown.
    figures
        Its figures as SVG, by the name of their file without a suffix.
    numbers
        The numbers of its tables as plain JSON values; None if the page has no such file.
    """

    name: str
    text: str
    figures: Mapping[str, bytes] = {}
    numbers: dict[str, Any] | None = None


def write_page(page: Page, folder: Path) -> None:
    """Write a page, its figures and its numbers into a folder."""
    contents = {f"{page.name}.md": page.text.rstrip()}
    if page.numbers is not None:
        contents[f"{page.name}.json"] = json.dumps(page.numbers, indent=1, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in contents.items():
        save_bytes(folder / file, f"{text}\n".encode())
    for stem, figure in page.figures.items():
        save_bytes(folder / f"{stem}.svg", figure)


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


class Mean(NamedTuple):
    """A mean over trials: its value, its standard error (NaN for one trial), how many trials."""

    value: float
    error: float
    n_trials: int

    @property
    def half_width(self) -> float:
        """Half the 95 % interval, by Student's t."""
        return float(self.error * t.ppf(0.5 + _CONFIDENCE / 2, max(self.n_trials - 1, 1)))

    @property
    def is_lower(self) -> bool:
        """Whether the mean is below zero beyond its 95 % interval."""
        return bool(self.value + self.half_width < 0)

    @property
    def is_higher(self) -> bool:
        """Whether the mean is above zero beyond its 95 % interval."""
        return bool(self.value - self.half_width > 0)


def mean_of(by_trial: Mapping[int, float]) -> Mean:
    """Return the mean over trials.

    >>> mean_of({0: 1.0, 1: 2.0, 2: 3.0})
    Mean(value=2.0, error=0.5773502691896258, n_trials=3)
    """
    values = np.array(list(by_trial.values()), dtype=np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Mean(float(values.mean()), float(error), len(values))


def difference_of(by_trial: Mapping[int, float], baseline: Mapping[int, float]) -> Mean:
    """Return the mean of a method minus the baseline, over the trials that both have.

    >>> difference_of({0: 1.0, 1: 2.5}, {0: 2.0, 1: 3.0, 2: 9.0})
    Mean(value=-0.75, error=0.25, n_trials=2)
    """
    shared = sorted(set(by_trial) & set(baseline))
    return mean_of({trial: by_trial[trial] - baseline[trial] for trial in shared})


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_left: int = 1) -> str:
    """Return a Markdown table; the first columns, of words, are left-aligned, the others right.

    >>> print(table(["size", "loss"], [["500", "2.14"]]))
    | size | loss |
    |---|---:|
    | 500 | 2.14 |
    """
    lines = [header, ["---"] * n_left + ["---:"] * (len(header) - n_left), *rows]
    head, rule, *body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([head, rule.replace(" ", ""), *body])


def with_error(mean: Mean, digits: int = 4) -> str:
    """Return a mean with its standard error.

    >>> with_error(Mean(2.14123, 0.00345, 5))
    '2.1412 ± 0.0034'
    >>> with_error(Mean(2.14123, float("nan"), 1))
    '2.1412'
    """
    return f"{mean.value:.{digits}f}{_error(mean, digits)}"


def signed(mean: Mean, digits: int = 4) -> str:
    """Return a difference with its sign and its standard error.

    >>> signed(Mean(-0.0123, 0.003, 5))
    '-0.0123 ± 0.0030'
    """
    return f"{mean.value:+.{digits}f}{_error(mean, digits)}"


def interval(mean: Mean) -> str:
    """Return the 95 % interval of a mean.

    >>> interval(Mean(0.5, 0.1, 5))
    '+0.2224 to +0.7776'
    """
    return f"{mean.value - mean.half_width:+.4f} to {mean.value + mean.half_width:+.4f}"


def loss_cell(mean: Mean | None, n_trials: int) -> str:
    """Return a mean log loss, with its trials if they are fewer than the others have.

    >>> loss_cell(Mean(2.1, 0.01, 3), n_trials=5), loss_cell(None, n_trials=5)
    ('2.1000 ± 0.0100 (3 trials)', 'not run')
    """
    return NOT_RUN if mean is None else with_error(mean) + _fewer(mean, n_trials)


def difference_cell(mean: Mean | None, n_trials: int) -> str:
    """Return a difference, in bold if it is below zero beyond its interval.

    >>> difference_cell(Mean(-0.01, 0.001, 5), n_trials=5)
    '**-0.0100 ± 0.0010**'
    """
    if mean is None:
        return NOT_RUN
    text = f"**{signed(mean)}**" if mean.is_lower else signed(mean)
    return text + _fewer(mean, n_trials)


def in_trials(count: int) -> str:
    """Return how many trials, in words.

    >>> in_trials(1), in_trials(3)
    ('1 trial', '3 trials')
    """
    return f"{count} trial" + "s" * (count != 1)


def as_numbers(mean: Mean | None) -> dict[str, Any] | None:
    """Return a mean as JSON values, in which NaN becomes None; None if there is no mean.

    >>> as_numbers(Mean(2.1, float("nan"), 1))
    {'mean': 2.1, 'error': None, 'trials': 1}
    """
    if mean is None:
        return None
    value, error = (round(x, 6) if math.isfinite(x) else None for x in (mean.value, mean.error))
    return {"mean": value, "error": error, "trials": mean.n_trials}


class Claim(NamedTuple):
    """A claim of the paper, whether our results support it, and the numbers.

    ``holds`` is "yes", "no", "in part", or "not run" if the runs it needs are missing.
    """

    says: str
    holds: str
    numbers: str


def claims_table(claims: list[Claim]) -> str:
    """Return claims as a Markdown table.

    >>> print(claims_table([Claim("water is wet", "yes", "3 of 3 trials")]))
    | the paper says | holds here | the numbers |
    |---|---|---|
    | water is wet | yes | 3 of 3 trials |
    """
    header = ["the paper says", "holds here", "the numbers"]
    return table(header, [list(claim) for claim in claims], n_left=3)


def claims_counted(claims: Sequence[Claim]) -> str:
    """Return how many claims hold.

    >>> claims_counted([Claim("a", "yes", ""), Claim("b", "no", ""), Claim("c", "yes", "")])
    '3 claims: 2 yes, 0 in part, 1 no, 0 not run.'
    """
    kinds = ("yes", "in part", "no", NOT_RUN)
    each = [f"{sum(claim.holds == kind for claim in claims)} {kind}" for kind in kinds]
    return f"{len(claims)} claims: {', '.join(each)}."


class Look(NamedTuple):
    """How a line looks: its name, its colour and marker; a control is dashed and hollow."""

    name: str
    colour: str
    marker: str
    is_control: bool


@contextmanager
def page_style() -> Iterator[None]:
    """Draw with matplotlib's default settings, so that a user's style does not change the page."""
    with style.context(["default", {"font.size": 9}]):
        yield


def picture(name: str, shows: str, caption: str) -> list[str]:
    """Return a figure as a page has it: its file, what it shows in words, and its caption.

    >>> picture("losses", "Log loss by size", "Bars are standard errors.")
    ['![Log loss by size](losses.svg)', 'Bars are standard errors.']
    """
    return [f"![{shows}]({name}.svg)", caption]


def as_svg(figures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Return figures as SVG: text stays text, and the same results give the same bytes."""
    drawn = {}
    for name, figure in figures.items():
        content = BytesIO()
        with mpl.rc_context(_SVG):
            figure.savefig(content, format="svg", metadata={"Date": None})
        drawn[name] = content.getvalue()
    return drawn


def draw_line(ax: Axes, x: Sequence[float], means: Sequence[Mean | None], look: Look) -> None:
    """Draw means, with bars if they have a standard error, and nothing where nothing was run."""
    points = [(at, mean) for at, mean in zip(x, means, strict=True) if mean is not None]
    if not points:
        return
    errors = np.array([mean.error for _, mean in points])
    ax.errorbar(
        [at for at, _ in points],
        [mean.value for _, mean in points],
        None if np.isnan(errors).all() else np.nan_to_num(errors),
        label=look.name,
        color=look.colour,
        marker=look.marker,
        markersize=4.5,
        markerfacecolor="white" if look.is_control else look.colour,
        linestyle="--" if look.is_control else "-",
        linewidth=1.2,
        elinewidth=1,
        capsize=2,
    )


def _schedules(finished: Sequence[Finished]) -> list[str]:
    """Return a paragraph for every schedule, with its sizes; not all runs have a schedule."""
    sizes: dict[str, set[int]] = {}
    for run in [run for run in finished if "schedule" in run.settings]:
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


def _error(mean: Mean, digits: int) -> str:
    return "" if math.isnan(mean.error) else f" ± {mean.error:.{digits}f}"


def _fewer(mean: Mean, n_trials: int) -> str:
    return f" ({in_trials(mean.n_trials)})" if mean.n_trials < n_trials else ""
