"""The loss of labelled rows in torch operations alone: for every device, and without Numba."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from structent._typing import IntArray
from structent.kernels.layout import Layout

# Up to this many classes a dense product with the blocks is the fastest way to sum over them.
_SMALL = 512
Values = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class TensorLayout:
    """A layout as tensors on one device."""

    total_weight: float
    singleton_weight: float
    weights: Tensor
    block_of: Tensor
    start: Tensor
    members: Tensor
    parents: tuple[Tensor, ...] | None

    @classmethod
    def of(cls, layout: Layout, device: torch.device) -> TensorLayout:
        """Return the layout on a device."""

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array.astype(np.int64)).to(device)

        parents = layout.parents
        return cls(
            total_weight=layout.total_weight,
            singleton_weight=layout.singleton_weight,
            weights=torch.from_numpy(layout.weights).to(device),
            block_of=on_device(layout.block_of),
            start=on_device(layout.start),
            members=on_device(layout.members),
            parents=None if parents is None else tuple(map(on_device, parents)),
        )


def loss_and_gradient(
    logits: Tensor, labels: Tensor, factor: Tensor, layout: TensorLayout, *, with_gradient: bool
) -> Values:
    """Return the loss of each row, (n,), and its gradient times the row's factor, (n, classes).

    ``labels`` are class indices; the formulas are those of ``structent.kernels.reference``.
    """
    largest = logits.amax(dim=1, keepdim=True)
    e = (logits - largest).exp_()
    total = e.sum(dim=1)
    log_total, true_logits = total.log(), (logits.gather(1, labels[:, None]) - largest)[:, 0]
    losses = layout.singleton_weight * (log_total - true_logits)
    sums = _true_sums(e, labels, layout)  # (n, partitions)
    trusted = sums >= logits.shape[1] * torch.finfo(e.dtype).tiny / torch.finfo(e.dtype).eps
    weights = layout.weights.to(e.dtype)
    terms = log_total[:, None] - torch.where(trusted, sums, 1.0).log()
    losses = losses + torch.where(trusted, terms, 0.0) @ weights
    gradient = None
    if with_gradient:
        shares = torch.where(trusted, weights / sums, 0.0) * factor[:, None]
        coefficient = layout.total_weight * factor / total
        gradient = _minus_shares(e, coefficient[:, None], shares, labels, layout)
        label_terms = -layout.singleton_weight * factor
        gradient.scatter_add_(1, labels[:, None], label_terms[:, None])
    if not bool(trusted.all()):
        _add_untrusted(
            logits, largest, log_total, labels, factor, layout, trusted, losses, gradient
        )
    return losses, gradient


def _true_sums(e: Tensor, labels: Tensor, layout: TensorLayout) -> Tensor:
    """Sum e over the block of the label in each partition, (n, partitions)."""
    if len(layout.weights) == 0:
        return e.new_zeros(len(e), 0)
    if e.shape[1] <= _SMALL:
        n_blocks = len(layout.start) - 1
        indicator = _indicator(layout, e, n_blocks)
        return (e @ indicator).gather(1, layout.block_of[:, labels].T)
    if layout.parents is not None:
        sums, node, level = [], labels, e
        for parent in layout.parents:
            n_blocks = int(parent.max()) + 1
            level = e.new_zeros(len(e), n_blocks).index_add_(1, parent, level)
            node = parent[node]
            sums.append(level.gather(1, node[:, None])[:, 0])
        return torch.stack(sums[::-1], dim=1)
    entries, segment = _true_entries(labels, layout)
    flat = e.new_zeros(len(labels) * len(layout.weights))
    flat.index_add_(0, segment, e.reshape(-1)[entries])
    return flat.reshape(len(labels), -1)


def _minus_shares(
    e: Tensor, coefficient: Tensor, shares: Tensor, labels: Tensor, layout: TensorLayout
) -> Tensor:
    """Return e times (coefficient - the shares of the true blocks that a class is in)."""
    if len(layout.weights) == 0:
        return e * coefficient
    if e.shape[1] <= _SMALL:
        n_blocks = len(layout.start) - 1
        per_block = e.new_zeros(len(e), n_blocks)
        per_block.scatter_(1, layout.block_of[:, labels].T, shares)
        return (coefficient - per_block @ _indicator(layout, e, n_blocks).T).mul_(e)
    if layout.parents is not None:
        nodes = [labels]
        for parent in layout.parents:
            nodes.append(parent[nodes[-1]])
        level = coefficient
        for t, parent in enumerate(reversed(layout.parents)):
            n_blocks = int(parent.max()) + 1
            level = level.expand(len(e), n_blocks).scatter_add(
                1, nodes[-1 - t][:, None], -shares[:, t : t + 1]
            )
            level = level.index_select(1, parent)
        return level.mul_(e)
    gradient = e * coefficient
    entries, segment = _true_entries(labels, layout)
    taken = -shares.reshape(-1)[segment] * e.reshape(-1)[entries]
    gradient.view(-1).index_add_(0, entries, taken)
    return gradient


def _indicator(layout: TensorLayout, e: Tensor, n_blocks: int) -> Tensor:
    """Return 1 where a class is in a block, (classes, blocks)."""
    indicator = e.new_zeros(e.shape[1], n_blocks)
    return indicator.scatter_(1, layout.block_of.T, 1.0)


def _true_entries(labels: Tensor, layout: TensorLayout) -> tuple[Tensor, Tensor]:
    """Return the flat places of all classes of all true blocks, and (row, partition) of each."""
    blocks = layout.block_of[:, labels].T.reshape(-1)  # (n * partitions,)
    sizes = layout.start[blocks + 1] - layout.start[blocks]
    segment = torch.repeat_interleave(sizes)
    first = sizes.cumsum(0) - sizes
    within = torch.arange(len(segment), device=labels.device) - first[segment]
    classes = layout.members[layout.start[blocks][segment] + within]
    row = segment // len(layout.weights)
    return row * layout.block_of.shape[1] + classes, segment


def _add_untrusted(  # noqa: PLR0913, PLR0917  what the loss has at hand
    logits: Tensor,
    largest: Tensor,
    log_total: Tensor,
    labels: Tensor,
    factor: Tensor,
    layout: TensorLayout,
    trusted: Tensor,
    losses: Tensor,
    gradient: Tensor | None,
) -> None:
    """Add what was left out: blocks that underflow, each by its own log-sum-exp; rare."""
    for t, weight in enumerate(layout.weights.tolist()):
        rows = (~trusted[:, t]).nonzero()[:, 0]
        ids = layout.block_of[t]
        inside = ids[None] == ids[labels[rows]][:, None]
        own = torch.where(inside, logits[rows], -torch.inf)
        # Of a block that is ruled out, all -inf, the differences would be NaN.
        own_largest = own.amax(dim=1, keepdim=True).clamp(min=torch.finfo(own.dtype).min)
        exponentials = (own - own_largest).exp()
        own_total = exponentials.sum(dim=1, keepdim=True)
        log_block = (own_largest - largest[rows] + own_total.log())[:, 0]
        losses[rows] += weight * (log_total[rows] - log_block)
        if gradient is not None:
            share = torch.where(own_total > 0, weight * factor[rows][:, None] / own_total, 0.0)
            gradient[rows] -= share * exponentials
