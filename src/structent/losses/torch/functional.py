"""Structured cross-entropy as a function, drop-in for ``torch.nn.functional.cross_entropy``."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from torch import Tensor

from structent.errors import LabelError, StructureError
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.losses.torch.dispatch import (
    check_labels,
    coarse_layouts_of,
    layout_of,
    loss_in_one_call,
    losses_of_codes,
    losses_of_distributions,
    losses_of_labels,
    members_on,
    portable_losses_of_labels,
    row_weights,
)
from structent.losses.torch.operator import distributions_operator, labels_operator
from structent.losses.torch.private import transforms_are_active
from structent.structure import LabelSets, RandomPartition
from structent.structure.targets import checked_label_sets

_REDUCTIONS = ("none", "mean", "sum")

# The forms of a structure that the loss takes: compiled once in eager mode; under torch.compile the
# tensors block_of and weights and, with sets of classes, the start of each set and all classes.
Compiled: TypeAlias = Layout | CoarseLayouts | tuple[Tensor, ...]


def structured_cross_entropy(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    structure: RandomPartition,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    label_sets: LabelSets | None = None,
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
        distributions over the classes (torch calls them probabilities), in the shape of ``input``.
    structure
        How the classes are related. With ``trivial(classes)`` every option gives what torch gives.
    weight, ignore_index, reduction, label_smoothing
        As in torch, including the divisor of the mean.
    label_sets
        The result of ``structure.encode_with_blocks(labels)``, if rows are labelled by classes,
        blocks or sets of classes. ``target`` then has its codes. A row with the set C has the loss
        :math:`-\sum_t w_t \log Q(A_t)`, where :math:`A_t` is the block of partition t that holds C,
        or C itself if no block does. The weight of the row is the mean weight of the classes of C.

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
    check_arguments(input, target, structure.n_classes, with_sets=label_sets is not None)
    check_options(structure.n_classes, weight, reduction, label_smoothing)
    if torch.compiler.is_compiling():
        compiled: Compiled = _constant_arrays(structure, label_sets)
    else:
        compiled = layout_of(structure)
        if label_sets is not None:
            sets = checked_label_sets(label_sets, structure.classes).coarse_sets
            compiled = coarse_layouts_of(compiled, sets)
    return loss_of(input, target, compiled, weight, ignore_index, reduction, label_smoothing)


def check_arguments(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    n_classes: int,
    *,
    with_sets: bool,
) -> None:
    """Refuse logits and a target that do not fit each other or the structure."""
    usual = target.dim() == 1 and input.shape == (target.shape[0], n_classes)
    if usual and input.dtype == torch.float32 and target.dtype == torch.int64:
        return  # the other checks take longer than a small batch
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
            f"{target.dtype} of shape {tuple(target.shape)}; distributions have the logits' shape"
        )
    if with_sets and target.is_floating_point():
        raise LabelError(
            f"target must have the codes of label_sets= as integers, got {target.dtype}; leave "
            "label_sets out where target has distributions"
        )


def check_options(
    n_classes: int, weight: Tensor | None, reduction: str, label_smoothing: float
) -> None:
    """Refuse options that torch would refuse, or that do not fit the structure."""
    if reduction not in _REDUCTIONS:
        raise StructureError(f"reduction must be one of {_REDUCTIONS}, got {reduction!r}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise StructureError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
    if weight is None:
        return
    if tuple(weight.shape) != (n_classes,):
        raise StructureError(
            f"weight must have one entry for each of the {n_classes} classes, "
            f"got shape {tuple(weight.shape)}"
        )
    looked_at = weight.is_cpu and not torch.compiler.is_compiling()
    if looked_at and not bool(weight.isfinite().all()):
        raise StructureError("weight must hold finite numbers, got NaN or infinity")


def arrays_of(structure: RandomPartition) -> tuple[Tensor, Tensor]:
    """Return block_of and weights as tensors on the CPU: the inputs of a compiled graph."""
    return torch.from_numpy(structure.block_of.copy()), torch.from_numpy(structure.weights.copy())


def arrays_of_sets(sets: tuple[tuple[int, ...], ...]) -> tuple[Tensor, Tensor]:
    """Return sets of classes as tensors: their starts and the last end, and their classes."""
    start = torch.tensor([0, *map(len, sets)], dtype=torch.int64).cumsum(0)
    return start, torch.tensor([c for members in sets for c in members], dtype=torch.int64)


def loss_of(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    structure: Compiled,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the loss of checked arguments; under torch.compile the structure is tensors."""
    logits = input if input.dtype in (torch.float32, torch.float64) else input.float()
    if logits.dim() == 1:
        logits, target = logits[None], target[None]
    if target.is_floating_point() or label_smoothing > 0 or transforms_are_active():
        losses, divisor = _of_distributions(
            logits, target, structure, weight, ignore_index, label_smoothing
        )
        loss = _reduced(losses, divisor, reduction)
    elif isinstance(structure, tuple):
        losses, divisor = _by_operator(logits, target, structure, weight, ignore_index)
        loss = _reduced(losses, divisor, reduction)
    else:
        labels = target if target.dtype == torch.int64 else target.long()
        loss = _of_labels(logits, (labels, structure, weight, ignore_index, reduction))
    if reduction == "none" and input.dim() == 1:
        loss = loss[0]
    if loss.dtype == input.dtype or _is_autocast(input.device.type):
        return loss  # under autocast torch's cross-entropy returns float32
    return loss.to(input.dtype)


def _is_autocast(device_type: str) -> bool:
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch's own
def _constant_arrays(
    structure: RandomPartition, label_sets: LabelSets | None
) -> tuple[Tensor, ...]:
    if label_sets is None:
        return arrays_of(structure)
    sets = checked_label_sets(label_sets, structure.classes).coarse_sets
    return *arrays_of(structure), *arrays_of_sets(sets)


def _of_labels(logits: Tensor, options: tuple[Any, ...]) -> Tensor:
    """Return the reduced loss of class indices or codes; for the options see _OfLabels."""
    if _needs_gradient(logits):
        loss: Tensor = _apply(logits, options)
        return loss
    return _loss_and_gradient(logits, options, with_gradient=False)[0]


def _by_operator(
    logits: Tensor,
    target: Tensor,
    arrays: tuple[Tensor, ...],
    weight: Tensor | None,
    ignore_index: int,
) -> tuple[Tensor, Tensor]:
    """Return the losses of class indices or codes, and the sum of their weights."""
    block_of, weights, *sets = arrays
    losses, _, total = labels_operator(
        logits, target, block_of, weights, weight, ignore_index, _needs_gradient(logits), *sets
    )
    return losses, total


def _needs_gradient(logits: Tensor) -> bool:
    return torch.is_grad_enabled() and logits.requires_grad


def _reduced(losses: Tensor, divisor: Tensor | float, reduction: str) -> Tensor:
    """Return the losses, their sum, or their mean as torch defines it."""
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / divisor


class _OfLabels(torch.autograd.Function):
    """The loss of class indices or codes, with the gradient from the same pass over the logits.

    Its options are one tuple, (target, structure, weight, ignore_index, reduction), because torch
    inspects every argument of a function twice.
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
        """Return the gradient: the first call gets it without a copy, a second recomputes it."""
        if torch.is_grad_enabled():  # create_graph=True: the gradient is to be differentiated
            (logits,) = ctx.saved_tensors
            return _differentiable_gradient(logits, grad_output, *ctx.options), None
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            (logits,) = ctx.saved_tensors
            _, gradient = _loss_and_gradient(logits, ctx.options, with_gradient=True)
        if grad_output.dim() > 0:
            gradient.mul_(grad_output.unsqueeze(1))
        # On the CPU, reading one number takes less time than a pass over the gradient.
        elif not grad_output.is_cpu or float(grad_output) != 1.0:
            gradient.mul_(grad_output)
        return gradient, None


# What _OfLabels.apply does if no transform of torch.func is active; loss_of has checked that.
_apply: Any = super(torch.autograd.Function, _OfLabels).apply


def _loss_and_gradient(
    logits: Tensor, options: tuple[Any, ...], *, with_gradient: bool
) -> tuple[Tensor, Any]:
    target, structure, weight, ignore_index, reduction = options
    of_mean = reduction == "mean"
    coarse = structure if isinstance(structure, CoarseLayouts) else None
    layout = structure if coarse is None else coarse.layout
    given = (logits, target, layout, weight, ignore_index)
    if not logits.is_cpu:
        rows, gradient, total_weight = portable_losses_of_labels(
            *given, with_gradient=with_gradient, of_mean=of_mean, coarse=coarse
        )
        return _reduced(rows, total_weight, reduction), gradient
    if coarse is None:
        found = loss_in_one_call(*given, reduction, with_gradient=with_gradient)
        if found is not None:
            return found
    losses, gradient = losses_of_labels(
        *given, with_gradient=with_gradient, of_mean=of_mean, coarse=coarse
    )
    if reduction == "none":
        return torch.from_numpy(losses.rows).view(target.shape), gradient
    loss = losses.total
    if of_mean:
        loss = loss / losses.total_weight if losses.total_weight else math.nan
    return torch.scalar_tensor(loss, dtype=logits.dtype), gradient


def _differentiable_gradient(
    logits: Tensor,
    grad_output: Tensor,
    target: Tensor,
    structure: Layout | CoarseLayouts,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    if isinstance(structure, CoarseLayouts):
        kept, codes, rows = _rows_of_codes(logits, target, structure, weight, ignore_index)
        losses = torch.where(kept, rows * losses_of_codes(logits, codes, structure), 0.0)
        divisor: Tensor | float = rows.sum()
    else:
        losses, divisor = _of_distributions(logits, target, structure, weight, ignore_index, 0.0)
    loss = _reduced(losses, divisor, reduction)
    (gradient,) = torch.autograd.grad(loss, logits, grad_output, create_graph=True)
    return gradient


def _rows_of_codes(
    logits: Tensor,
    target: Tensor,
    coarse: CoarseLayouts,
    weight: Tensor | None,
    ignore_index: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return which rows are kept, codes that can be looked up, and the weights of the rows."""
    kept = target != ignore_index
    codes, members = torch.where(kept, target, 0), members_on(coarse, logits.device)
    return kept, codes, row_weights(codes, kept, weight, members, logits.dtype)


def _of_distributions(
    logits: Tensor,
    target: Tensor,
    structure: Compiled,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, Tensor | float]:
    """Return the losses of distributions, or of smoothed labels, and the divisor of the mean."""
    if isinstance(structure, CoarseLayouts) or (isinstance(structure, tuple) and structure[2:]):
        return _of_smoothed_codes(logits, target, structure, weight, ignore_index, label_smoothing)
    n_classes = logits.shape[1]
    kept: Tensor | None = None
    divisor: Tensor | float = logits.numel() / n_classes
    if target.is_floating_point():
        p = target.to(logits.dtype)
    else:
        kept = target != ignore_index
        labels = torch.where(kept, target.long(), 0)
        # By comparison: torch's one_hot reads the labels' values, which vmap does not allow.
        classes = torch.arange(n_classes, device=labels.device).reshape(_along_classes(logits))
        p = (labels.unsqueeze(1) == classes).to(logits.dtype)
        if isinstance(structure, Layout) and labels.is_cpu and not transforms_are_active():
            check_labels(labels, n_classes)
        else:  # the labels' values cannot be read: a wrong one has the loss NaN
            is_class = (labels >= 0) & (labels < n_classes)
            p = torch.where(is_class.unsqueeze(1), p, torch.nan)
        divisor = (kept if weight is None else weight.to(logits.dtype)[labels] * kept).sum()
    if label_smoothing > 0:
        p = p * (1.0 - label_smoothing) + label_smoothing / n_classes
    if weight is not None:
        p = p * weight.to(logits.dtype).reshape(_along_classes(logits))
    if isinstance(structure, Layout):
        losses = losses_of_distributions(logits, p, structure)
    else:
        losses, _, _ = distributions_operator(logits, p, *structure, _needs_gradient(logits))
    return losses if kept is None else torch.where(kept, losses, 0.0), divisor


def _along_classes(logits: Tensor) -> tuple[int, ...]:
    """Return the shape that broadcasts one number per class over logits with any further axes."""
    return (1, logits.shape[1], *(1,) * (logits.dim() - 2))


def _of_smoothed_codes(
    logits: Tensor,
    target: Tensor,
    structure: CoarseLayouts | tuple[Tensor, ...],
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, Tensor | float]:
    """Return (1 - s) loss(code) + s times the mean loss of the classes, and the usual divisor."""
    plain: Compiled
    if isinstance(structure, tuple):
        plain = structure[:2]
        losses, divisor = _by_operator(logits, target, structure, weight, ignore_index)
    else:
        plain, target = structure.layout, target.long()
        losses = _of_labels(logits, (target, structure, weight, ignore_index, "none"))
        divisor = _rows_of_codes(logits, target, structure, weight, ignore_index)[2].sum()
    anything = torch.full_like(logits, 1.0 / logits.shape[1], requires_grad=False)
    of_anything, _ = _of_distributions(logits, anything, plain, weight, ignore_index, 0.0)
    of_anything = torch.where(target != ignore_index, of_anything, 0.0)
    return (1.0 - label_smoothing) * losses + label_smoothing * of_anything, divisor
