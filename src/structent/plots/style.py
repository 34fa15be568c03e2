"""What all figures share: their colours, how names are written, and how much text has room."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba

if TYPE_CHECKING:
    from structent.studies.comparison import ArmName

# Okabe and Ito's palette for colour-blind readers, without the colours that are hard to see on
# white; purple is a little darker. All are legible on light and on dark pages.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#C06A9A"
GREY = "#808080"

OF_LEVELS = (BLUE, VERMILLION, GREEN, PURPLE, GREY)
OF_ARM: dict[ArmName, str] = {"none": GREY, "structure": BLUE, "scrambled": VERMILLION}

# From transparent, so that "nothing" is the background, whether that is light or dark.
SHADES = LinearSegmentedColormap.from_list(
    "structent_shades", [to_rgba("#2F86D6", 0.0), to_rgba("#2F86D6", 1.0)]
).with_extremes(bad=to_rgba(GREY, 0.25))


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return the given axes, or the axes of a new figure, which a notebook then shows."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # noqa: PLC0415  it looks for a screen

    return pyplot.figure(figsize=size, layout="constrained").add_subplot()


def ink() -> str:
    """Return the colour of text in matplotlib's settings, so that a style can change it."""
    return str(mpl.rcParams["text.color"])


def level_colour(place: int) -> str:
    """Return the colour of a level, by its place among the levels."""
    return OF_LEVELS[place % len(OF_LEVELS)]


def shown(name: Any, longest: int = 30) -> str:
    r"""Return a name as one short line that matplotlib does not take for mathematics.

    Examples
    --------
    >>> shown("a\nb"), shown("cost in $"), shown("incomprehensibilities", longest=8)
    ('a b', 'cost in \\$', 'incompr…')
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    return line.replace("$", r"\$")


def counted(n: int, thing: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "class"), counted(2, "class"), counted(3000, "edge")
    ('1 class', '2 classes', '3,000 edges')
    """
    plural = "es" if thing.endswith("s") else "s"
    return f"{n:,} {thing}{plural if n != 1 else ''}"


def room(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of axes, in points."""
    box = ax.get_window_extent()
    points = 72.0 / ax.figure.dpi
    return box.width * points, box.height * points


def stride(n_names: int, length: float, line: float) -> int:
    """Return k such that every k-th name fits along a length, given the height of a line.

    Examples
    --------
    >>> stride(10, 100, 8), stride(30, 100, 8)
    (1, 3)
    """
    return max(1, ceil(n_names * line / max(length, line)))


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is, in points."""
    return 0.62 * size * len(text)  # the mean width of a letter, as a share of the font size
