"""Structured cross-entropy as a module, drop-in for ``torch.nn.CrossEntropyLoss``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from structent.errors import StructureError
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.torch.dispatch import layout_of
from structent.losses.torch.functional import (
    Compiled,
    arrays_of,
    arrays_of_sets,
    check_arguments,
    check_options,
    loss_of,
    structured_cross_entropy,
)
from structent.losses.torch.operator import Registered, draw_partition
from structent.structure import LabelSets, PartitionSampler, RandomPartition, trivial
from structent.structure.samplers import checked_fixed
from structent.structure.targets import checked_label_sets


class StructuredCrossEntropy(nn.Module):
    """Structured cross-entropy: ``torch.nn.CrossEntropyLoss`` with a structure of the classes.

    Parameters
    ----------
    structure
        How the classes are related, in the order of the logits' columns. A sampler gives the
        paper's variable loss: in training mode each forward is one training step and draws a new
        partition. The number of steps is in the ``state_dict``. Do not use a sampler inside
        activation checkpointing, which runs the forward twice.
    weight, ignore_index, reduction, label_smoothing
        As in torch.
    eval_structure
        With a sampler, the structure in evaluation mode; None means the singletons.
    label_sets
        The result of ``structure.encode_with_blocks(labels)``, if rows are labelled by classes,
        blocks or sets of classes. The target of :meth:`forward` then has its codes, for these rows
        or others.

    Examples
    --------
    >>> from structent.structure.catalog import cifar100
    >>> loss = StructuredCrossEntropy(cifar100())
    >>> logits = torch.zeros(2, 100, requires_grad=True)
    >>> loss(logits, torch.tensor([3, 14])).backward()
    >>> logits.grad.shape
    torch.Size([2, 100])
    """

    weight: Tensor | None
    step: Tensor

    def __init__(
        self,
        structure: RandomPartition | PartitionSampler,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        eval_structure: RandomPartition | None = None,
        label_sets: LabelSets | None = None,
    ) -> None:
        super().__init__()
        self.sampler, self.structure = _sampler_and_structure(structure, eval_structure)
        if label_sets is not None:
            label_sets = checked_label_sets(label_sets, structure.classes)
        self.label_sets = label_sets
        self.layout = self._compiled(layout_of(self.structure))
        check_options(len(structure.classes), weight, reduction, label_smoothing)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing
        self.register_buffer("weight", weight)
        # Not buffers, so the structure keeps its precision if the module is converted or moved.
        self.arrays: tuple[Tensor, ...] = arrays_of(self.structure)
        self.arrays_of_sets: tuple[Tensor, ...] = ()
        if self.label_sets is not None:
            self.arrays_of_sets = arrays_of_sets(self.label_sets.coarse_sets)
        if self.sampler is not None:
            self.register_buffer("step", torch.zeros((), dtype=torch.int64, device="cpu"))
            self._n_drawn = self.sampler.sample(0).n_partitions
            self._registered = Registered(self.sampler)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002  torch's own name
        """Return the loss of logits and a target, shaped as for ``torch.nn.CrossEntropyLoss``."""
        with_sets = self.label_sets is not None
        check_arguments(input, target, self.structure.n_classes, with_sets=with_sets)
        return loss_of(
            input,
            target,
            self._structure_of_this_step(),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )

    def _structure_of_this_step(self) -> Compiled:
        compiling = torch.compiler.is_compiling()
        if self.sampler is None or not self.training:
            return (*self.arrays, *self.arrays_of_sets) if compiling else self.layout
        drawn: Compiled
        if compiling:
            arrays = draw_partition(self.step, self._registered.number, self._n_drawn)
            drawn = (*arrays, *self.arrays_of_sets)
        else:
            drawn = self._compiled(Layout.of(self.sampler.sample(int(self.step))))
        self.step.add_(1)  # in place: setting an attribute of a module takes longer
        return drawn

    def _compiled(self, layout: Layout) -> Layout | CoarseLayouts:
        if self.label_sets is None:
            return layout
        return CoarseLayouts.of(layout, self.label_sets.coarse_sets)

    @torch.no_grad()
    def level_losses(self, input: Tensor, target: Tensor) -> dict[str, Tensor]:  # noqa: A002
        """Return the loss at each level of the structure, coarsest first, for logging."""
        return {
            name: structured_cross_entropy(
                input,
                target,
                self.structure.level(name),
                weight=self.weight,
                ignore_index=self.ignore_index,
                reduction=self.reduction,
                label_smoothing=self.label_smoothing,
                label_sets=self.label_sets,
            )
            for name in self.structure.levels
        }

    def extra_repr(self) -> str:
        """Return what ``print`` shows of the module."""
        return f"{self.sampler or self.structure!r}, reduction={self.reduction!r}"

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move the module, but keep the step number on the CPU, where draws are made.

        If it were on another device, every draw would wait for that device.
        """
        step = self._buffers.get("step")
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch's own
        if step is not None:
            self.step = step
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch's own
        if self.sampler is not None:
            self._registered = Registered(self.sampler)


def _sampler_and_structure(
    structure: Any, eval_structure: RandomPartition | None
) -> tuple[PartitionSampler | None, RandomPartition]:
    """Return the sampler or None, and the structure that is used if nothing is drawn."""
    if isinstance(structure, RandomPartition):
        if eval_structure is not None:
            raise StructureError("eval_structure goes with a sampler, got a fixed structure")
        return None, structure
    if not isinstance(structure, PartitionSampler):
        raise StructureError(
            "structure must be a RandomPartition, or a sampler with classes and "
            f"sample(iteration), got {type(structure).__name__}"
        )
    if eval_structure is None:
        return structure, trivial(structure.classes)
    fixed = checked_fixed(eval_structure, "eval_structure")
    if fixed.classes != structure.classes:
        raise StructureError("eval_structure must have the classes of the sampler, in their order")
    return structure, fixed
