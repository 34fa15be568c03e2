"""An order of classes, drawn as a line with a threshold wherever a partition cuts it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from structent._typing import FloatArray
from structent.plots.order import coarse_partitions
from structent.plots.style import BLUE, ink, room, shown, stride
from structent.structure import RandomPartition

_SIZE = 9.0
_LINE = 12.0


def draw_scale(structure: RandomPartition, ax: Axes) -> Axes:
    """Draw the classes along a line, the first at the top, and each threshold's weight as a bar."""
    n = structure.n_classes
    weights = _threshold_weights(structure)
    between = np.arange(n - 1) + 0.5
    ax.barh(between, weights, height=0.22, color=BLUE, label="weight of the threshold")
    ax.plot(np.zeros(n), np.arange(n), "o-", color=ink(), markersize=4, linewidth=1, zorder=3)
    step = stride(n, room(ax)[1], _LINE)
    places = range(0, n, step)
    names = [shown(structure.classes[place]) for place in places]
    ax.set_yticks(places, labels=names, fontsize=_SIZE)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xlim(-0.04 * weights.max(), 1.1 * weights.max())
    ax.set_xlabel("weight of the partitions that cut between two classes")
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def scale_size(structure: RandomPartition) -> tuple[float, float]:
    """Return the size of a figure with a line for every class, at most a page."""
    return 6.0, min(max(2.4, 0.9 + structure.n_classes * 0.32), 14.0)


def scale_summary(structure: RandomPartition) -> str:
    """Return what the drawing shows, in a sentence."""
    n_cuts = int((_threshold_weights(structure) > 0).sum())
    first, last = structure.classes[0], structure.classes[-1]
    return (
        f"A scale of {structure.n_classes} classes from {first} to {last}, "
        f"with {n_cuts} thresholds between them."
    )


def _threshold_weights(structure: RandomPartition) -> FloatArray:
    """Return the weight of the partitions that cut between each class and the next.

    Examples
    --------
    >>> from structent import ordinal
    >>> _threshold_weights(ordinal(["S", "M", "L"], singleton_weight=0.5)).tolist()
    [0.25, 0.25]
    """
    cuts = np.zeros(structure.n_classes - 1)
    for partition, weight, _ in coarse_partitions(structure):
        cuts += weight * (np.diff(partition.block_of) != 0)
    return cuts
