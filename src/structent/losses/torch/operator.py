"""The loss as custom operators, so that ``torch.compile`` traces it as one step.

The blocks and weights of the structure are inputs of the operators, and so is the number of the
training step for a drawn structure: nothing of them is frozen into a compiled graph.
"""

from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.torch.dispatch import losses_of_labels
from structent.losses.torch.formulas import (
    TensorLayout,
    gradient_of_distributions,
    loss_of_distributions,
)
from structent.structure import PartitionSampler


class Registered:
    """A sampler under a number, by which :func:`draw_partition` finds it while this lives.

    An operator takes no Python objects.
    """

    def __init__(self, sampler: PartitionSampler) -> None:
        self.sampler = sampler
        self.number = id(self)
        _registered[self.number] = self


_registered: "WeakValueDictionary[int, Registered]" = WeakValueDictionary()


@torch.library.custom_op("structent::draw_partition", mutates_args=())
def draw_partition(step: Tensor, sampler: int, n_partitions: int) -> tuple[Tensor, Tensor]:
    """Return block_of and weights of the partition that a sampler draws at a step."""
    structure = _registered[sampler].sampler.sample(int(step))
    if structure.n_partitions != n_partitions:
        raise RuntimeError(
            f"a sampler under torch.compile must draw {n_partitions} partitions at every step, "
            f"got {structure.n_partitions}"
        )
    block_of, weights = structure.block_of.copy(), structure.weights.copy()
    return torch.from_numpy(block_of).to(step.device), torch.from_numpy(weights).to(step.device)


@draw_partition.register_fake
def _(step: Tensor, sampler: int, n_partitions: int) -> tuple[Tensor, Tensor]:
    n_classes = len(_registered[sampler].sampler.classes)
    block_of = torch.empty((n_partitions, n_classes), dtype=torch.int32, device=step.device)
    return block_of, torch.empty(n_partitions, dtype=torch.float64, device=step.device)


@torch.library.custom_op("structent::losses_of_labels", mutates_args=())
def labels_operator(  # noqa: PLR0913, PLR0917  an operator takes no objects
    logits: Tensor,
    target: Tensor,
    block_of: Tensor,
    weights: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    with_gradient: bool,
    set_start: Tensor | None = None,
    set_members: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weighted losses, the gradient of each, and the sum of the weights.

    Where the target may have codes of sets, the classes of set s are
    ``set_members[set_start[s]:set_start[s + 1]]``.
    """
    layout, coarse = _layout(block_of, weights), None
    if set_start is not None and set_members is not None:
        sets = np.split(set_members.cpu().numpy(), set_start.cpu().numpy()[1:-1])
        coarse = CoarseLayouts.of(layout, [members.tolist() for members in sets])
    losses, _, gradient, total_weight = losses_of_labels(
        logits,
        target.long(),
        layout,
        weight,
        ignore_index,
        with_gradient=with_gradient,
        coarse=coarse,
    )
    if gradient is None:
        gradient = logits.new_empty(0)
    return torch.as_tensor(losses).view(target.shape), gradient, logits.new_tensor(total_weight)


@labels_operator.register_fake
def _(  # noqa: PLR0913, PLR0917
    logits: Tensor,
    target: Tensor,
    block_of: Tensor,  # noqa: ARG001  shapes follow from the others
    weights: Tensor,  # noqa: ARG001
    weight: Tensor | None,  # noqa: ARG001
    ignore_index: int,  # noqa: ARG001
    with_gradient: bool,
    set_start: Tensor | None = None,  # noqa: ARG001
    set_members: Tensor | None = None,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor]:
    return _fake(logits, target.shape, with_gradient)


@torch.library.custom_op("structent::losses_of_distributions", mutates_args=())
def distributions_operator(
    logits: Tensor, distributions: Tensor, block_of: Tensor, weights: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the losses of distributions, and the gradient of each."""
    layout = TensorLayout.of(_layout(block_of, weights), logits.device)
    n_classes, rows = logits.shape[1], (logits.shape[0], *logits.shape[2:])
    flat, p = (x.movedim(1, -1).reshape(-1, n_classes) for x in (logits, distributions))
    losses = loss_of_distributions(flat, p, layout).reshape(rows)
    gradient = logits.new_empty(0)
    if with_gradient:
        gradient = gradient_of_distributions(flat, p, layout)
        gradient = gradient.reshape(*rows, n_classes).movedim(-1, 1).contiguous()
    return losses, gradient, logits.new_empty(())


@distributions_operator.register_fake
def _(
    logits: Tensor,
    distributions: Tensor,  # noqa: ARG001  shapes follow from the others
    block_of: Tensor,  # noqa: ARG001
    weights: Tensor,  # noqa: ARG001
    with_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    return _fake(logits, torch.Size((logits.shape[0], *logits.shape[2:])), with_gradient)


def _fake(logits: Tensor, shape: torch.Size, with_gradient: bool) -> tuple[Tensor, Tensor, Tensor]:
    gradient = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    unwanted = logits.new_empty(0)
    return logits.new_empty(shape), gradient if with_gradient else unwanted, logits.new_empty(())


def _layout(block_of: Tensor, weights: Tensor) -> Layout:
    return Layout.from_arrays(block_of.cpu().numpy(), weights.cpu().numpy())


def _keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(output[1])
    ctx.n_inputs = len(inputs)


def _times_gradient(ctx: Any, grad_losses: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    return (gradient * grad_losses.unsqueeze(1), *(None,) * (ctx.n_inputs - 1))


for _operator in (labels_operator, distributions_operator):
    _operator.register_autograd(_times_gradient, setup_context=_keep_gradient)
