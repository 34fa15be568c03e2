"""The losses that networks are trained with: the paper's three, and what others would have used."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError
from structent.experiments.cifar100.names import OTHER_LOSSES, PAPER_LOSSES
from structent.losses.keras import StructuredCrossEntropy
from structent.structure import RandomPartition, hxe

SMOOTHING = 0.1


class TrainingLoss(NamedTuple):
    """A Keras loss, and what it compares the logits of a class with: one row a class."""

    loss: Any
    targets: Any


def training_loss(name: str, structure: RandomPartition) -> TrainingLoss:
    """Return the loss of a name.

    "standard" is cross-entropy and "structured" the paper's loss; "scrambled" the same with the
    classes shuffled, by one permutation for all trials, as in Experiment 1B. "label smoothing"
    moves a tenth of the label to all classes. "hierarchical a" is Bertinetto's hierarchical
    cross-entropy with alpha = a, and "soft labels b" their soft labels with beta = b.

    Parameters
    ----------
    name
        The name.
    structure
        The hierarchy of the classes.
    """
    kind, parameter = _kind_and_parameter(name)
    if kind == "standard":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return TrainingLoss(loss, np.arange(structure.n_classes))
    if kind == "structured":
        return _with_blocks(structure)
    if kind == "scrambled":
        return _with_blocks(structure.scramble(np.random.default_rng(0)))
    if kind == "hierarchical":
        return _with_blocks(structure.reweight(hxe(parameter)(structure.n_partitions)))
    if kind == "soft labels":
        return _with_rows(soft_labels(structure, parameter))
    return _with_rows(smoothed_labels(structure.n_classes))


def soft_labels(structure: RandomPartition, beta: float) -> FloatArray:
    """Return the soft labels of Bertinetto et al. (2020), one row a true class.

    The probability of a class is proportional to exp(-beta d), where d is the height of the lowest
    common ancestor with the true class, as a share of the height of the tree.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)})
    >>> soft_labels(plants, beta=2 * np.log(2)).round(3).tolist()[0]  # 1 : 1/2 : 1/4
    [0.571, 0.286, 0.143]
    """
    classes = structure.classes
    distance = np.array([[structure.distance(a, b) for b in classes] for a in classes])
    closeness = np.exp(-beta * distance / distance.max())
    shares: FloatArray = closeness / closeness.sum(axis=1, keepdims=True)
    return shares


def smoothed_labels(n_classes: int) -> FloatArray:
    """Return labels of which a tenth is shared out among all classes, one row a true class.

    >>> smoothed_labels(2).round(3).tolist()
    [[0.95, 0.05], [0.05, 0.95]]
    """
    return (1.0 - SMOOTHING) * np.eye(n_classes) + SMOOTHING / n_classes


def _kind_and_parameter(name: str) -> tuple[str, float]:
    """Return what a loss is, and its parameter, which is 0 where it has none."""
    known = (*PAPER_LOSSES, "scrambled", *OTHER_LOSSES)
    if name not in known:
        raise StructentError(f"the loss must be {', '.join(known)}, got {name!r}")
    kind, _, parameter = name.rpartition(" ")
    if kind in ("hierarchical", "soft labels"):
        return kind, float(parameter)
    return name, 0.0


def _with_blocks(structure: RandomPartition) -> TrainingLoss:
    return TrainingLoss(StructuredCrossEntropy(structure), np.arange(structure.n_classes))


def _with_rows(rows: FloatArray) -> TrainingLoss:
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    return TrainingLoss(loss, rows.astype(np.float32))
