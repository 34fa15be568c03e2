"""Arguments of the loss that torch would refuse, or that do not fit the structure."""

from __future__ import annotations

import torch
from torch import Tensor

from structent.errors import LabelError, StructureError

REDUCTIONS = ("none", "mean", "sum")


def check_arguments(
    input: Tensor,  # noqa: A002  torch's own name
    target: Tensor,
    n_classes: int,
    *,
    with_sets: bool,
) -> None:
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
    if with_sets and target.is_floating_point():
        raise LabelError(
            f"target must have the codes of targets= as integers, got {target.dtype}; leave "
            "targets out where target has probabilities"
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
