"""Figures as SVG inside a page: text as text, in the page's own colour of ink, always the same."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from io import StringIO
from typing import Any, NamedTuple

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Stands for the page's ink while matplotlib draws, which knows no "currentColor".
_INK = "#012345"
_SETTINGS: dict[Any, Any] = {
    # Axes begin as large as the figure, and the layout takes away what names need.
    "figure.subplot.left": 0.01,
    "figure.subplot.right": 0.99,
    "figure.subplot.bottom": 0.01,
    "figure.subplot.top": 0.99,
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, and is wider than most
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.labelcolor": _INK,
}


class PageFigure(NamedTuple):
    """A figure of the page.

    Attributes
    ----------
    svg
        The drawing, labelled for those who cannot see it.
    summary
        The same label: what there is to be seen.
    caption
        What the figure is.
    """

    svg: Markup
    summary: str
    caption: str


def page_figure(
    name: str,
    draw: Callable[[Axes], object],
    size: tuple[float, float],
    *,
    caption: str,
    summary: str,
    least: float = 0.68,
) -> PageFigure:
    """Return what a function draws into axes as a figure of the page.

    Parameters
    ----------
    name
        Unlike that of any other figure of the page.
    draw
        Draws into axes.
    size
        Width and height in inches.
    caption, summary
        What it is, and what there is to be seen.
    least
        The share of its size to which a narrow screen may shrink it before it is scrolled; letters
        of 9 points are 8 pixels high at .68.
    """
    with mpl.rc_context({**_defaults(), **_SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        text = StringIO()
        with warnings.catch_warnings():
            # The reader's browser has fonts for all scripts, whatever matplotlib has.
            warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return PageFigure(_for_page(text.getvalue(), least * size[0], summary), summary, caption)


def _defaults() -> dict[Any, Any]:
    """Return matplotlib's own settings, so that a user's style does not change the page."""
    # The backend is no setting of a figure: the user's would be gone afterwards.
    return {name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"}


def _for_page(svg: str, least_width: float, summary: str) -> Markup:
    drawing = svg[svg.index("<svg") :]
    # What matplotlib says of all elements would hold for the whole page; the page says it itself.
    drawing = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawing, count=1, flags=re.S)
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, count=1, flags=re.S)
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", drawing))
    # Only inside of tags: text has no "<", so that a class may be called anything.
    drawing = re.sub(r"<[^>]*>", lambda tag: _for_page_tag(tag.group(), used), drawing)
    style = f"max-width: max(100%, {96 * least_width:.0f}px)"  # 96 pixels an inch
    opening = f'<svg role="img" aria-label="{escape(summary)}" style="{style}"'
    return Markup(opening + drawing.removeprefix("<svg"))  # noqa: S704  matplotlib escapes text


def _for_page_tag(tag: str, used: set[str]) -> str:
    tag = tag.replace(_INK, "currentColor")
    return re.sub(r' id="([^"]*)"', lambda m: m.group() if m[1] in used else "", tag)
