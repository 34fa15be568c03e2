"""The loss as custom operators, so that ``torch.compile`` traces it as one step.

The blocks and weights of the structure are inputs of the operators, and for a drawn structure so is
the number of the training step. None of them is frozen into a compiled graph.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.torch.dispatch import (
    losses_of_labels,
    portable_losses_of_labels,
    tensor_layout_of,
)
from structent.losses.torch.formulas import gradient_of_distributions, loss_of_distributions
from structent.structure import PartitionSampler


class Registered:
    """A sampler and the number by which :func:`draw_partition` finds it while this object lives.

    An operator cannot take Python objects.
    """

    def __init__(self, sampler: PartitionSampler) -> None:
        self.sampler = sampler
        self.number = id(self)
        _registered[self.number] = self


_registered: "WeakValueDictionary[int, Registered]" = WeakValueDictionary()


class _Layouts:
    """The last few layouts of tensors that a compiled graph gives to the operators.

    Unless a structure is drawn, a graph gives the same tensors in every step. They are identified
    by their memory, and kept with their layout so that no other tensor can get that memory.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._kept: dict[tuple[int, ...], tuple[tuple[Tensor, ...], Any]] = {}

    def of(self, block_of: Tensor, weights: Tensor) -> Layout:
        """Return the layout of partitions."""

        def made() -> Layout:
            return Layout.from_arrays(block_of.numpy(), weights.numpy())

        layout: Layout = self._kept_or((block_of, weights), made)
        return layout

    def of_sets(self, layout: Layout, start: Tensor, members: Tensor) -> CoarseLayouts:
        """Return the layouts of sets of classes, given the layout of their structure."""

        def made() -> CoarseLayouts:
            sets = np.split(members.numpy(), start.numpy()[1:-1])
            return CoarseLayouts.of(layout, [classes.tolist() for classes in sets])

        coarse: CoarseLayouts = self._kept_or((start, members), made, id(layout))
        return coarse

    def _kept_or(self, given: tuple[Tensor, ...], made: Callable[[], Any], *key: int) -> Any:
        place = (*(tensor.data_ptr() for tensor in given), *key)
        with self._lock:
            found = self._kept.pop(place, None) or (given, made())
            self._kept[place] = found  # at the end, because it was used last
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return found[1]


_layouts = _Layouts(most=16)


@torch.library.custom_op("structent::draw_partition", mutates_args=())
def draw_partition(step: Tensor, sampler: int, n_partitions: int) -> tuple[Tensor, Tensor]:
    """Return block_of and weights of the partition that a sampler draws at a step, on the CPU."""
    structure = _registered[sampler].sampler.sample(int(step))
    if structure.n_partitions != n_partitions:
        raise RuntimeError(
            f"a sampler under torch.compile must draw {n_partitions} partitions at every step, "
            f"got {structure.n_partitions}"
        )
    return torch.from_numpy(structure.block_of.copy()), torch.from_numpy(structure.weights.copy())


@draw_partition.register_fake
def _(step: Tensor, sampler: int, n_partitions: int) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    n_classes = len(_registered[sampler].sampler.classes)
    block_of = torch.empty((n_partitions, n_classes), dtype=torch.int32, device="cpu")
    return block_of, torch.empty(n_partitions, dtype=torch.float64, device="cpu")


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
    layout = _layouts.of(block_of, weights)
    coarse = None
    if set_start is not None and set_members is not None:
        coarse = _layouts.of_sets(layout, set_start, set_members)
    given = (logits, target.long(), layout, weight, ignore_index)
    if logits.is_cpu:
        found, gradient = losses_of_labels(*given, with_gradient=with_gradient, coarse=coarse)
        losses = torch.from_numpy(found.rows).view(target.shape)
        total_weight = logits.new_tensor(found.total_weight)
    else:
        losses, gradient, total_weight = portable_losses_of_labels(
            *given, with_gradient=with_gradient, coarse=coarse
        )
    return losses, logits.new_empty(0) if gradient is None else gradient, total_weight


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
    layout = tensor_layout_of(_layouts.of(block_of, weights), logits.device)
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


def _keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(output[1])
    ctx.n_inputs = len(inputs)


def _times_gradient(ctx: Any, grad_losses: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    return (gradient * grad_losses.unsqueeze(1), *(None,) * (ctx.n_inputs - 1))


for _operator in (labels_operator, distributions_operator):
    _operator.register_autograd(_times_gradient, setup_context=_keep_gradient)
