"""The figures on months: log loss, and the difference to standard, against singleton weight."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from structent.experiments.paired import Mean
from structent.experiments.weather.figures import Look, draw_line, page_style, picture, reach
from structent.experiments.weather.results import (
    STANDARD,
    Arm,
    Readings,
    difference,
    mean_loss,
)
from structent.plots.style import BLUE, GREEN, GREY, PURPLE, VERMILLION

# What is drawn of an arm at a size.
Quantity: TypeAlias = Callable[[Readings, int, Arm], Mean | None]
# By method, then by singleton weight.
Curves: TypeAlias = dict[str, dict[float, Mean]]

# Each with a shift to the side, so that the bars of two lines are told apart.
_LINES = (
    (Look("fixed", BLUE, "o", is_control=False), -0.006),
    (Look("variable", GREEN, "s", is_control=False), 0.006),
    (Look("fixed, scrambled", VERMILLION, "o", is_control=True), -0.012),
    (Look("variable, scrambled", PURPLE, "s", is_control=True), 0.012),
)
_COLUMNS = 3
# How far controls may stretch a panel upwards, in heights of all that is no control.
_STRETCH = 0.6


def months_figures(readings: Readings) -> dict[str, Figure]:
    """Return the figures by the name of their file; none where nothing was run."""
    if not readings:
        return {}
    with page_style():
        return {
            "months-log-loss": _figure(readings, _loss, "test log loss, nats a row"),
            "months-differences": _figure(
                readings, difference, "log loss minus standard, nats a row"
            ),
        }


def captions(readings: Readings) -> list[str]:
    """Return the pictures as the page shows them, each with what there is to be seen."""
    if not readings:
        return []
    panels = "against singleton weight, a panel for each number of training rows"
    return [
        *picture(
            "months-log-loss",
            f"Test log loss {panels}",
            "Test log loss, with the depth of the trees chosen on validation. The band is the "
            "standard error of standard over trials; those of the others are paired, in the next "
            "figure. What has fewer trials than others of its size is left out."
            f"{_on_cuts(readings, _loss)}",
        ),
        *picture(
            "months-differences",
            f"Paired difference to standard {panels}",
            "Paired differences to standard with their standard errors; below 0 the method is "
            f"better.{_on_cuts(readings, difference)}",
        ),
    ]


def _figure(readings: Readings, quantity: Quantity, label: str) -> Figure:
    sizes = _sizes(readings)
    n_rows = ceil((len(sizes) + 1) / _COLUMNS)
    figure = Figure(figsize=(3.6 * _COLUMNS, 3.2 * n_rows), layout="constrained", facecolor="white")
    panels = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
    for place, size in enumerate(sizes):
        _draw_panel(panels[place], _curves(readings, size, quantity))
        panels[place].set_title(f"{size:,} rows", loc="left", weight="bold", fontsize=9)
        if place % _COLUMNS == 0:
            panels[place].set_ylabel(label)
    for panel in panels[len(sizes) :]:
        panel.axis("off")
    drawn = {
        name: handle
        for panel in panels[: len(sizes)]
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    panels[len(sizes)].legend(drawn.values(), drawn.keys(), loc="center left", frameon=False)
    return figure


def _draw_panel(ax: Axes, curves: Curves) -> None:
    for mean in curves.get(STANDARD.method, {}).values():
        error = np.nan_to_num(mean.error)
        ax.axhspan(mean.value - error, mean.value + error, color=GREY, alpha=0.2, linewidth=0)
        ax.axhline(mean.value, color=GREY, linewidth=1.5, label=STANDARD.method)
    for look, shift in _LINES:
        curve = dict(sorted(curves.get(look.name, {}).items()))
        draw_line(ax, [weight + shift for weight in curve], list(curve.values()), look)
    bottom, top = _limits(curves)
    ax.set_ylim(bottom, top)
    ax.set_xlim(0.05, 0.95)
    ax.set_xticks([k / 10 for k in range(1, 10)])
    ax.set_xlabel("singleton weight")
    ax.yaxis.set_major_locator(MaxNLocator(6))
    ax.spines[["top", "right"]].set_visible(False)
    # Beyond the axes: inside, a curve may be anywhere.
    ax.annotate("\n".join(_cuts(curves)), (1, 1), (0, 3), textcoords="offset points",
                xycoords="axes fraction", ha="right", va="bottom", fontsize=7)  # fmt: skip


def _loss(readings: Readings, size: int, arm: Arm) -> Mean | None:
    """Return the mean log loss, with an error for standard alone; None over fewer trials.

    All methods share the trials, which differ by more than the methods do.
    """
    mean = mean_loss(readings, size, arm)
    if mean is None or mean.n_trials < max(
        len(r.test) for (at, _), r in readings.items() if at == size
    ):
        return None
    return mean if arm == STANDARD else mean._replace(error=np.nan)


def _sizes(readings: Readings) -> list[int]:
    return sorted({size for size, _ in readings})


def _curves(readings: Readings, size: int, quantity: Quantity) -> Curves:
    curves: Curves = {}
    for arm in [arm for at, arm in readings if at == size]:
        mean = quantity(readings, size, arm)
        if mean is not None:
            curves.setdefault(arm.method, {})[arm.singleton_weight] = mean
    return curves


def _limits(curves: Curves) -> tuple[float, float]:
    """Return the range of a panel: all of what is no control, and of controls what is near."""
    controls = {look.name for look, _ in _LINES if look.is_control}
    near = reach(
        [m for name, curve in curves.items() if name not in controls for m in curve.values()]
    )
    far = reach([m for curve in curves.values() for m in curve.values()])
    ends = near or far or [0.0]
    height = max(ends) - min(ends) or 0.01
    bottom = min(ends + far)
    top = min(max(ends + far), max(ends) + _STRETCH * height)
    return bottom - 0.06 * height, top + 0.06 * height


def _cuts(curves: Curves) -> list[str]:
    """Return, for each method that leaves its panel, how far up it goes."""
    _, top = _limits(curves)
    highest = {name: max(m.value for m in curve.values()) for name, curve in curves.items()}
    return [
        f"{look.name}: up to {highest[look.name]:.3f}"
        for look, _ in _LINES
        if highest.get(look.name, top) > top
    ]


def _on_cuts(readings: Readings, quantity: Quantity) -> str:
    if not any(_cuts(_curves(readings, size, quantity)) for size in _sizes(readings)):
        return ""
    return " A curve that leaves its panel is named above it, with its largest value."
