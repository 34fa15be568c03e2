"""The colours of the figures: told apart by colour-blind readers, and legible on light and dark."""

from math import ceil
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba

# Okabe and Ito's palette, without the colours that vanish on white; purple is a little darker.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#C06A9A"
GREY = "#808080"

OF_LEVELS = (BLUE, VERMILLION, GREEN, PURPLE, GREY)
OF_ARM = {"none": GREY, "structure": BLUE, "scrambled": VERMILLION}

# From transparent, so that "nothing" is the background, whether that is light or dark.
SHADES = LinearSegmentedColormap.from_list(
    "structent_shades", [to_rgba("#2F86D6", 0.0), to_rgba("#2F86D6", 1.0)]
).with_extremes(bad=to_rgba(GREY, 0.25))


def ink() -> str:
    """Return the colour of text: that of matplotlib's settings, so that a style can change it."""
    return str(mpl.rcParams["text.color"])


def level_colour(place: int) -> str:
    """Return the colour of a level, by its place among the levels."""
    return OF_LEVELS[place % len(OF_LEVELS)]


LONGEST = 30


def shown(name: Any, longest: int = LONGEST) -> str:
    r"""Return a name as one short line, which matplotlib must not take for mathematics.

    Examples
    --------
    >>> shown("a\nb"), shown("cost in $"), shown("incomprehensibilities", longest=8)
    ('a b', 'cost in \\$', 'incompr…')
    """
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    if len(line) > longest:
        line = line[: longest - 1] + "…"
    return line.replace("$", r"\$")


# A letter is about this wide, as a share of the font's size.
LETTER = 0.62


def room(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of axes, in points."""
    box = ax.get_window_extent()
    points = 72.0 / ax.figure.dpi
    return box.width * points, box.height * points


def stride(n_names: int, length: float, line: float) -> int:
    """Return k such that every k-th name fits along a length, with so much for a line.

    Examples
    --------
    >>> stride(10, 100, 8), stride(30, 100, 8)
    (1, 3)
    """
    return max(1, ceil(n_names * line / max(length, line)))


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is, in points."""
    return LETTER * size * len(text)
