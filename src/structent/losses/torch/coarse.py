"""The loss of rows that are known to be in a set of classes, in torch operations.

Memory is O(rows x classes) for each partition at a time; to differentiate twice, for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from structent.losses.torch.portable import TensorLayout, Values


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


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the softmax, the largest of each row, and the log-sum-exp as seen from there.

    Apart, because their sum would round away what tells the entries of a row of large ones.
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
