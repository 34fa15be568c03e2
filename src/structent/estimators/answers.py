"""Answers of any granularity: for each row the smallest set of its chain that can be trusted.

:mod:`structent.decisions` has the mathematics. Here it is applied to a model: its probabilities,
the order of its classes, its structure, and the scores of held-out rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from structent._checks import checked_distribution
from structent._typing import FloatArray
from structent.decisions import HedgedPredictions, block_scores, calibrated_hedge, hedge
from structent.errors import LabelError, StructureError
from structent.estimators.classes import Classes
from structent.structure import Partition, RandomPartition
from structent.structure.labels import label_array
from structent.structure.samplers import Structure


def calibration_scores(
    y: Any, proba: NDArray[Any], classes: NDArray[Any], structure: Structure | None
) -> FloatArray:
    """Return the sorted scores of held-out rows, which serve every confidence.

    Parameters
    ----------
    y
        The true class of each row, (n,).
    proba
        The probabilities that a model gives to the rows, (n, classes).
    classes
        The class of each column.
    structure
        The structure of the model; it must be fixed.
    """
    fixed = _fixed(structure, "calibrate_blocks")
    if y is None:
        raise LabelError("calibrate_blocks needs the label of every row, got None for y")
    check_consistent_length(proba, y)
    return np.sort(block_scores(y, proba, fixed, classes=classes))


def block_answers(
    proba: NDArray[Any],
    classes: NDArray[Any],
    structure: Structure | None,
    scores: FloatArray | None,
    confidence: float,
) -> HedgedPredictions:
    """Return the answer for each row, with a guarantee if there are scores.

    Parameters
    ----------
    proba, classes, structure
        As in :func:`calibration_scores`.
    scores
        The scores of held-out rows; None for a model that was not calibrated, whose own
        probabilities are used then.
    confidence
        The coverage that the answers should have.
    """
    fixed = _fixed(structure, "predict_blocks")
    if scores is None:
        return hedge(proba, fixed, confidence, classes=classes)
    return calibrated_hedge(proba, fixed, confidence, scores, classes=classes)


def _fixed(structure: Structure | None, method: str) -> RandomPartition:
    if structure is None:
        raise StructureError(
            f"{method} needs a model with a structure, got structure=None; "
            "predict gives the classes"
        )
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"{method} needs a model whose blocks stay the same, got {type(structure).__name__}, "
            "which draws new ones in every round; train with a fixed structure, such as its "
            "sample(0), or give that to structent.decisions.hedge with predict_proba"
        )
    return structure


def predicted_blocks(proba: ArrayLike, structure: Structure, level: str) -> NDArray[np.str_]:
    """Return the name of the most probable block of a level for each row, (n,).

    The names are the same as those of :meth:`Partition.coarsen` for the true labels, so that the
    two can be compared. The most probable block need not contain the most probable class.

    Parameters
    ----------
    proba
        Probabilities of the classes, (n, classes), in the order of the structure's classes.
    structure
        A structure with levels, not a sampler.
    level
        The name of a level that has one partition. The rotations of a circle and the cuts of an
        ordinal scale are one level of many partitions, which have no single answer.

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
    predicted: NDArray[np.str_] = label_array(partition.names)[blocks.argmax(axis=1)]
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
