"""Whether a model that says 70 % is right in 70 % of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from structent._checks import as_array
from structent._typing import FloatArray
from structent.errors import LabelError, StructureError
from structent.metrics.blocks import at_level, predicted_blocks, weighted_partitions
from structent.metrics.calibration import N_BINS
from structent.metrics.measure import Rows, checked_proba
from structent.plots.style import BLUE, ink, shown
from structent.structure import RandomPartition


class Reliability(NamedTuple):
    """Mean confidence and share of hits in each bin, the means over a level's partitions."""

    confidence: FloatArray
    hits: FloatArray


def plot_reliability(
    labels: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition,
    level: str,
    ax: Axes,
    *,
    name: str | None = None,
    colour: str = BLUE,
    marker: str = "o",
) -> Axes:
    """Plot how often the predicted block is right against how probable it was said to be.

    A second call with the same axes adds a second model.

    Parameters
    ----------
    labels, proba, structure
        As in :func:`~structent.plots.plot_confusion`.
    level
        The level whose blocks are predicted.
    ax
        The axes.
    name, colour, marker
        How the model is shown; with a name it is listed in a legend.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import trivial
    >>> coin = trivial(["heads", "tails"])
    >>> ax = plot_reliability([0, 1], [[1, 0], [0, 1]], coin, "class", Figure().add_subplot())
    >>> ax.lines[-1].get_xydata().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    bins = reliability(labels, proba, structure, level)
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
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    return ax


def reliability(
    labels: ArrayLike, proba: ArrayLike, structure: RandomPartition, level: str
) -> Reliability:
    """Return the bins of :func:`~structent.metrics.calibration_error`: equal numbers of rows.

    Examples
    --------
    >>> from structent import trivial
    >>> bins = reliability([0, 1], [[0.75, 0.25], [0.5, 0.5]], trivial(["a", "b"]), "class")
    >>> bins.confidence.tolist(), bins.hits.tolist()
    ([0.5, 0.75], [0.0, 1.0])
    """
    rows = checked_rows(labels, proba, structure.n_classes)
    n_bins = min(N_BINS, len(rows.codes))
    confidence, hits = np.zeros(n_bins), np.zeros(n_bins)
    for weight, partition in weighted_partitions(at_level(structure, level)):
        predicted = predicted_blocks(rows, partition)
        ascending = np.argsort(predicted.confidence, kind="stable")
        bins = np.array_split(ascending, n_bins)
        confidence += weight * np.array([predicted.confidence[rows_in].mean() for rows_in in bins])
        hits += weight * np.array([predicted.is_hit[rows_in].mean() for rows_in in bins])
    return Reliability(confidence, hits)


def checked_rows(labels: ArrayLike, proba: ArrayLike, n_classes: int) -> Rows:
    """Return rows whose labels are places among the classes, each with the weight 1."""
    codes = as_array(labels, "labels")
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or not len(codes):
        raise LabelError(
            f"labels must be the place of each row's class, whole numbers, got {codes.dtype} of "
            f"shape {codes.shape}; structure.encode(names) gives them"
        )
    if not 0 <= codes.min() <= codes.max() < n_classes:
        raise LabelError(
            f"labels must be between 0 and {n_classes - 1}, the places of the classes, "
            f"got {codes.min()} to {codes.max()}"
        )
    checked = checked_proba(proba, n_classes, None)
    if len(checked) != len(codes):
        raise StructureError(f"labels has {len(codes)} rows but proba has {len(checked)}")
    return Rows(codes.astype(np.int64), checked, np.ones(len(codes)))
