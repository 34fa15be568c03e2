"""The figure on counties: the difference to standard at growing numbers of training rows."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from structent.experiments.weather.figures import Look, draw_line, page_style, picture
from structent.experiments.weather.paper_numbers import COUNTY_COMBINATIONS
from structent.experiments.weather.results import Arm, Readings, difference, scrambled
from structent.plots.style import OF_LEVELS, ink

_MARKERS = "osD^v"


def counties_figure(readings: Readings) -> dict[str, Figure]:
    """Return the figure by the name of its file; none where nothing was run."""
    sizes = sorted({size for size, _ in readings})
    if not sizes:
        return {}
    with page_style():
        figure = Figure(figsize=(9.0, 4.6), layout="constrained", facecolor="white")
        ax = figure.add_subplot()
        ax.axhline(0.0, color=ink(), linewidth=1, label="standard")
        for place, (arm, look) in enumerate(_looks()):
            # Beside each other, so that the bars of two lines are told apart.
            shift = 1 + 0.018 * (place - (len(_looks()) - 1) / 2)
            means = [difference(readings, size, arm) for size in sizes]
            draw_line(ax, [size * shift for size in sizes], means, look)
        ax.set_xscale("log")
        ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
        ax.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("training rows")
        ax.set_ylabel("log loss minus standard, nats a row\n(below 0 better than standard)")
        ax.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right center", frameon=False)
        return {"counties-differences": figure}


def caption(readings: Readings) -> list[str]:
    """Return the picture as the page shows it, with what there is to be seen."""
    if not readings:
        return []
    return picture(
        "counties-differences",
        "Paired difference to standard against training rows, a line for each combination",
        "Paired differences to standard with their standard errors, the depth of the trees chosen "
        "on validation. Dashes and hollow markers are the scrambled controls.",
    )


def combination_name(arm: Arm) -> str:
    """Return the number of blocks and the singleton weight of an arm.

    >>> combination_name(Arm("variable, scrambled", 10, 0.25))
    '10 blocks, 0.25, scrambled'
    """
    control = ", scrambled" if arm.method.endswith("scrambled") else ""
    return f"{arm.n_blocks} blocks, {arm.singleton_weight:g}{control}"


def _looks() -> list[tuple[Arm, Look]]:
    """Return every combination and then its control, with how their lines look."""
    arms = [Arm("variable", n_blocks, weight) for n_blocks, weight in COUNTY_COMBINATIONS]
    return [
        (each, Look(combination_name(each), colour, marker, is_control=each != arm))
        for arm, colour, marker in zip(arms, OF_LEVELS, _MARKERS, strict=True)
        for each in (arm, scrambled(arm))
    ]
