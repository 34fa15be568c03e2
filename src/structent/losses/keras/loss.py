"""The structured loss as a Keras loss."""

from __future__ import annotations

from typing import Any, Self

import keras  # type: ignore[import-untyped]  # Keras has no types

from structent.errors import StructureError
from structent.losses.keras.blocks import Blocks, Tensor, compute_dtype
from structent.losses.keras.coarse import coarse_table, sets_of, with_targets
from structent.losses.keras.formulas import losses
from structent.losses.keras.held import HeldBlocks, refuse_gradient
from structent.losses.keras.structures import checked_structure, to_json, with_structures
from structent.structure import PartitionSampler, RandomPartition, Targets, trivial


@keras.saving.register_keras_serializable(package="structent")
class StructuredCrossEntropy(keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    r"""Structured cross-entropy, in place of Keras's categorical cross-entropies.

    .. math::
        \ell(z, y) = \sum_t w_t \Big[ \log \sum_c e^{z_c} - \log \sum_{c \in B_t(y)} e^{z_c} \Big]

    The class axis is the last one. Targets are told apart by their shape alone: class indices where
    ``y_true`` has one axis less than ``y_pred``, or a last axis of length 1; otherwise one-hot rows
    or distributions. Class indices are faster. One that is no class makes its row NaN, since a
    traced step cannot raise.

    Parameters
    ----------
    structure
        A random partition, its classes in the order of the model's outputs; or a sampler, which
        needs a :class:`PartitionSchedule` among the callbacks of ``fit``.
    eval_structure
        What a sampler's loss is outside of training: the singletons if None.
    from_logits
        Whether ``y_pred`` holds logits. Keras's own losses expect probabilities, which are slower
        and less exact; here logits are the default.
    ignore_class
        A class index whose rows count nothing, as in ``SparseCategoricalCrossentropy``.
    targets
        Where rows are labelled by classes, blocks or sets of classes: what
        ``structure.encode(labels, allow_blocks=True)`` gave. ``y_true`` then has its codes, of
        these rows or others.
    reduction, name
        As in every Keras loss.

    Examples
    --------
    >>> import numpy as np
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> loss = StructuredCrossEntropy(plants)
    >>> a_tree = np.array([[20.0, 20.0, 0.0]])  # log 2 for the class, 0 for the tree, half of each
    >>> round(float(loss(np.array([0]), a_tree)), 3)
    0.347
    """

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        *,
        eval_structure: RandomPartition | None = None,
        from_logits: bool = True,
        ignore_class: int | None = None,
        targets: Targets | None = None,
        reduction: str | None = "sum_over_batch_size",
        name: str = "structured_cross_entropy",
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=compute_dtype())
        self.structure = structure
        self.eval_structure = eval_structure
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.targets = targets
        self._held: HeldBlocks | None = None
        if isinstance(structure, PartitionSampler):
            at_rest = trivial(structure.classes) if eval_structure is None else eval_structure
            self._held = HeldBlocks(structure, checked_structure(at_rest, structure.classes))
        elif eval_structure is not None:
            raise StructureError(
                "eval_structure must be None where the structure is the same at every step, "
                f"got {eval_structure!r}"
            )
        else:
            self._blocks = Blocks.of(checked_structure(structure))
        self._coarse = coarse_table(targets, structure.classes)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Return the loss of each row, in the shape of ``y_pred`` without its class axis."""
        blocks = self._blocks if self._held is None else self._held.blocks()
        if self._held is not None and not self._held.is_drawn:
            y_pred = refuse_gradient(y_pred)
        return losses(
            y_true,
            y_pred,
            blocks,
            from_logits=self.from_logits,
            ignore_class=self.ignore_class,
            coarse=self._coarse,
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the loss, the structures as JSON text."""
        return {
            **super().get_config(),
            "structure": to_json(self.structure),
            "eval_structure": self.eval_structure and to_json(self.eval_structure),
            "from_logits": self.from_logits,
            "ignore_class": self.ignore_class,
            "targets": sets_of(self.targets),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return the loss whose arguments :meth:`get_config` gave."""
        return cls(**with_targets(with_structures(config)))
