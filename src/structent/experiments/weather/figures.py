"""Lines with standard errors, as the figures of both weather experiments draw them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes

from structent.experiments.paired import Mean


class Look(NamedTuple):
    """How a line looks: its name, its colour and marker; a control is dashed and hollow."""

    name: str
    colour: str
    marker: str
    is_control: bool


@contextmanager
def page_style() -> Iterator[None]:
    """Draw by matplotlib's own settings, so that a user's style does not change the page."""
    with style.context(["default", {"font.size": 9}]):
        yield


def picture(name: str, shows: str, caption: str) -> list[str]:
    """Return a figure as the page has it: the file, what it shows for who cannot see it, a caption.

    >>> picture("losses", "Log loss by size", "Bars are standard errors.")
    ['![Log loss by size](losses.svg)', 'Bars are standard errors.']
    """
    return [f"![{shows}]({name}.svg)", caption]


def draw_line(ax: Axes, x: Sequence[float], means: Sequence[Mean | None], look: Look) -> None:
    """Draw means, with bars where they have a standard error; nothing where nothing was run."""
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


def reach(means: Sequence[Mean | None]) -> list[float]:
    """Return the ends of the bars of standard error."""
    run = [mean for mean in means if mean is not None]
    return [m.value + sign * float(np.nan_to_num(m.error)) for m in run for sign in (-1, 1)]
