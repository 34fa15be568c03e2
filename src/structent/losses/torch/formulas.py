"""The structured loss in torch's own operations: for every device, and differentiable twice.

Nothing here reads the values of a tensor: the host would have to wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structent._typing import IntArray
from structent.kernels.layout import Layout

# Partitions that form no tree are computed together, up to this many logits at a time.
_MOST_LOGITS = 2**22
Values = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class TensorLayout:
    """A layout as tensors on one device, with the numbers that the host needs.

    Attributes
    ----------
    total_weight, singleton_weight
        As in the layout.
    weights
        The weight of each partition.
    n_blocks
        The number of blocks of each partition.
    block_of
        The block of each class, numbered from 0 within each partition, (partitions, classes).
    parents
        As in the layout: None where there is no tree.
    """

    total_weight: float
    singleton_weight: float
    weights: tuple[float, ...]
    n_blocks: tuple[int, ...]
    block_of: Tensor
    parents: tuple[Tensor, ...] | None

    @classmethod
    def of(cls, layout: Layout, device: torch.device) -> TensorLayout:
        """Return the layout on a device."""

        def on_device(array: IntArray) -> Tensor:
            return torch.from_numpy(array.astype(np.int64)).to(device, non_blocking=True)

        parents, block_of = layout.parents, layout.local_block_of
        return cls(
            total_weight=layout.total_weight,
            singleton_weight=layout.singleton_weight,
            weights=tuple(layout.weights.tolist()),
            n_blocks=tuple((block_of.max(axis=1, initial=-1) + 1).tolist()),
            block_of=on_device(block_of),
            parents=None if parents is None else tuple(map(on_device, parents)),
        )

    def partitions(self) -> Iterator[tuple[float, int, Tensor]]:
        """Yield the weight of each partition, its number of blocks, and the block of each class."""
        return zip(self.weights, self.n_blocks, self.block_of, strict=True)


def loss_and_gradient_of_labels(
    logits: Tensor, labels: Tensor, factor: Tensor, layout: TensorLayout, *, with_gradient: bool
) -> Values:
    """Return the loss of each row, (n,), and its gradient times the row's factor, (n, classes).

    ``labels`` are class indices; the formulas are in ``structent.kernels.reference``.
    """
    if layout.parents is not None:
        return _in_tree(logits, labels, factor, layout, with_gradient=with_gradient)
    is_label = torch.arange(logits.shape[1], device=labels.device) == labels[:, None]

    def true_blocks(block_of: Tensor) -> Tensor:
        return _blocks_of(labels, block_of)

    return _by_partitions(logits, is_label, true_blocks, factor, layout, with_gradient)


def loss_and_gradient_of_sets(
    logits: Tensor, is_member: Tensor, factor: Tensor, layout: TensorLayout, *, with_gradient: bool
) -> Values:
    """Return the loss of each row, (n,), and its gradient times the row's factor, (n, classes).

    ``is_member`` says which classes a row may belong to, (n, classes); the formulas are in
    ``structent.kernels.reference``. Losses are twice differentiable by the logits.
    """
    first = is_member.to(torch.uint8).argmax(dim=1)

    def true_blocks(block_of: Tensor) -> Tensor:
        with_first, of_row = _blocks_of(first, block_of), is_member[:, None]
        holds_all = (with_first | ~of_row).all(dim=2, keepdim=True)
        return torch.where(holds_all, with_first, of_row)

    return _by_partitions(logits, is_member, true_blocks, factor, layout, with_gradient)


def loss_of_distributions(logits: Tensor, p: Tensor, layout: TensorLayout) -> Tensor:
    """Return sum_c P_c loss(c) of each row, (n,), for P of any mass, (n, classes).

    loss(P) = -sum_t w_t sum_B P(B) log Q(B), with all logarithms relative to the largest logit.
    The loss is twice differentiable by both arguments.
    """
    largest = logits.detach().amax(dim=1, keepdim=True)
    log_total = (logits - largest).exp().sum(dim=1).log()
    loss = layout.total_weight * p.sum(dim=1) * log_total
    loss = loss - layout.singleton_weight * _times(p, logits - largest).sum(dim=1)
    for weight, n_blocks, block in layout.partitions():
        blocks = _Blocks.of(logits, block, n_blocks)
        log_blocks = (blocks.largest - largest) + blocks.sums.log()
        loss = loss - weight * _times(blocks.total(p), log_blocks).sum(dim=1)
    return loss


def gradient_of_distributions(logits: Tensor, p: Tensor, layout: TensorLayout) -> Tensor:
    """Return the gradient of ``loss_of_distributions`` by the logits, without torch's autograd.

    It is W P(all) q_j - sum_t w_t P(B_t(j)) q_j / Q(B_t(j)), (n, classes).
    """
    mass = p.sum(dim=1, keepdim=True)
    gradient = layout.total_weight * mass * logits.softmax(dim=1)
    gradient = gradient - layout.singleton_weight * p
    for weight, n_blocks, block in layout.partitions():
        blocks = _Blocks.of(logits, block, n_blocks)
        share = weight * blocks.total(p) / blocks.sums
        gradient = gradient - share[:, block] * blocks.exponentials
    return gradient


def members_of_rows(codes: Tensor, members: Tensor) -> Tensor:
    """Return which classes each row may belong to, (n, classes)."""
    n_classes = members.shape[1]
    is_class = torch.arange(n_classes, device=codes.device) == codes[:, None]
    if not len(members):
        return is_class
    of_sets = members[(codes - n_classes).clamp(min=0)]
    return torch.where((codes >= n_classes)[:, None], of_sets, is_class)


def weights_of_codes(weight: Tensor, members: Tensor) -> Tensor:
    """Return the weight of a row of each code: the mean of its classes' weights, (codes,)."""
    of_sets = members.to(weight.dtype)
    return torch.cat([weight, of_sets @ weight / of_sets.sum(dim=1)])


def _blocks_of(labels: Tensor, block_of: Tensor) -> Tensor:
    """Return which classes are in the block of each label, (n, partitions, classes)."""
    return block_of[:, labels].T[:, :, None] == block_of


def _by_partitions(
    logits: Tensor,
    is_member: Tensor,
    true_blocks: Callable[[Tensor], Tensor],
    factor: Tensor,
    layout: TensorLayout,
    with_gradient: bool,
) -> Values:
    """Add up the losses of any partitions.

    ``is_member`` says which classes a row may belong to, (n, classes). Given some partitions,
    ``true_blocks`` says which classes are in the row's block of each, (n, partitions, classes).
    """
    q, largest, log_total = _softmax(logits)
    losses = 0.0 * log_total  # stays in the graph even if there is no partition to add
    gradient = torch.zeros_like(logits) if with_gradient else None
    step = max(1, _MOST_LOGITS // max(1, logits.numel()))
    parts: Iterator[tuple[tuple[float, ...], Tensor]] = (
        (layout.weights[at : at + step], true_blocks(layout.block_of[at : at + step]))
        for at in range(0, len(layout.weights), step)
    )
    singletons = [((layout.singleton_weight,), is_member[:, None])]
    for some, inside in chain(parts, singletons if layout.singleton_weight > 0 else []):
        weights = torch.tensor(some, dtype=logits.dtype).to(logits.device, non_blocking=True)
        shares, own_largest, log_own = _softmax(torch.where(inside, logits[:, None], -torch.inf))
        terms = (largest[:, None] - own_largest) + (log_total[:, None] - log_own)
        losses = losses + (terms * weights).sum(dim=1)
        if gradient is not None:
            gradient += sum(some) * q - torch.einsum("ntc,t->nc", shares, weights)
    return losses, None if gradient is None else gradient * factor[:, None]


def _in_tree(
    logits: Tensor, labels: Tensor, factor: Tensor, layout: TensorLayout, *, with_gradient: bool
) -> Values:
    """Go from the classes up to the coarsest blocks, then back: each pass visits a block once."""
    levels = list(zip(layout.weights, layout.n_blocks, reversed(layout.parents or ()), strict=True))
    whole = _Sums.over_all(logits)
    true_logits = logits.gather(1, labels[:, None])
    losses = layout.singleton_weight * (whole.largest - true_logits + whole.sums.log())
    true_blocks = []  # of each level: their places, and their sums
    blocks, place = _Sums(logits, torch.ones_like(logits)), labels[:, None]
    for weight, n_blocks, parent in reversed(levels):
        blocks, place = blocks.merged(parent, n_blocks), parent[place]
        block = _Sums(blocks.largest.gather(1, place), blocks.sums.gather(1, place))
        losses = losses + weight * (
            (whole.largest - block.largest) + (whole.sums.log() - block.sums.log())
        )
        true_blocks.append((place, block))
    if not with_gradient:
        return losses[:, 0], None
    # The gradient by the logit of class j is W q_j - sum_t w_t q_j / Q(B_t), over the true blocks
    # B_t that hold j. The sum is the share of j in the finest of them times a factor, which
    # is the same for all classes of B_t: w_t + Q(B_t) / Q(B_s) times the factor of the coarser B_s.
    coarser, block_factor = whole, torch.zeros_like(whole.sums)
    shift, multiple = whole.shift, torch.zeros_like(whole.sums)
    for (weight, n_blocks, parent), (place, block) in zip(
        levels, reversed(true_blocks), strict=True
    ):
        block_factor = weight + block_factor * block.share_of(coarser)
        coarser = block
        shift, multiple = (
            of_blocks.expand(-1, n_blocks).scatter(1, place, own).index_select(1, parent)
            for of_blocks, own in (
                (shift, block.shift), (multiple, block_factor / block.divisor)
            )
        )  # fmt: skip
    gradient = (logits - whole.shift).exp_().mul_(layout.total_weight / whole.divisor)
    gradient -= (logits - shift).exp_().mul_(multiple)
    own = gradient.new_full((1, 1), -layout.singleton_weight).expand(len(labels), 1)
    gradient.scatter_add_(1, labels[:, None], own)
    return losses[:, 0], gradient.mul_(factor[:, None])


class _Sums(NamedTuple):
    """Sums of exponentials over blocks, (n, blocks): the largest logit, and the sum relative to it.

    Relative to its own largest logit no block underflows. If all logits are -inf, the sum is 0.
    """

    largest: Tensor
    sums: Tensor

    @classmethod
    def over_all(cls, logits: Tensor) -> _Sums:
        largest = logits.amax(dim=1, keepdim=True)
        exponentials = (logits - _finite(largest)).exp_()
        return cls(largest, exponentials.sum(dim=1, keepdim=True))

    @property
    def shift(self) -> Tensor:
        return _finite(self.largest)

    @property
    def divisor(self) -> Tensor:
        return torch.where(self.sums == 0, 1.0, self.sums)

    def merged(self, parent: Tensor, n_parents: int) -> _Sums:
        """Return the sums over the parents of the blocks."""
        least = self.largest.new_full((len(self.largest), n_parents), -torch.inf)
        places = parent.expand(len(self.largest), -1)
        largest = least.scatter_reduce(1, places, self.largest, "amax")
        parts = (self.largest - _finite(largest).index_select(1, parent)).exp_().mul_(self.sums)
        return _Sums(largest, torch.zeros_like(largest).index_add_(1, parent, parts))

    def share_of(self, coarser: _Sums) -> Tensor:
        """Return the share of each block's sum in the sum of a coarser block."""
        ratio = (self.largest - coarser.shift).exp() * (self.sums / coarser.divisor)
        return torch.where(self.sums == 0, 0.0, ratio)


class _Blocks(NamedTuple):
    """The blocks of one partition: their largest logits, (n, blocks), and sums relative to them.

    A block with only -inf logits must have no mass; its sum is 1, so that it has no gradient.
    """

    block: Tensor
    largest: Tensor
    exponentials: Tensor
    sums: Tensor

    @classmethod
    def of(cls, logits: Tensor, block: Tensor, n_blocks: int) -> _Blocks:
        least = logits.new_full((len(logits), n_blocks), -torch.inf)
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
    # Without mass, an infinite value adds nothing, and neither does its gradient.
    return p * torch.where(p == 0, 0.0, values)


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the softmax over the last axis, the largest logit, and the log-sum-exp relative to it.

    The last two are separate: in rows of large logits, their sum would round away the differences.
    If all logits are -inf, the softmax is 0.
    """
    largest = logits.detach().amax(dim=-1)
    exponentials = (logits - _finite(largest)[..., None]).exp()
    total = exponentials.sum(dim=-1)
    divisor = torch.where(total == 0, 1.0, total)
    return exponentials / divisor[..., None], largest, total.log()


def _finite(largest: Tensor) -> Tensor:
    """Return what to subtract from logits: 0 where all of them are -inf."""
    return torch.where(largest == -torch.inf, 0.0, largest)
