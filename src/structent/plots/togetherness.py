"""A structure of no simpler kind, drawn as the weight that keeps each two classes together."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from structent._typing import FloatArray
from structent.plots.kinds import coarse_partitions
from structent.plots.matrix import name_classes, show_matrix
from structent.structure import RandomPartition


def draw_togetherness(structure: RandomPartition, ax: Axes) -> Axes:
    """Draw the matrix of :func:`togetherness`."""
    matrix = togetherness(structure)
    meaning = "weight of the partitions with both in one block"
    show_matrix(matrix, ax, norm=Normalize(0.0, matrix.max()), meaning=meaning)
    name_classes(ax, structure.classes)
    ax.set_xlabel("class")
    ax.set_ylabel("class")
    return ax


def togetherness(structure: RandomPartition) -> FloatArray:
    """Return the weight of the partitions in which two classes share a block, (classes, classes).

    The singletons are left out: they say nothing of two classes.

    Examples
    --------
    >>> from structent import circular
    >>> togetherness(circular(range(4), width=2, singleton_weight=0.0))[0].tolist()
    [1.0, 0.5, 0.0, 0.5]
    """
    matrix = np.zeros((structure.n_classes, structure.n_classes))
    for partition, weight, _ in coarse_partitions(structure):
        matrix += weight * (partition.block_of[:, None] == partition.block_of)
    return matrix


def togetherness_summary(structure: RandomPartition) -> str:
    """Return what there is to be seen."""
    return (
        f"A matrix of {structure.n_classes} classes: the weight of the partitions, out of "
        f"{len(coarse_partitions(structure))}, in which two of them share a block."
    )
