"""Metrics that know the structure: the mean structured loss, and accuracy by blocks."""

from __future__ import annotations

from typing import Any, Self

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from keras import ops

from structent.losses.keras.blocks import Blocks, Tensor, compute_dtype
from structent.losses.keras.formulas import (
    CoarseTable,
    holds_class_indices,
    known_labels,
    losses,
)
from structent.losses.keras.loss import arguments_of, to_json, to_sets
from structent.structure import LabelSets, RandomPartition
from structent.structure.samplers import checked_fixed


@keras.saving.register_keras_serializable(package="structent")
class StructuredLogLoss(keras.metrics.MeanMetricWrapper):  # type: ignore[misc]  # Keras has no types
    """The mean structured cross-entropy, as a metric.

    Parameters
    ----------
    structure
        A random partition; where the loss has a sampler, the metric needs a structure of its own.
    from_logits
        Whether ``y_pred`` holds logits.
    label_sets
        As in :class:`StructuredCrossEntropy`.
    name, dtype
        As in every Keras metric.

    Examples
    --------
    >>> from structent import trivial
    >>> metric = StructuredLogLoss(trivial(["heads", "tails"]))
    >>> round(float(metric(np.array([0, 1]), np.array([[0.0, 0.0], [5.0, 5.0]]))), 3)
    0.693
    """

    def __init__(
        self,
        structure: RandomPartition,
        *,
        from_logits: bool = True,
        label_sets: LabelSets | None = None,
        name: str = "structured_log_loss",
        dtype: str | None = None,
    ) -> None:
        super().__init__(self._losses, name=name, dtype=dtype)
        self.structure = structure
        self.from_logits = from_logits
        self.label_sets = label_sets
        self._blocks = Blocks.of(checked_fixed(structure))
        self._coarse = CoarseTable.of(label_sets, structure.classes)

    def _losses(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true, y_pred = (ops.convert_to_tensor(y, dtype=compute_dtype()) for y in (y_true, y_pred))
        return losses(
            y_true,
            y_pred,
            self._blocks,
            from_logits=self.from_logits,
            ignore_class=None,
            coarse=self._coarse,
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the metric, the structure as JSON text."""
        return {
            **keras.metrics.Metric.get_config(self),
            "structure": to_json(self.structure),
            "from_logits": self.from_logits,
            "label_sets": to_sets(self.label_sets),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return the metric whose arguments :meth:`get_config` gave."""
        return cls(**arguments_of(config))


@keras.saving.register_keras_serializable(package="structent")
class BlockAccuracy(keras.metrics.MeanMetricWrapper):  # type: ignore[misc]  # Keras has no types
    """How often the likeliest class is in the true block of a level.

    Where a level has several partitions, their accuracies are averaged by weight. The true class of
    a distribution is its likeliest one.

    Parameters
    ----------
    structure
        The structure that has the level.
    level
        One of ``structure.levels``.
    name, dtype
        As in every Keras metric; the default name is ``"<level>_accuracy"``.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> accuracy = BlockAccuracy(plants, "level 1")
    >>> taken_for_maple = np.array([[0.0, 3.0, 1.0]])
    >>> float(accuracy(np.array([0]), taken_for_maple))
    1.0
    """

    def __init__(
        self,
        structure: RandomPartition,
        level: str,
        *,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        scored = checked_fixed(structure).level(level)
        super().__init__(
            self._hits, name=name or f"{level}_accuracy".replace(" ", "_"), dtype=dtype
        )
        self.structure = structure
        self.level = level
        self._block_of = ops.convert_to_tensor(scored.block_of)
        self._weights = ops.convert_to_tensor(scored.weights, dtype=compute_dtype())

    def _hits(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        n_classes = self.structure.n_classes
        if not holds_class_indices(y_true, y_pred, n_classes):
            y_true = ops.argmax(y_true, axis=-1)
        labels, known = known_labels(ops.reshape(ops.cast(y_true, "int32"), (-1,)), n_classes)
        guessed = ops.reshape(ops.argmax(y_pred, axis=-1), (-1,))
        true_block, guessed_block = (
            ops.take(self._block_of, c, axis=1) for c in (labels, guessed)
        )  # (partitions, n)
        hit = ops.cast(ops.equal(true_block, guessed_block), self._weights.dtype)
        share = ops.where(known, ops.matmul(self._weights, hit), np.nan)
        return ops.reshape(share, ops.shape(y_pred)[:-1])

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the metric, the structure as JSON text."""
        return {
            **keras.metrics.Metric.get_config(self),
            "structure": to_json(self.structure),
            "level": self.level,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return the metric whose arguments :meth:`get_config` gave."""
        return cls(**arguments_of(config))
