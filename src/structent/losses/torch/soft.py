"""The loss of rows whose target is a distribution over the classes, in torch operations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structent.losses.torch.portable import TensorLayout


def loss_of_targets(logits: Tensor, targets: Tensor, layout: TensorLayout) -> Tensor:
    """Return sum_c P_c loss(c) of each row, (n,), for targets P of any mass, (n, classes).

    loss(P) = -sum_t w_t sum_B P(B) log Q(B), with all logarithms relative to the largest logit.
    Differentiable by both arguments, and twice.
    """
    largest = logits.detach().amax(dim=1, keepdim=True)
    log_total = (logits - largest).exp().sum(dim=1).log()
    loss = layout.total_weight * targets.sum(dim=1) * log_total
    loss = loss - layout.singleton_weight * _times(targets, logits - largest).sum(dim=1)
    for weight, ids in zip(layout.weights.tolist(), layout.block_of, strict=True):
        blocks = _Blocks.of(logits, ids)
        log_blocks = (blocks.largest - largest) + blocks.sums.log()
        loss = loss - weight * _times(blocks.total(targets), log_blocks).sum(dim=1)
    return loss


def gradient_of_targets(logits: Tensor, targets: Tensor, layout: TensorLayout) -> Tensor:
    """Return the gradient of that loss by the logits, (n, classes), where torch takes none itself.

    W P(all) q_j - sum_t w_t P(B_t(j)) q_j / Q(B_t(j))
    """
    mass = targets.sum(dim=1, keepdim=True)
    gradient = layout.total_weight * mass * logits.softmax(dim=1)
    gradient = gradient - layout.singleton_weight * targets
    for weight, ids in zip(layout.weights.tolist(), layout.block_of, strict=True):
        blocks = _Blocks.of(logits, ids)
        share = weight * blocks.total(targets) / blocks.sums
        gradient = gradient - share[:, blocks.block] * blocks.exponentials
    return gradient


class _Blocks(NamedTuple):
    """The blocks of one partition: the largest logit of each, (n, blocks), and the sum over it.

    A block of -inf logits alone must have no target; its sum is 1, so that it has no gradient.
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


def _times(targets: Tensor, values: Tensor) -> Tensor:
    # Where there is no target an infinite value counts nothing, and neither does its gradient.
    return targets * torch.where(targets == 0, 0.0, values)
