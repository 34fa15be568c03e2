"""Reliability diagrams: is a model that says 70 % right in 70 % of the rows?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from structent._typing import FloatArray
from structent.metrics.blocks import at_level, predicted_blocks, weighted_partitions
from structent.metrics.calibration import N_BINS
from structent.metrics.measure import ScoredRows
from structent.plots.style import BLUE, axes_or_new, ink, shown
from structent.structure import RandomPartition


class Reliability(NamedTuple):
    """Mean confidence and share of hits in each bin, the means over a level's partitions."""

    confidence: FloatArray
    hits: FloatArray


def plot_reliability(  # noqa: PLR0913  three of them are how the model is drawn
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    level: str,
    ax: Axes | None = None,
    *,
    classes: Any = None,
    name: str | None = None,
    colour: str = BLUE,
    marker: str = "o",
) -> Axes:
    """Plot how often the predicted block is right against its predicted probability.

    A second call with the same axes adds a second model.

    Parameters
    ----------
    y_true, proba, structure, classes
        As in :func:`~structent.metrics.structured_log_loss`.
    level
        The level whose blocks are predicted.
    ax
        The axes; those of a new figure if None.
    name, colour, marker
        How the model is shown; with a name it is listed in a legend.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import trivial
    >>> coin = trivial(["heads", "tails"])
    >>> y_true, proba = ["heads", "tails"], [[1, 0], [0, 1]]
    >>> ax = plot_reliability(y_true, proba, coin, "class", Figure().add_subplot())
    >>> ax.lines[-1].get_xydata().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    bins = reliability(y_true, proba, structure, level, classes=classes)
    ax = axes_or_new(ax, (5.0, 5.0))
    if not ax.lines:
        ax.plot([0, 1], [0, 1], "--", color=ink(), alpha=0.6, linewidth=1, zorder=1)
        ax.set_xlim(0, 1.02)
        ax.set_ylim(0, 1.02)
        ax.set_aspect("equal")
        ax.set_xlabel("probability of the predicted block")
        ax.set_ylabel("share of rows where it is right")
        ax.set_title(shown(level), fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    ax.plot(*bins, marker=marker, markersize=4, linewidth=1.2, color=colour, label=name)
    if name is not None:
        # Below the axes: inside, it would lie over the bins of some model.
        ax.legend(
            frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2
        )
    return ax


def reliability(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    level: str,
    *,
    classes: Any = None,
) -> Reliability:
    """Return the bins of :func:`~structent.metrics.calibration_error`: equal numbers of rows.

    Parameters
    ----------
    y_true, proba, structure, level, classes
        As in :func:`plot_reliability`.

    Examples
    --------
    >>> from structent import trivial
    >>> bins = reliability(["a", "b"], [[0.75, 0.25], [0.5, 0.5]], trivial(["a", "b"]), "class")
    >>> bins.confidence.tolist(), bins.hits.tolist()
    ([0.5, 0.75], [0.0, 1.0])
    """
    rows = ScoredRows.of_table(y_true, proba, structure.classes, classes)
    n_bins = min(N_BINS, len(rows.codes))
    confidence, hits = np.zeros(n_bins), np.zeros(n_bins)
    for weight, partition in weighted_partitions(at_level(structure, level)):
        predicted = predicted_blocks(rows, partition)
        ascending = np.argsort(predicted.confidence, kind="stable")
        bins = np.array_split(ascending, n_bins)
        confidence += weight * np.array([predicted.confidence[rows_in].mean() for rows_in in bins])
        hits += weight * np.array([predicted.is_hit[rows_in].mean() for rows_in in bins])
    return Reliability(confidence, hits)
