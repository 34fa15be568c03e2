"""The schedule of a sampler: a new partition for each training batch."""

from __future__ import annotations

from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types

from structent.errors import StructureError
from structent.losses.keras.loss import StructuredCrossEntropy


class PartitionSchedule(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """The callback that gives the loss of a sampler a new partition for every training batch.

    Batch i trains on ``sample(i)``, where i counts on from the iterations of the model's optimizer:
    through the epochs, a second ``fit``, and a model that was saved and loaded. Evaluation, during
    and after ``fit``, is on the loss's ``eval_structure``.

    The partition is an input of the training step, which is traced once. So every draw must have as
    many partitions as the first, and ``steps_per_execution`` must be 1.

    Parameters
    ----------
    loss
        The loss that the model is compiled with, e.g. ``model.loss``.

    Examples
    --------
    >>> import numpy as np
    >>> from structent import LabelGraph, SpanningTreePartitions
    >>> square = LabelGraph([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> sampler = SpanningTreePartitions(square, n_blocks=2, singleton_weight=0.5)
    >>> model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(4)])
    >>> model.compile("sgd", StructuredCrossEntropy(sampler))
    >>> schedule = PartitionSchedule(model.loss)
    >>> history = model.fit(np.eye(5), np.array([0, 1, 2, 3, 0]), callbacks=[schedule], verbose=0)
    """

    def __init__(self, loss: StructuredCrossEntropy) -> None:
        super().__init__()
        if not isinstance(loss, StructuredCrossEntropy) or loss._held is None:
            raise StructureError(
                f"loss must be a StructuredCrossEntropy of a sampler, got {loss!r}; a structure "
                "that is the same at every step needs no schedule"
            )
        self.loss = loss
        self._held = loss._held
        self._iteration = 0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Make the drawn partition part of the model's state."""
        if self.model.steps_per_execution != 1:
            raise StructureError(
                "steps_per_execution must be 1 for a partition to be drawn at each step, "
                f"got {self.model.steps_per_execution}"
            )
        self._held.attach(self.model)
        # Mixed precision wraps the optimizer, and gradients may be gathered over several batches.
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        batches = getattr(optimizer, "gradient_accumulation_steps", None) or 1
        self._iteration = int(optimizer.iterations) * batches

    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """Draw the partition of the next iteration."""
        self._bring_state_back()
        self._held.draw(self._iteration)
        self._iteration += 1

    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Evaluate on the structure that is named for it; the next training batch draws anew."""
        self._bring_state_back()
        self._held.rest()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Leave the model as it was: training it without a schedule is refused again."""
        self._held.rest()
        self._held.detach(self.model)

    def _bring_state_back(self) -> None:
        """Let Keras put the state that its JAX trainer carries along back into the variables.

        To read ``model`` does that; the trainer then takes its state from the variables again, and
        with it the partition that was drawn in between.
        """
        _ = self.model
