"""Which class is predicted as which, in the order of the structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from numpy.typing import ArrayLike

from structent._typing import FloatArray, IndexArray
from structent.metrics.measure import ScoredRows
from structent.plots.matrix import OF_MATRIX, name_in_order, outline, show_matrix
from structent.plots.order import is_order, structure_order
from structent.plots.style import axes_or_new
from structent.structure import FixedStructure, PartitionSampler, RandomPartition


def plot_confusion(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition | PartitionSampler,
    ax: Axes | None = None,
    *,
    classes: Any = None,
) -> Axes:
    """Plot the confusion matrix: the share of each class's rows predicted as each class.

    Rows and columns are in the order of :func:`~structent.plots.structure_order`. Lines are drawn
    around the classes that share a block in some partition of a level, except for the cuts of an
    order. The shades grow with the square root of the share, because mistakes are rare beside hits.
    A class without rows is grey.

    Parameters
    ----------
    y_true, proba, classes
        As in :func:`~structent.metrics.structured_log_loss`; the most probable class is the one
        predicted.
    structure
        The structure, or a sampler.
    ax
        The axes; those of a new figure if None.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    >>> y_true, proba = ["oak", "oak", "rose"], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    >>> ax = Figure().add_subplot()
    >>> ax = plot_confusion(y_true, proba, plants, ax, classes=plants.classes)
    >>> ax.get_images()[0].get_array().tolist()  # oak, maple, rose
    [[0.5, 0.5, 0.0], [None, None, None], [0.0, 0.0, 1.0]]
    """
    if isinstance(structure, FixedStructure):
        structure = structure.structure
    order = structure_order(structure)
    shares = confusion_shares(y_true, proba, structure, classes=classes)[np.ix_(order, order)]
    ax = axes_or_new(ax, OF_MATRIX)
    norm = PowerNorm(0.5, 0.0, 1.0)
    masked = np.ma.masked_invalid(shares)
    show_matrix(masked, ax, norm=norm, meaning="share of the rows of the true class")
    if isinstance(structure, RandomPartition):
        _outline_levels(ax, structure, order)
    name_in_order(ax, structure, order)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    return ax


def confusion_shares(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition | PartitionSampler,
    *,
    classes: Any = None,
) -> FloatArray:
    """Return the share of each true class's rows that is predicted as each class.

    Parameters
    ----------
    y_true, proba, structure, classes
        As in :func:`plot_confusion`.

    Returns
    -------
    The shares, (classes, classes), ``[true, predicted]`` in the order of the structure's classes;
    NaN for a class without rows.

    Examples
    --------
    >>> from structent import trivial
    >>> y_true, proba = ["a", "a", "b"], [[1, 0], [0, 1], [0, 1]]
    >>> confusion_shares(y_true, proba, trivial(["a", "b"])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    rows = ScoredRows.of_table(y_true, proba, structure.classes, classes)
    counts = np.zeros((len(structure.classes),) * 2)
    np.add.at(counts, (rows.codes, rows.proba.argmax(axis=1)), 1.0)
    totals = counts.sum(axis=1, keepdims=True)
    shares: FloatArray = np.full_like(counts, np.nan)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def _outline_levels(ax: Axes, structure: RandomPartition, order: IndexArray) -> None:
    # Every pair of classes is together in some cut of an order, except the first and the last.
    if is_order(structure) and not structure.is_nested:
        return
    coarse = [cuts for cuts in structure.levels.values() if not cuts[0].is_singletons]
    for place, cuts in enumerate(coarse):
        blocks = [cut.block_of[order] for cut in cuts]
        together = np.any([block[:, None] == block for block in blocks], axis=0)
        outline(ax, together, width=max(1.2 - 0.35 * place, 0.4))
