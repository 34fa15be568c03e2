"""Structured cross-entropy as a function, drop-in for ``torch.nn.functional.cross_entropy``."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from structent.errors import LabelError, StructureError
from structent.kernels.layout import Layout
from structent.losses.torch.operator import distributed, labelled
from structent.losses.torch.rows import check_labels, layout_of, losses_of_targets, rows_of_labels
from structent.structure import RandomPartition

REDUCTIONS = ("none", "mean", "sum")


def structured_cross_entropy(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    structure: RandomPartition,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Structured cross-entropy of logits: ``torch.nn.functional.cross_entropy`` with a structure.

    .. math:: \ell(z, y) = \sum_t w_t \left[ \operatorname{lse}(z)
              - \operatorname{lse}(z \text{ over } B_t(y)) \right]

    Parameters
    ----------
    input
        Logits, (classes,), (n, classes) or (n, classes, d1, ...).
    target
        Class indices, (), (n,) or (n, d1, ...), in the order of ``structure.classes``; or
        probabilities of the classes, in the shape of ``input``.
    structure
        How the classes are related. With ``trivial(classes)`` every option gives what torch gives.
    weight, ignore_index, reduction, label_smoothing
        As in torch; the mean divides as torch divides.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> logits = torch.log(torch.tensor([[0.25, 0.25, 0.5]]))
    >>> loss = structured_cross_entropy(logits, torch.tensor([0]), plants)
    >>> round(float(loss / torch.log(torch.tensor(2.0))), 6)  # (2 + 1) / 2 bits
    1.5
    """
    if not isinstance(structure, RandomPartition):
        raise StructureError(
            f"structure must be a RandomPartition, got {type(structure).__name__}; "
            "give sampler.sample(step), or use the module, which draws at each training step"
        )
    check_arguments(input, target, structure.n_classes)
    check_options(structure.n_classes, weight, reduction, label_smoothing)
    compiling = torch.compiler.is_compiling()
    return loss_of(
        input,
        target,
        _constant_arrays(structure) if compiling else layout_of(structure),
        weight,
        ignore_index,
        reduction,
        label_smoothing,
    )


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch's own
def _constant_arrays(structure: RandomPartition) -> tuple[Tensor, Tensor]:
    return arrays_of(structure)


def arrays_of(structure: RandomPartition) -> tuple[Tensor, Tensor]:
    """Return block_of and weights as tensors on the CPU: what a compiled graph takes as inputs."""
    return torch.from_numpy(structure.block_of.copy()), torch.from_numpy(structure.weights.copy())


def loss_of(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    structure: Layout | tuple[Tensor, Tensor],
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the loss of checked arguments; while compiling the structure is a pair of arrays."""
    logits = input if input.dtype in (torch.float32, torch.float64) else input.float()
    if logits.dim() == 1:
        logits, target = logits[None], target[None]
    if target.is_floating_point() or label_smoothing > 0:
        losses, divisor = _of_targets(
            logits, target, structure, weight, ignore_index, label_smoothing
        )
        loss = _reduced(losses, divisor, reduction)
    elif isinstance(structure, Layout):
        options = (target.long(), structure, weight, ignore_index, reduction)
        if _wanted(logits):
            loss = OfLabels.apply(logits, options)  # type: ignore[no-untyped-call]  # torch's own
        else:
            loss, _ = _loss_and_gradient(logits, options, with_gradient=False)
    else:
        losses, _, total = labelled(
            logits, target, *structure, weight, ignore_index, _wanted(logits)
        )
        loss = _reduced(losses, total, reduction)
    if reduction == "none" and input.dim() == 1:
        loss = loss[0]
    if loss.dtype == input.dtype or torch.is_autocast_enabled(input.device.type):
        return loss  # under autocast torch's cross-entropy returns float32
    return loss.to(input.dtype)


def _wanted(logits: Tensor) -> bool:
    return torch.is_grad_enabled() and logits.requires_grad


def _reduced(losses: Tensor, divisor: Tensor | float, reduction: str) -> Tensor:
    """Return the losses, their sum, or their mean as torch takes it."""
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / divisor


class OfLabels(torch.autograd.Function):
    """The loss of class-index targets, with the gradient taken in the same visit of the logits.

    Its options come as one tuple, (target, layout, weight, ignore_index, reduction): torch looks at
    every argument of a function, twice.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, options: tuple[Any, ...]) -> Tensor:
        """Return the reduced loss, and keep the gradient."""
        ctx.save_for_backward(logits)
        ctx.options = options
        loss, ctx.gradient = _loss_and_gradient(logits, options, with_gradient=True)
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, None]:
        """Return the gradient: handed out once without a copy, taken anew for a second backward."""
        if torch.is_grad_enabled():  # create_graph=True: the gradient is to be differentiated
            (logits,) = ctx.saved_tensors
            return _differentiable_gradient(logits, grad_output, *ctx.options), None
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            (logits,) = ctx.saved_tensors
            _, gradient = _loss_and_gradient(logits, ctx.options, with_gradient=True)
        if grad_output.dim() > 0:
            gradient.mul_(grad_output.unsqueeze(1))
        elif grad_output.item() != 1.0:
            gradient.mul_(grad_output)
        return gradient, None


def _loss_and_gradient(
    logits: Tensor, options: tuple[Any, ...], *, with_gradient: bool
) -> tuple[Tensor, Any]:
    target, layout, weight, ignore_index, reduction = options
    of_mean = reduction == "mean"
    rows, loss, gradient, total_weight = rows_of_labels(
        logits, target, layout, weight, ignore_index, with_gradient=with_gradient, of_mean=of_mean
    )
    if reduction == "none":
        return torch.as_tensor(rows).view(target.shape), gradient
    if of_mean:
        loss = loss / total_weight if total_weight else math.nan
    return torch.scalar_tensor(loss, dtype=logits.dtype, device=logits.device), gradient


def _differentiable_gradient(
    logits: Tensor,
    grad_output: Tensor,
    target: Tensor,
    layout: Layout,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    losses, divisor = _of_targets(logits, target, layout, weight, ignore_index, 0.0)
    loss = _reduced(losses, divisor, reduction)
    (gradient,) = torch.autograd.grad(loss, logits, grad_output, create_graph=True)
    return gradient


def check_arguments(input: Tensor, target: Tensor, n_classes: int) -> None:  # noqa: A002
    """Refuse logits and targets that do not fit each other or the structure."""
    usual = target.dim() == 1 and input.shape == (target.shape[0], n_classes)
    if usual and input.dtype == torch.float32 and target.dtype == torch.int64:
        return  # a look at everything else would take longer than a small batch
    if not input.is_floating_point():
        raise StructureError(f"logits must be floating-point numbers, got {input.dtype}")
    if input.dim() == 0:
        raise StructureError("logits must have an axis of classes, got a single number")
    columns = input.shape[0] if input.dim() == 1 else input.shape[1]
    if columns != n_classes:
        raise StructureError(f"structure covers {n_classes} classes but logits have {columns}")
    expected = tuple(input.shape)
    if not target.is_floating_point():
        expected = () if input.dim() == 1 else (*input.shape[:1], *input.shape[2:])
    if tuple(target.shape) != expected:
        raise LabelError(
            f"target must have shape {expected} for logits of shape {tuple(input.shape)}, got "
            f"{target.dtype} of shape {tuple(target.shape)}; probabilities have that of the logits"
        )


def check_options(
    n_classes: int, weight: Tensor | None, reduction: str, label_smoothing: float
) -> None:
    """Refuse options that torch would refuse, or that do not fit the structure."""
    if reduction not in REDUCTIONS:
        raise StructureError(f"reduction must be one of {REDUCTIONS}, got {reduction!r}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise StructureError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
    if weight is None:
        return
    if tuple(weight.shape) != (n_classes,):
        raise StructureError(
            f"weight must have one entry for each of the {n_classes} classes, "
            f"got shape {tuple(weight.shape)}"
        )
    looked_at = not (torch.compiler.is_compiling() or weight.is_meta)
    if looked_at and not bool(weight.isfinite().all()):
        raise StructureError("weight must hold finite numbers, got NaN or infinity")


def _of_targets(
    logits: Tensor,
    target: Tensor,
    structure: Layout | tuple[Tensor, Tensor],
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, Tensor | float]:
    """Return the losses of probabilities, or of smoothed labels, and what the mean divides by."""
    n_classes = logits.shape[1]
    kept: Tensor | None = None
    divisor: Tensor | float = logits.numel() / n_classes
    if target.is_floating_point():
        targets = target.to(logits.dtype)
    else:
        kept = target != ignore_index
        labels = torch.where(kept, target.long(), 0)
        if isinstance(structure, Layout):
            check_labels(labels, n_classes)
        targets = torch.nn.functional.one_hot(labels, n_classes).movedim(-1, 1).to(logits.dtype)
        divisor = (kept if weight is None else weight.to(logits.dtype)[labels] * kept).sum()
    if label_smoothing > 0:
        targets = targets * (1.0 - label_smoothing) + label_smoothing / n_classes
    if weight is not None:
        shape = (1, n_classes, *(1,) * (logits.dim() - 2))
        targets = targets * weight.to(logits.dtype).reshape(shape)
    if isinstance(structure, Layout):
        losses = losses_of_targets(logits, targets, structure)
    else:
        losses, _, _ = distributed(logits, targets, *structure, _wanted(logits))
    return losses if kept is None else torch.where(kept, losses, 0.0), divisor
