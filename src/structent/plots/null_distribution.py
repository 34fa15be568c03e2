"""The null distribution of a test: where the structure stands among its scrambled copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from structent.plots.colours import NAME_OF_ARM, OF_ARM

if TYPE_CHECKING:  # it needs scikit-learn, which a figure does not
    from structent.significance.result import StructureTest

_MOST_BINS = 30


def plot_null_distribution(found: StructureTest, ax: Axes) -> Axes:
    """Plot the log losses of the scrambled copies, and the structure's and none's among them.

    Parameters
    ----------
    found
        What a test found.
    ax
        The axes; further to the left is better.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> found = SimpleNamespace(  # or a StructureTest
    ...     null=np.array([2.1, 2.2, 2.2]), loss=2.0, losses_without=np.array([2.05]), p_value=0.25
    ... )
    >>> ax = plot_null_distribution(found, Figure().add_subplot())
    >>> float(sum(bar.get_height() for bar in ax.patches))
    3.0
    """
    n_bins = min(_MOST_BINS, max(5, int(2 * np.sqrt(len(found.null)))))
    colour = OF_ARM["scrambled"]
    name = f"{NAME_OF_ARM['scrambled']} ({len(found.null):,})"
    ax.hist(found.null, bins=n_bins, color=colour, alpha=0.55, label=name)
    # Every copy as a tick, too: bars hide how few there may be.
    ax.plot(found.null, np.zeros(len(found.null)), "|", color=colour, markersize=9, clip_on=False)
    without = float(found.losses_without.mean())
    structure = f"{NAME_OF_ARM['structure']}: {found.loss:.4f}, p = {found.p_value:.3g}"
    ax.axvline(found.loss, color=OF_ARM["structure"], linewidth=2.5, label=structure)
    none = f"{NAME_OF_ARM['none']}: {without:.4f}"
    ax.axvline(without, color=OF_ARM["none"], linewidth=2, linestyle="--", label=none)
    ax.set_xlabel("mean log loss over the folds, nats a row\n(further left is better)")
    ax.set_ylabel("copies")
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.margins(x=0.05)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    return ax
