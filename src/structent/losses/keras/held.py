"""The partition that the loss of a sampler holds, as state of the model that is trained."""

from __future__ import annotations

from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from keras import ops

from structent.errors import StructureError
from structent.kernels.layout import Layout
from structent.losses.keras.blocks import (
    Blocks,
    Step,
    Tensor,
    View,
    compute_dtype,
    numbered_from_zero,
)
from structent.structure import PartitionSampler, RandomPartition


class HeldBlocks(keras.metrics.Metric):  # type: ignore[misc]  # Keras has no types
    """The partition that the loss of a sampler holds at the moment.

    A metric, because the variables of a model's metrics are inputs of its traced steps, are none of
    its weights, and are not saved. It reports nothing.
    """

    def __init__(self, sampler: PartitionSampler, at_rest: RandomPartition) -> None:
        super().__init__(name="held_partition", dtype=compute_dtype())
        self._sampler = sampler
        self._at_rest = at_rest
        self._n_partitions = max(map(_n_coarse, (sampler.sample(0), at_rest)))
        # Variables made from an array: what reads them in a step that they are no input of, fails.
        self.block_of = keras.Variable(
            np.zeros((self._n_partitions, at_rest.n_classes), np.int32), trainable=False
        )
        self.weights = keras.Variable(
            np.zeros(1 + self._n_partitions), dtype=self.dtype, trainable=False, autocast=False
        )
        self.rest()

    def draw(self, iteration: int) -> None:
        """Hold the partition of an iteration."""
        drawn = self._sampler.sample(iteration)
        if _n_coarse(drawn) > self._n_partitions:
            raise StructureError(
                f"every draw must have as many partitions as the first, {self._n_partitions} and "
                f"the singletons, got {_n_coarse(drawn)} at iteration {iteration}; the arrays of a "
                "traced step have one shape"
            )
        self._hold(drawn)
        self.is_drawn = True

    def rest(self) -> None:
        """Hold the structure for evaluation."""
        self._hold(self._at_rest)
        self.is_drawn = False

    def blocks(self) -> Blocks:
        """Return the blocks that are held, with a weight of 0 for those that are not there."""
        n_classes = self._at_rest.n_classes
        held = [(self.weights[1 + t], self.block_of[t]) for t in range(self._n_partitions)]
        return Blocks(
            n_classes=n_classes,
            total_weight=ops.sum(self.weights),
            singleton_weight=self.weights[0],
            views=tuple(View(weight, row) for weight, row in held),
            chains=tuple((Step(weight, row, n_classes),) for weight, row in held),
        )

    def attach(self, model: Any) -> None:
        """Become part of the state of a model."""
        # The list itself, because a model that is built takes no attribute with state any more.
        self.detach(model)
        model._metrics.append(self)
        if self not in model.metrics:
            self.detach(model)
            raise StructureError(
                "the metrics of the model must include what the callbacks add to it; extend "
                "super().metrics where the model has a property of that name"
            )

    def detach(self, model: Any) -> None:
        """Be no part of a model any more, so that its traced steps are not valid without it."""
        if self in model._metrics:
            model._metrics.remove(self)

    def reset_state(self) -> None:
        """Rest: Keras resets metrics when an epoch begins, and when an evaluation does."""
        self.rest()

    def result(self) -> dict[str, Tensor]:
        """Return nothing to report."""
        return {}

    def _hold(self, structure: RandomPartition) -> None:
        layout = Layout.of(structure)
        block_of = np.zeros(self.block_of.shape, np.int32)
        weights = np.zeros(self.weights.shape)
        for t, row in enumerate(numbered_from_zero(layout)):
            block_of[t] = row
        weights[0] = layout.singleton_weight
        weights[1 : 1 + layout.n_partitions] = layout.weights
        self.block_of.assign(block_of)
        self.weights.assign(weights)


def refuse_gradient(y_pred: Tensor) -> Tensor:
    """Return what was given, but raise where a gradient is asked for, in any backend."""
    return ops.custom_gradient(_with_refusal)(y_pred)


def _with_refusal(y_pred: Tensor) -> tuple[Tensor, Any]:
    def gradient(*args: Any, **kwargs: Any) -> None:  # noqa: ARG001  as each backend calls it
        raise StructureError(
            "the loss of a sampler must be trained with a schedule, got none; "
            "fit(..., callbacks=[PartitionSchedule(loss)]) draws a partition for each batch"
        )

    return y_pred, gradient


def _n_coarse(structure: RandomPartition) -> int:
    """How many partitions a structure has, the singletons aside."""
    return sum(not partition.is_singletons for partition in structure.partitions)
