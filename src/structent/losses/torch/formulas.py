"""The structured loss in torch's own operations: for every device, and differentiable twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

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


def loss_and_gradient_of_labels(
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


def loss_of_distributions(logits: Tensor, p: Tensor, layout: TensorLayout) -> Tensor:
    """Return sum_c P_c loss(c) of each row, (n,), for P of any mass, (n, classes).

    loss(P) = -sum_t w_t sum_B P(B) log Q(B), with all logarithms relative to the largest logit.
    Differentiable by both arguments, and twice.
    """
    largest = logits.detach().amax(dim=1, keepdim=True)
    log_total = (logits - largest).exp().sum(dim=1).log()
    loss = layout.total_weight * p.sum(dim=1) * log_total
    loss = loss - layout.singleton_weight * _times(p, logits - largest).sum(dim=1)
    for weight, ids in zip(layout.weights.tolist(), layout.block_of, strict=True):
        blocks = _Blocks.of(logits, ids)
        log_blocks = (blocks.largest - largest) + blocks.sums.log()
        loss = loss - weight * _times(blocks.total(p), log_blocks).sum(dim=1)
    return loss


def gradient_of_distributions(logits: Tensor, p: Tensor, layout: TensorLayout) -> Tensor:
    """Return the gradient of that loss by the logits, (n, classes), without torch's autograd.

    W P(all) q_j - sum_t w_t P(B_t(j)) q_j / Q(B_t(j))
    """
    mass = p.sum(dim=1, keepdim=True)
    gradient = layout.total_weight * mass * logits.softmax(dim=1)
    gradient = gradient - layout.singleton_weight * p
    for weight, ids in zip(layout.weights.tolist(), layout.block_of, strict=True):
        blocks = _Blocks.of(logits, ids)
        share = weight * blocks.total(p) / blocks.sums
        gradient = gradient - share[:, blocks.block] * blocks.exponentials
    return gradient


def members_of_rows(codes: Tensor, members: Tensor) -> Tensor:
    """Return which classes each row may be of, (n, classes)."""
    n_classes = members.shape[1]
    is_member = torch.arange(n_classes, device=codes.device) == codes[:, None]
    coarse = codes >= n_classes
    is_member[coarse] = members[codes[coarse] - n_classes]
    return is_member


def weights_of_codes(weight: Tensor, members: Tensor) -> Tensor:
    """Return the weight of a row of each code: the mean of its classes' weights, (codes,)."""
    of_sets = members.to(weight.dtype)
    return torch.cat([weight, of_sets @ weight / of_sets.sum(dim=1)])


def loss_and_gradient_of_sets(
    logits: Tensor, is_member: Tensor, factor: Tensor, layout: TensorLayout, *, with_gradient: bool
) -> Values:
    """Return the loss of each row, (n,), and its gradient times the row's factor, (n, classes).

    ``is_member`` says which classes the row may be of, (n, classes); the formulas are those of
    ``structent.kernels.reference``. Losses are differentiable by the logits, and twice.
    """
    q, largest, log_total = _softmax(logits)
    losses = 0.0 * log_total  # in the graph, even where there is no partition to add
    gradient = torch.zeros_like(logits) if with_gradient else None
    for weight, inside in _true_blocks(is_member, layout):
        share, own_largest, log_own = _softmax(torch.where(inside, logits, -torch.inf))
        losses = losses + weight * ((largest - own_largest) + (log_total - log_own))
        if gradient is not None:
            gradient += weight * factor[:, None] * (q - share)
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
    """Add the blocks that underflow, which were left out, by their own log-sum-exp; rare."""
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


class _Blocks(NamedTuple):
    """The blocks of one partition: the largest logit of each, (n, blocks), and the sum over it.

    A block of -inf logits alone must have no mass; its sum is 1, so that it has no gradient.
    """

    block: Tensor
    largest: Tensor
    exponentials: Tensor
    sums: Tensor

    @classmethod
    def of(cls, logits: Tensor, ids: Tensor) -> _Blocks:
        block = ids - ids.min()
        least = logits.new_full((len(logits), int(block.max()) + 1), -torch.inf)
        largest = least.scatter_reduce(1, block.expand(len(logits), -1), logits.detach(), "amax")
        possible = largest > -torch.inf
        shift = torch.where(possible, largest, 0.0)
        exponentials = (logits - shift[:, block]).exp()
        sums = torch.zeros_like(largest).index_add(1, block, exponentials)
        return cls(block, largest, exponentials, torch.where(possible, sums, 1.0))

    def total(self, values: Tensor) -> Tensor:
        """Sum values over the classes of each block, (n, blocks)."""
        return torch.zeros_like(self.sums).index_add(1, self.block, values)


def _times(p: Tensor, values: Tensor) -> Tensor:
    # Where there is no mass an infinite value counts nothing, and neither does its gradient.
    return p * torch.where(p == 0, 0.0, values)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the softmax, the largest logit of each row, and the log-sum-exp relative to it.

    Kept apart: in rows of large logits their sum would round away the differences.
    """
    largest = logits.detach().amax(dim=1)
    shift = torch.where(largest == -torch.inf, 0.0, largest)
    exponentials = (logits - shift[:, None]).exp()
    total = exponentials.sum(dim=1)
    return exponentials / total[:, None], largest, total.log()


def _true_blocks(is_member: Tensor, layout: TensorLayout) -> Iterator[tuple[float, Tensor]]:
    """Yield the weight of each partition, and whether a class is in A_t(C), (n, classes)."""
    if layout.singleton_weight > 0:
        yield layout.singleton_weight, is_member
    first = is_member.to(torch.uint8).argmax(dim=1)
    for weight, ids in zip(layout.weights.tolist(), layout.block_of, strict=True):
        with_first = ids[first][:, None] == ids
        holds = (with_first | ~is_member).all(dim=1, keepdim=True)
        yield weight, torch.where(holds, with_first, is_member)
