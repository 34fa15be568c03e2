"""The paired differences between the structure and what it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from structent.plots.colours import OF_ARM, ink

if TYPE_CHECKING:  # it needs scikit-learn, which a figure does not
    from structent.comparison.result import Comparison
    from structent.significance.result import StructureTest


def plot_differences(comparison: Comparison | StructureTest, ax: Axes) -> Axes:
    """Plot the difference of every fold, their mean and its interval, against both controls.

    Below 0, on the left of the line, the structure is better.

    Parameters
    ----------
    comparison
        What a comparison, or a test, found.
    ax
        The axes.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> from structent.comparison.result import Difference
    >>> lower = Difference(np.array([-0.03, -0.01]), mean=-0.02, low=-0.04, high=0.0)
    >>> found = SimpleNamespace(against_none=lower, against_scrambled=lower)  # or a Comparison
    >>> ax = plot_differences(found, Figure().add_subplot())
    >>> ax.texts[0].get_text()
    '-0.0200 [-0.0400, +0.0000]'
    """
    pairs = (
        ("scrambled", "against\nscrambled copies", comparison.against_scrambled),
        ("none", "against\nno structure", comparison.against_none),
    )
    ax.axvline(0.0, color=ink(), linewidth=1)
    for place, (arm, _, difference) in enumerate(pairs):
        colour, n = OF_ARM[arm], len(difference.per_fold)
        # Folds stand above each other in their order, so that equal ones are both seen.
        height = place + np.linspace(0.12, 0.36, n)
        ax.plot(difference.per_fold, height, "o", markersize=4, color=colour)
        ax.plot([difference.low, difference.high], [place, place], color=colour, linewidth=3)
        ax.plot(difference.mean, place, "D", markersize=8, color=colour)
        label = f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"
        ax.annotate(label, (difference.mean, place), (0, -10), textcoords="offset points",
                    ha="center", va="top", fontsize=8)  # fmt: skip
    ax.set_yticks([0, 1], labels=[name for _, name, _ in pairs])
    ax.set_ylim(-0.45, 1.55)
    ax.margins(x=0.08)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel("difference of class log loss, nats a row\n(below 0 the structure is better)")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
