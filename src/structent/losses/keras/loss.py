"""The structured loss as a Keras loss, and the callback that draws partitions for it."""

from __future__ import annotations

from typing import Any, Self

import keras  # type: ignore[import-untyped]  # Keras has no types

from structent.errors import StructureError
from structent.losses.keras.blocks import Blocks, HeldBlocks, Tensor, compute_dtype, refuse_gradient
from structent.losses.keras.formulas import CoarseTable, losses
from structent.structure import LabelSets, PartitionSampler, RandomPartition, files, trivial
from structent.structure.samplers import checked_fixed, checked_structure


@keras.saving.register_keras_serializable(package="structent")
class StructuredCrossEntropy(keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    r"""Structured cross-entropy, in place of Keras's categorical cross-entropies.

    .. math::
        \ell(z, y) = \sum_t w_t \Big[ \log \sum_c e^{z_c} - \log \sum_{c \in B_t(y)} e^{z_c} \Big]

    The class axis is the last one. The shape of ``y_true`` says what it holds: class indices if it
    has one axis less than ``y_pred`` or a last axis of length 1; otherwise distributions, such as
    one-hot rows. Class indices are faster. An index that is not a class makes its row
    NaN, since a traced step cannot raise.

    Parameters
    ----------
    structure
        A random partition with its classes in the order of the model's outputs, or a sampler, which
        needs a :class:`PartitionSchedule` among the callbacks of ``fit``.
    eval_structure
        With a sampler, the structure outside of training; None means the singletons.
    from_logits
        Whether ``y_pred`` holds logits. Keras's own losses expect probabilities, which are slower
        and less exact; here logits are the default.
    ignore_class
        A class index whose rows are ignored, as in ``SparseCategoricalCrossentropy``.
    label_sets
        The result of ``structure.encode_with_blocks(labels)``, if rows are labelled by classes,
        blocks or sets of classes. ``y_true`` then has its codes, for these rows or others.
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
        label_sets: LabelSets | None = None,
        reduction: str | None = "sum_over_batch_size",
        name: str = "structured_cross_entropy",
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=compute_dtype())
        self.structure = structure = checked_structure(structure)
        self.eval_structure = eval_structure
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.label_sets = label_sets
        self._held: HeldBlocks | None = None
        if isinstance(structure, PartitionSampler):
            at_rest = trivial(structure.classes) if eval_structure is None else eval_structure
            self._held = HeldBlocks(structure, _checked_eval_structure(at_rest, structure))
        elif eval_structure is not None:
            raise StructureError(
                "eval_structure must be None where the structure is the same at every step, "
                f"got {eval_structure!r}"
            )
        else:
            self._blocks = Blocks.of(checked_fixed(structure))
        self._coarse = CoarseTable.of(label_sets, structure.classes)

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
            "label_sets": to_sets(self.label_sets),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return the loss whose arguments :meth:`get_config` gave."""
        return cls(**arguments_of(config))


class PartitionSchedule(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """The callback that gives the loss of a sampler a new partition for every training batch.

    Batch i trains on ``sample(i)``. The count i continues the iterations of the model's optimizer:
    over epochs, in a second ``fit``, and after a model is saved and loaded. Evaluation, during and
    after ``fit``, uses the loss's ``eval_structure``.

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
        # Mixed precision wraps the optimizer, and gradients may be accumulated over batches.
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        batches = getattr(optimizer, "gradient_accumulation_steps", None) or 1
        self._iteration = int(optimizer.iterations) * batches

    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """Draw the partition of the next iteration."""
        self._bring_state_back()
        self._held.draw(self._iteration)
        self._iteration += 1

    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Evaluate on the loss's ``eval_structure``; the next training batch draws again."""
        self._bring_state_back()
        self._held.rest()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Leave the model as it was: training it without a schedule is refused again."""
        self._held.rest()
        self._held.detach(self.model)

    def _bring_state_back(self) -> None:
        """Make Keras copy the state that its JAX trainer holds back into the variables.

        Reading ``model`` does that. The trainer then takes its state from the variables again,
        including the partition that was drawn in between.
        """
        _ = self.model


def to_json(structure: Any) -> str:
    """Return the text of a structure or sampler that a configuration keeps."""
    try:
        return files.structure_to_json(structure)
    except StructureError as error:
        raise StructureError(f"{error}; save only the weights of the model") from None


def to_sets(label_sets: LabelSets | None) -> list[list[int]] | None:
    """Return the sets of classes that a configuration keeps; the codes of rows are not kept."""
    return None if label_sets is None else [list(members) for members in label_sets.coarse_sets]


def arguments_of(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments in a configuration, built from its JSON text and lists."""
    names = [name for name in ("structure", "eval_structure") if config.get(name) is not None]
    arguments = {**config, **{name: files.structure_from_json(config[name]) for name in names}}
    if config.get("label_sets") is not None:
        classes = arguments["structure"].classes
        arguments["label_sets"] = LabelSets.of_sets(config["label_sets"], classes)
    return arguments


def _checked_eval_structure(structure: Any, sampler: PartitionSampler) -> RandomPartition:
    fixed = checked_fixed(structure, "eval_structure")
    if fixed.classes != sampler.classes:
        raise StructureError(
            f"eval_structure must have the {len(sampler.classes)} classes of the sampler in their "
            f"order, got {fixed!r}"
        )
    return fixed
