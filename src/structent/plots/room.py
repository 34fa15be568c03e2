"""How much room axes have, and how many names fit into it."""

from math import ceil

from matplotlib.axes import Axes

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
