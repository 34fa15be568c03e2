"""Which code computes the losses of a batch: the fused kernel on the CPU, formulas elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from structent.kernels import cpu, fused
from structent.kernels.coarse import CoarseLayouts, members_of_sets
from structent.kernels.layout import Layout
from structent.losses.torch import formulas
from structent.structure import RandomPartition


def layout_of(structure: RandomPartition) -> Layout:
    """Return the layout of a structure, which is compiled once."""
    # Look up the address first: hashing a structure takes longer than ten rows of a batch.
    found = _by_address.get(id(structure))
    if found is not None and found[0] is structure:
        return found[1]
    if len(_by_address) >= _MOST_LAYOUTS:
        _by_address.clear()
    layout = _layout_of_equal(structure)
    _by_address[id(structure)] = (structure, layout)
    return layout


_MOST_LAYOUTS = 64
_by_address: dict[int, tuple[RandomPartition, Layout]] = {}


@lru_cache(maxsize=_MOST_LAYOUTS)
def _layout_of_equal(structure: RandomPartition) -> Layout:
    return Layout.of(structure)


@lru_cache(maxsize=_MOST_LAYOUTS)
def coarse_layouts_of(layout: Layout, sets: tuple[tuple[int, ...], ...]) -> CoarseLayouts:
    """Return the layouts of sets of classes, which are compiled once."""
    return CoarseLayouts.of(layout, sets)


def loss_in_one_call(
    logits: Tensor,
    target: Tensor,
    layout: Layout,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    *,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | None] | None:
    """Return the reduced loss and the gradient of a small batch on the CPU.

    It takes the arguments of :func:`losses_of_labels`, which does the same with more steps between
    torch and the kernel. Returns None if only that one can be used: the batch is large enough
    for several threads, or a tensor has no memory of its own (it is empty or wraps other tensors).
    """
    if not fused.is_for_one_thread(logits.numel(), torch.get_num_threads()):
        return None
    logits, target = _in_order(logits), _in_order(target)
    logits_at, target_at = logits.data_ptr(), target.data_ptr()
    if not logits_at or not target_at:
        return None
    if weight is not None:
        weight = _in_order(weight.detach().to(logits.dtype))
    gradient = torch.empty_like(logits) if with_gradient else None
    of_rows, n_rows = reduction == "none", target.numel()
    loss = logits.new_empty(target.shape if of_rows else ())
    wrong = cpu.loss_at_addresses(
        logits_at, target_at, 0 if weight is None else weight.data_ptr(), ignore_index,
        reduction == "mean", *layout.arrays,
        loss.data_ptr() if of_rows else 0, 0 if of_rows else loss.data_ptr(),
        0 if gradient is None else gradient.data_ptr(),
        _NONE[logits.dtype], layout.n_classes, n_rows // logits.shape[0], n_rows,
    )  # fmt: skip
    if wrong >= 0:
        raise fused.wrong_label(int(target.view(-1)[wrong]), wrong, layout.n_classes)
    return loss, gradient


_NONE = {getattr(torch, kind.name): none for kind, none in fused.NONE.items()}


def _in_order(tensor: Tensor) -> Tensor:
    """Return a tensor whose memory holds its actual numbers, one after the other."""
    tensor = tensor.contiguous()
    # torch marks the imaginary part of a conjugate as the negative of what is in memory.
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def losses_of_labels(
    logits: Tensor,
    target: Tensor,
    layout: Layout,
    weight: Tensor | None,
    ignore_index: int,
    *,
    with_gradient: bool,
    of_mean: bool = False,
    coarse: CoarseLayouts | None = None,
) -> tuple[fused.Losses, Tensor | None]:
    """Return the weighted losses of the rows with their sums, and the gradient, on the CPU.

    ``logits`` are (n, classes, ...) in float32 or float64, ``target`` (n, ...) in int64, where
    codes from ``n_classes`` on mean the sets of ``coarse``. The gradient is of the mean if
    ``of_mean``, otherwise of each loss. The losses are flat.
    """
    contiguous = logits.detach().contiguous()
    gradient = torch.empty_like(contiguous) if with_gradient else None
    losses = fused.loss_and_gradient(
        contiguous.numpy(),
        target.numpy().reshape(-1),
        layout,
        gradient=None if gradient is None else gradient.numpy(),
        class_weights=None if weight is None else weight.detach().to(logits.dtype).numpy(),
        ignored=ignore_index,
        of_mean=of_mean,
        n_threads=torch.get_num_threads(),
        coarse=coarse,
    )
    return losses, gradient


def portable_losses_of_labels(
    logits: Tensor,
    target: Tensor,
    layout: Layout,
    weight: Tensor | None,
    ignore_index: int,
    *,
    with_gradient: bool,
    of_mean: bool = False,
    coarse: CoarseLayouts | None = None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return the losses, the gradient and the sum of the weights, by torch's own operations.

    It takes the arguments of :func:`losses_of_labels`; the losses have the shape of ``target``.
    """
    n_classes, device = logits.shape[1], logits.device
    flat = logits.detach().movedim(1, -1).reshape(-1, n_classes)
    kept = target.reshape(-1) != ignore_index
    codes = torch.where(kept, target.reshape(-1), 0)
    n_codes = n_classes if coarse is None else n_classes + len(coarse.sets)
    check_labels(codes, n_codes)
    is_code = (codes >= 0) & (codes < n_codes)
    codes = torch.where(is_code, codes, 0)
    members = None if coarse is None else members_on(coarse, device)
    rows = row_weights(codes, kept, weight, members, flat.dtype)
    rows = torch.where(is_code, rows, torch.nan)
    total_weight = rows.sum()
    factor = rows / total_weight if of_mean else rows
    on_device = tensor_layout_of(layout, device)
    if members is None:
        losses, gradient = formulas.loss_and_gradient_of_labels(
            flat, codes, factor, on_device, with_gradient=with_gradient
        )
    else:
        is_member = formulas.members_of_rows(codes, members)
        losses, gradient = formulas.loss_and_gradient_of_sets(
            flat, is_member, factor, on_device, with_gradient=with_gradient
        )
    # NaN times 0 is NaN, but a row that is ignored has no loss.
    losses = torch.where(kept, losses * rows, 0.0).reshape(target.shape)
    if gradient is not None:
        gradient = torch.where(kept[:, None], gradient, 0.0)
        gradient = gradient.reshape(*target.shape, n_classes).movedim(-1, 1).contiguous()
    return losses, gradient, total_weight


def row_weights(
    labels: Tensor, kept: Tensor, weight: Tensor | None, members: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Return the weight of each row, in the shape of the labels: 0 where it is not kept."""
    if weight is None:
        return kept.to(dtype)
    of_codes = weight.to(dtype)
    if members is not None:
        of_codes = formulas.weights_of_codes(of_codes, members)
    return kept * of_codes[labels]


def check_labels(labels: Tensor, n_classes: int) -> None:
    """Refuse labels that are not one of ``n_classes`` classes or codes.

    Reading labels on another device would wait for it. There a wrong label has the loss NaN.
    """
    if not labels.is_cpu:
        return
    wrong = (labels < 0) | (labels >= n_classes)
    if bool(wrong.any()):
        row = int(wrong.reshape(-1).nonzero()[0, 0])
        raise fused.wrong_label(int(labels[wrong][0]), row, n_classes)


def losses_of_distributions(logits: Tensor, distributions: Tensor, layout: Layout) -> Tensor:
    """Return the losses of distributions, or of any weights of the classes, differentiable by both.

    ``logits`` and ``distributions`` are (n, classes, ...), the losses (n, ...).
    """
    n_classes = logits.shape[1]
    flat, p = (x.movedim(1, -1).reshape(-1, n_classes) for x in (logits, distributions))
    losses = formulas.loss_of_distributions(flat, p, tensor_layout_of(layout, logits.device))
    return losses.reshape(logits.shape[0], *logits.shape[2:])


def losses_of_codes(logits: Tensor, codes: Tensor, coarse: CoarseLayouts) -> Tensor:
    """Return the losses of codes that are classes or sets of them, differentiable twice.

    ``logits`` are (n, classes, ...), codes and losses (n, ...).
    """
    flat = logits.movedim(1, -1).reshape(-1, logits.shape[1])
    layout = tensor_layout_of(coarse.layout, logits.device)
    is_member = formulas.members_of_rows(codes.reshape(-1), members_on(coarse, logits.device))
    losses, _ = formulas.loss_and_gradient_of_sets(
        flat, is_member, flat.new_empty(0), layout, with_gradient=False
    )
    return losses.reshape(codes.shape)


def tensor_layout_of(layout: Layout, device: torch.device) -> formulas.TensorLayout:
    """Return a layout on a device."""
    copy: formulas.TensorLayout = _kept_copy(
        layout, device, lambda: formulas.TensorLayout.of(layout, device)
    )
    return copy


def members_on(coarse: CoarseLayouts, device: torch.device) -> Tensor:
    """Return which classes each set holds, (sets, classes), on a device."""

    def made() -> Tensor:
        members = members_of_sets(coarse.sets, coarse.layout.n_classes)
        return torch.from_numpy(members).to(device, non_blocking=True)

    copy: Tensor = _kept_copy(coarse, device, made)
    return copy


def _kept_copy(
    original: Layout | CoarseLayouts, device: torch.device, made: Callable[[], Any]
) -> Any:
    """Return the copy on a device: made once, and kept as long as the original."""
    copies = _copies.setdefault(original, {})
    if device not in copies:
        copies[device] = made()
    return copies[device]


_copies: WeakKeyDictionary[Layout | CoarseLayouts, dict[torch.device, Any]] = WeakKeyDictionary()
