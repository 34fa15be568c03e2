"""Which class is taken for which, in the order of the structure."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from numpy.typing import ArrayLike

from structent._typing import FloatArray, IndexArray
from structent.plots.kinds import is_order, structure_order
from structent.plots.matrix import name_blocks, name_classes, outline, show_matrix
from structent.plots.reliability import checked_rows
from structent.structure import FixedStructure, PartitionSampler, RandomPartition

_MOST_NAMES = 60


def plot_confusion(
    labels: ArrayLike,
    proba: ArrayLike,
    structure: RandomPartition | PartitionSampler,
    ax: Axes,
) -> Axes:
    """Plot the share of each class's rows that is taken for each class.

    Rows and columns are in the order of :func:`~structent.plots.structure_order`; lines are drawn
    around the classes that share a block in some partition of a level, but for the cuts of an
    order. The shades grow with the
    square root of the share, because mistakes are rare beside hits. A class without rows is grey.

    Parameters
    ----------
    labels
        The class of each row, as a place among the classes of the structure, (n,).
    proba
        The probabilities, (n, classes); the most probable class is the one predicted.
    structure
        The structure, or a sampler.
    ax
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    >>> proba = [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    >>> ax = plot_confusion([0, 0, 1], proba, plants, Figure().add_subplot())
    >>> ax.get_images()[0].get_array().tolist()  # oak, maple, rose
    [[0.5, 0.5, 0.0], [None, None, None], [0.0, 0.0, 1.0]]
    """
    if isinstance(structure, FixedStructure):
        structure = structure.structure
    order = structure_order(structure)
    shares = confusion_shares(labels, proba, len(order))[np.ix_(order, order)]
    norm = PowerNorm(0.5, 0.0, 1.0)
    masked = np.ma.masked_invalid(shares)
    show_matrix(masked, ax, norm=norm, meaning="share of the rows of the true class")
    classes = [structure.classes[place] for place in order]
    if isinstance(structure, RandomPartition):
        _outline_levels(ax, structure, order)
    if isinstance(structure, RandomPartition) and structure.is_nested and len(order) > _MOST_NAMES:
        name_blocks(ax, structure, order)
    else:
        name_classes(ax, classes)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    return ax


def confusion_shares(labels: ArrayLike, proba: ArrayLike, n_classes: int) -> FloatArray:
    """Return the share of each true class's rows that each class was predicted for.

    Examples
    --------
    >>> confusion_shares([0, 0, 1], [[1, 0], [0, 1], [0, 1]], 2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    rows = checked_rows(labels, proba, n_classes)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (rows.codes, rows.proba.argmax(axis=1)), 1.0)
    totals = counts.sum(axis=1, keepdims=True)
    shares: FloatArray = np.full_like(counts, np.nan)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def _outline_levels(ax: Axes, structure: RandomPartition, order: IndexArray) -> None:
    # The cuts of an order leave all classes together but the first and the last.
    if is_order(structure) and not structure.is_nested:
        return
    coarse = [cuts for cuts in structure.levels.values() if not cuts[0].is_singletons]
    for place, cuts in enumerate(coarse):
        blocks = [cut.block_of[order] for cut in cuts]
        together = np.any([block[:, None] == block for block in blocks], axis=0)
        outline(ax, together, width=max(1.2 - 0.35 * place, 0.4))
