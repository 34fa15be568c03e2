"""Matrices with a row and a column for each class: the structure, and its similarity."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray, Label
from structent.plots.order import coarse_partitions, structure_order
from structent.plots.style import SHADES, axes_or_new, ink, room, shown, stride
from structent.structure import FixedStructure, PartitionSampler, RandomPartition
from structent.structure.similarity import N_DRAWS, similarity_of

_SIZE = 8.0
OF_MATRIX = (6.5, 5.5)  # inches, of a figure of its own
_SMALLEST = 5.5
_MOST_NAMES = 60


def plot_similarity(
    structure: RandomPartition | PartitionSampler, ax: Axes | None = None, *, n_draws: int = N_DRAWS
) -> Axes:
    """Plot how similar the classes are: the probability that two of them share a block.

    Rows and columns are in the order of :func:`~structent.plots.structure_order`.

    Parameters
    ----------
    structure
        The structure, or a sampler.
    ax
        The axes; those of a new figure if None.
    n_draws
        How many draws of a sampler are averaged if the expectation is not known exactly.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    >>> ax = plot_similarity(plants, Figure().add_subplot())
    >>> ax.get_images()[0].get_array().tolist()  # oak, maple, rose
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(structure, FixedStructure):
        structure = structure.structure
    order = structure_order(structure)
    similarity = similarity_of(structure, n_draws)[np.ix_(order, order)]
    ax = axes_or_new(ax, OF_MATRIX)
    meaning = "probability of sharing a block"
    show_matrix(similarity, ax, norm=Normalize(0.0, 1.0), meaning=meaning)
    name_in_order(ax, structure, order)
    ax.set_xlabel("class")
    ax.set_ylabel("class")
    return ax


def draw_togetherness(structure: RandomPartition, ax: Axes) -> Axes:
    """Draw the matrix of the weight of the partitions in which two classes share a block."""
    matrix = _togetherness(structure)
    meaning = "weight of the partitions with both in one block"
    show_matrix(matrix, ax, norm=Normalize(0.0, matrix.max()), meaning=meaning)
    name_classes(ax, structure.classes)
    ax.set_xlabel("class")
    ax.set_ylabel("class")
    return ax


def togetherness_summary(structure: RandomPartition) -> str:
    """Return what the drawing shows, in a sentence."""
    return (
        f"A matrix of {structure.n_classes} classes: the weight of the partitions, out of "
        f"{len(coarse_partitions(structure))}, in which two of them share a block."
    )


def show_matrix(matrix: FloatArray, ax: Axes, *, norm: Normalize, meaning: str) -> None:
    """Show numbers as shades, with a colour bar that says what they mean."""
    # "none" keeps one pixel per cell in an SVG file, however large it is shown.
    image = ax.imshow(matrix, cmap=SHADES, norm=norm, interpolation="none", aspect="equal")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.02)
    bar.set_label(meaning, fontsize=_SIZE)
    bar.ax.tick_params(labelsize=_SIZE - 1)
    bar.outline.set_linewidth(0.5)


def name_classes(ax: Axes, classes: Sequence[Label]) -> None:
    """Name rows and columns; if there are too many, every second, every third, ..."""
    n = len(classes)
    line = min(room(ax)) * 0.8 / n
    size = float(np.clip(line / 1.2, _SMALLEST, _SIZE))
    places = range(0, n, stride(n, min(room(ax)) * 0.8, size * 1.2))
    names = [shown(classes[place], 20) for place in places]
    _set_names(ax, list(places), names, size)


def name_in_order(
    ax: Axes, structure: RandomPartition | PartitionSampler, order: IndexArray
) -> None:
    """Name rows and columns in the order given: the classes, or the blocks of a large hierarchy."""
    if isinstance(structure, RandomPartition) and structure.is_nested and len(order) > _MOST_NAMES:
        _name_blocks(ax, structure, order)
    else:
        name_classes(ax, [structure.classes[place] for place in order])


def outline(ax: Axes, together: NDArray[np.bool_], width: float) -> None:
    """Draw the border between the cells that are together and those that are not."""
    xs: list[float] = []
    ys: list[float] = []
    for row, column in zip(*np.nonzero(together[:, 1:] != together[:, :-1]), strict=True):
        xs += [column + 0.5, column + 0.5, np.nan]
        ys += [row - 0.5, row + 0.5, np.nan]
    for row, column in zip(*np.nonzero(together[1:] != together[:-1]), strict=True):
        xs += [column - 0.5, column + 0.5, np.nan]
        ys += [row + 0.5, row + 0.5, np.nan]
    ax.plot(xs, ys, color=ink(), linewidth=width, alpha=0.75, solid_capstyle="projecting")


def _name_blocks(ax: Axes, structure: RandomPartition, order: IndexArray) -> None:
    """Name the blocks of the finest level whose names fit, or some classes if none fit."""
    n_lines = int(min(room(ax)) * 0.8 / (_SMALLEST * 1.4))
    fitting = [p for p in structure.partitions if 1 < p.n_blocks <= n_lines]
    if not fitting:
        name_classes(ax, [structure.classes[place] for place in order])
        return
    partition = max(fitting, key=len)
    block_of = partition.block_of[order]
    borders = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), len(order)]
    middles = [(start + end - 1) / 2 for start, end in pairwise(borders)]
    names = [shown(partition.names[block_of[start]], 26) for start in borders[:-1]]
    _set_names(ax, middles, names, 7.0)


def _togetherness(structure: RandomPartition) -> FloatArray:
    """Return the weight of the partitions in which two classes share a block, (classes, classes).

    The singletons are left out, because they say nothing about two classes.

    Examples
    --------
    >>> from structent import circular
    >>> _togetherness(circular(range(4), width=2, singleton_weight=0.0))[0].tolist()
    [1.0, 0.5, 0.0, 0.5]
    """
    together = structure.similarity()
    np.fill_diagonal(together, 1.0 - structure.singleton_weight)
    return together


def _set_names(ax: Axes, places: list[float] | list[int], names: list[str], size: float) -> None:
    is_short = sum(map(len, names)) * size * 0.7 < min(room(ax)) * 0.8
    ax.set_yticks(places, labels=names, fontsize=size)
    ax.set_xticks(places, labels=names, fontsize=size, rotation=0 if is_short else 90)
    ax.tick_params(length=2, width=0.5)
