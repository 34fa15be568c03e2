"""Predictions for a level of the structure: which of its blocks a row most likely belongs to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import checked_distribution
from structent._typing import FloatArray
from structent.errors import StructureError
from structent.estimators.classes import Classes, Structure
from structent.structure import Partition, RandomPartition


def predicted_blocks(proba: ArrayLike, structure: Structure, level: str) -> NDArray[np.str_]:
    """Return the name of the most probable block of a level for each row, (n,).

    Names are those that :meth:`Partition.coarsen` gives the true labels, so that the two can be
    compared. The most probable block need not be that of the most probable class.

    Parameters
    ----------
    proba
        Probabilities of the classes, (n, classes), in the order of the structure's classes.
    structure
        A structure with levels, not a sampler.
    level
        The name of a level that has one partition. The rotations of a circle and the cuts of an
        ordinal scale are one level of many partitions, which have no one answer.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy(
    ...     {"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)}, level_names=["kind"]
    ... )
    >>> predicted_blocks([[0.3, 0.3, 0.4]], plants, "kind").tolist()
    ['tree']
    """
    partition = _the_partition(structure, level)
    classes = checked_distribution(proba, "proba", n_classes=[len(partition.classes)])
    by_block = np.argsort(partition.block_of, kind="stable")
    first_of_block = np.searchsorted(partition.block_of[by_block], np.arange(partition.n_blocks))
    blocks = np.add.reduceat(classes[:, by_block], first_of_block, axis=1)  # (n, blocks)
    predicted: NDArray[np.str_] = np.array(partition.names)[blocks.argmax(axis=1)]
    return predicted


def predicted_level(
    proba: FloatArray, classes: Classes, structure: Structure | None, level: str
) -> NDArray[np.str_]:
    """Return the blocks of a model with this structure, whose columns are sorted by class."""
    if structure is None:
        raise StructureError(
            "predict_level needs a model with a structure, got structure=None; "
            "predict gives the classes"
        )
    in_order_of_structure = proba[:, np.argsort(classes.columns)]
    return predicted_blocks(in_order_of_structure, structure, level)


def _the_partition(structure: Structure, level: str) -> Partition:
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"structure must be a RandomPartition to have levels, got {type(structure).__name__}, "
            "whose partitions change with every iteration; give the model a fixed structure"
        )
    partitions = structure.level(level).partitions
    if len(partitions) > 1:
        raise StructureError(
            f"level must have one partition, got {level!r} with {len(partitions)}, each of which "
            "cuts the classes differently; sum the columns of predict_proba over the one you mean"
        )
    return partitions[0]
