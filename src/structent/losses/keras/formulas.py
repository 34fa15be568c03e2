"""The structured loss in ``keras.ops``, stable for every finite input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
import numpy as np
from keras import ops

from structent._typing import Label
from structent.errors import StructureError
from structent.kernels.coarse import members_of_sets
from structent.losses.keras.blocks import Blocks, Step, Tensor, View, Weight, compute_dtype
from structent.losses.keras.private import set_mask
from structent.structure import LabelSets, RandomPartition
from structent.structure.targets import checked_label_sets


def losses(
    y_true: Tensor,
    y_pred: Tensor,
    blocks: Blocks,
    *,
    from_logits: bool,
    ignore_class: int | None,
    coarse: CoarseTable | None = None,
) -> Tensor:
    """Return the loss of each row, in the shape of ``y_pred`` without its class axis."""
    holds_labels = holds_class_indices(y_true, y_pred, blocks.n_classes)
    shape = ops.shape(y_pred)[:-1]
    # Keras takes longer for an operation that does nothing than the kernel for a few hundred rows.
    rows = y_pred if len(shape) == 1 else ops.reshape(y_pred, (-1, blocks.n_classes))
    if holds_labels:
        labels = ops.cast(y_true, "int32")
        labels = labels if len(labels.shape) == 1 else ops.reshape(labels, (-1,))
        if ignore_class is not None:
            kept = ops.not_equal(labels, ignore_class)
            labels = ops.where(kept, labels, 0)
            rows = ops.where(kept[:, None], rows, 1.0)  # no NaN from rows that do not count
            value = _losses_of_codes(labels, rows, blocks, from_logits, coarse)
            return _masked(value, kept, shape)
        value = _losses_of_codes(labels, rows, blocks, from_logits, coarse)
        return value if len(shape) == 1 else ops.reshape(value, shape)
    if coarse is not None:
        raise StructureError(
            f"y_true must have the codes of label_sets=, one per row, got rows of "
            f"{blocks.n_classes} classes; leave label_sets out where y_true has distributions"
        )
    if ignore_class is not None:
        raise StructureError(
            f"ignore_class must be None where y_true has distributions over {blocks.n_classes} "
            f"classes, got {ignore_class}; a sample_weight of 0 leaves a row out"
        )
    p = ops.reshape(y_true, (-1, blocks.n_classes))
    return ops.reshape(_losses_of_distributions(p, rows, blocks, from_logits), shape)


def holds_class_indices(y_true: Tensor, y_pred: Tensor, n_classes: int) -> bool:
    """Return whether ``y_true`` has class indices, not distributions; its shape says which."""
    true, predicted = tuple(y_true.shape), tuple(y_pred.shape)
    if not predicted or predicted[-1] != n_classes:
        raise StructureError(
            f"structure covers {n_classes} classes but y_pred has shape {predicted}"
        )
    if _fits(true, predicted):
        return False
    if _fits(true, predicted[:-1]) or _fits(true, (*predicted[:-1], 1)):
        return True
    raise StructureError(
        f"y_true must be class indices of shape {predicted[:-1]}, or rows of all classes of shape "
        f"{predicted}, got shape {true}"
    )


def known_labels(labels: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Return class indices that are safe to look up, and whether each was in range as given."""
    safe = ops.clip(labels, 0, n_classes - 1)
    return safe, ops.equal(safe, labels)


@dataclass(frozen=True)
class CoarseTable:
    """The label sets that codes come from, and which classes each set holds, (sets, classes)."""

    label_sets: LabelSets
    members: Tensor

    @classmethod
    def of(cls, label_sets: LabelSets | None, classes: tuple[Label, ...]) -> CoarseTable | None:
        """Return the table of checked label sets, None where every code is a class."""
        if label_sets is None or not checked_label_sets(label_sets, classes).coarse_sets:
            return None
        members = members_of_sets(label_sets.coarse_sets, len(classes))
        return cls(label_sets, ops.convert_to_tensor(members))

    @property
    def n_codes(self) -> int:
        """How many codes there are, including those of the classes."""
        return len(self.label_sets.sets)

    def true_blocks(self, codes: Tensor, blocks: Blocks) -> Iterator[tuple[Weight, Tensor]]:
        """Yield the weight of each partition, and whether a class is in A_t(C), (n, classes).

        Partitions come one at a time, but the gradient keeps all: O(n x partitions x classes).
        """
        column, n_classes = codes[:, None], blocks.n_classes
        of_sets = ops.take(self.members, ops.maximum(codes - n_classes, 0), axis=0)
        of_classes = ops.equal(ops.arange(n_classes, dtype="int32")[None], column)
        is_member = ops.where(column < n_classes, of_classes, of_sets)
        yield blocks.singleton_weight, is_member
        first = ops.argmax(ops.cast(is_member, "int32"), axis=1)
        for view in blocks.views:
            with_first = ops.equal(ops.take(view.block_of, first, axis=0)[:, None], view.block_of)
            with_others = ops.logical_or(with_first, ops.logical_not(is_member))
            holds = ops.all(with_others, axis=1, keepdims=True)
            yield view.weight, ops.where(holds, with_first, is_member)


def _fits(shape: tuple[int | None, ...], expected: tuple[int | None, ...]) -> bool:
    """Whether shapes are equal as far as they are known without data."""
    return len(shape) == len(expected) and all(
        a == b or a is None or b is None for a, b in zip(shape, expected, strict=True)
    )


def _masked(value: Tensor, kept: Tensor, shape: Any) -> Tensor:
    """Return the losses as Keras expects them with ignored rows: 0 there, and a mask."""
    value = ops.reshape(ops.where(kept, value, 0.0), shape)
    set_mask(value, ops.reshape(kept, shape))
    return value


def _losses_of_codes(
    codes: Tensor, rows: Tensor, blocks: Blocks, from_logits: bool, coarse: CoarseTable | None
) -> Tensor:
    """Return the losses of class indices or, with a table of label sets, of their codes, (n,).

    A code out of range has the loss NaN: a traced step cannot raise.
    """
    n_codes = blocks.n_classes if coarse is None else coarse.n_codes
    if from_logits and blocks.structure is not None and _are_torch_tensors(rows):
        return _losses_by_torch(codes, rows, blocks.structure, coarse, n_codes)
    codes, known = known_labels(codes, n_codes)
    logits, top, log_all = _logits(rows, from_logits)
    if coarse is None:
        own = _own_logs(codes, logits, top, blocks)
    else:
        own = _own_logs_of_sets(coarse, codes, logits, top, blocks)
    return ops.where(known, blocks.total_weight * log_all - own, np.nan)


def _own_logs(labels: Tensor, logits: Tensor, top: Tensor, blocks: Blocks) -> Tensor:
    """w_0 z_y + sum_t w_t lse(z over B_t(y)), (n,).

    All terms are relative to the largest logit of the row, the top, so that logits far from 0 keep
    their digits. It cancels, because ``log_all`` is relative to it, too, and the weights sum to W.
    """
    at_label = ops.take_along_axis(logits, labels[:, None], axis=1)
    total = blocks.singleton_weight * ops.squeeze(at_label - top, axis=1)
    for view in blocks.views:
        log, block_top = _logsumexp(_in_true_block(labels, logits, view))
        total = total + view.weight * (log + ops.squeeze(block_top - top, axis=1))
    return total


def _own_logs_of_sets(
    coarse: CoarseTable, codes: Tensor, logits: Tensor, top: Tensor, blocks: Blocks
) -> Tensor:
    """sum_t w_t lse(z over A_t(C)), (n,), where the singletons are one of the partitions."""
    total: Any = 0.0
    for weight, inside in coarse.true_blocks(codes, blocks):
        log, own_top = _logsumexp(ops.where(inside, logits, -np.inf))
        total = total + weight * (log + ops.squeeze(own_top - top, axis=1))
    return total


def _are_torch_tensors(rows: Tensor) -> bool:
    # On the meta device Keras asks only for shapes.
    return bool(keras.backend.backend() == "torch") and rows.device.type != "meta"


def _losses_by_torch(
    codes: Tensor, rows: Tensor, structure: RandomPartition, coarse: CoarseTable | None,
    n_codes: int,
) -> Tensor:  # fmt: skip
    """Return the losses by torch's own adapter, which is several times faster than keras.ops."""
    from structent.losses.torch import (  # noqa: PLC0415  other backends do not have torch
        structured_cross_entropy,
    )

    codes = codes.long()
    known = codes.clamp(0, n_codes - 1)
    value = structured_cross_entropy(
        rows, known, structure, reduction="none",
        label_sets=None if coarse is None else coarse.label_sets,
    )  # fmt: skip
    return value.masked_fill(known != codes, np.nan)


def _in_true_block(labels: Tensor, logits: Tensor, view: View) -> Tensor:
    """Logits of the block of each label, and -inf elsewhere: (n, largest) or (n, classes)."""
    true_block = ops.take(view.block_of, labels, axis=0)
    if view.members is None:
        return ops.where(ops.equal(true_block[:, None], view.block_of[None]), logits, -np.inf)
    members = ops.take(view.members, true_block, axis=0)
    inside = ops.take_along_axis(logits, members, axis=1)
    return ops.where(members < 0, -np.inf, inside) if view.is_padded else inside


def _logsumexp(x: Tensor, above: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Log-sum-exp of ``x + above`` along axis 1: how far above the top of x it is, and the top.

    Kept separate, they keep their digits, and so do the shares in the gradient. Torch's own
    log-sum-exp rounds their sum before it takes the gradient, which loses its digits far from 0.
    """
    # Not ops.max, which breaks the graph of torch.compile.
    top = _finite(ops.stop_gradient(ops.amax(x, axis=1, keepdims=True)))
    shifted = x - top if above is None else x - top + above
    return ops.log(ops.sum(ops.exp(shifted), axis=1)), top


def _losses_of_distributions(p: Tensor, rows: Tensor, blocks: Blocks, from_logits: bool) -> Tensor:
    """The sum over classes of P_c times the loss of c, (n,)."""
    logits, top, log_all = _logits(rows, from_logits)
    credit = blocks.singleton_weight * (logits - top)
    # A fully masked block has a very low finite log, not -inf: its gradient is 0, not NaN.
    columns, tops = ops.transpose(_finite(logits)), ops.transpose(top)
    for chain in blocks.chains:
        credit = credit + ops.transpose(_weighted_logs_of_blocks(columns, tops, chain))
    # A class without mass adds nothing, even if its logit is -inf.
    credit = ops.where(ops.equal(p, 0), 0.0, credit)
    mass = ops.sum(p, axis=1)
    return blocks.total_weight * log_all * mass - ops.sum(p * credit, axis=1)


def _weighted_logs_of_blocks(columns: Tensor, tops: Tensor, chain: tuple[Step, ...]) -> Tensor:
    """The sum over the partitions of a chain of w_t lse(B_t(c)), for each class c, (classes, n).

    It computes the log-sum-exps up the tree and adds them on the way down. Each block is visited
    once in each direction.
    """
    logs, above = [], None
    for step in chain:
        above, columns = _logsumexp_of_blocks(columns, above, step)
        logs.append(above + (columns - tops))
    total: Any = 0.0
    for step, log in zip(chain[::-1], logs[::-1], strict=True):
        total = ops.take(total + step.weight * log, step.parent, axis=0)
    return total


def _logsumexp_of_blocks(
    columns: Tensor, above: Tensor | None, step: Step
) -> tuple[Tensor, Tensor]:
    """Log-sum-exp of ``columns + above`` in every block, in the same two parts, (blocks, n)."""
    if step.order is None:
        return _logsumexp_of_drawn_blocks(columns, step)
    columns = ops.where(step.order[:, None] < 0, -np.inf, ops.take(columns, step.order, axis=0))
    above = None if above is None else ops.take(above, step.order, axis=0)
    logs, tops, start = [], [], 0
    for width, n_blocks in step.runs:
        run, shape = slice(start, start + width * n_blocks), (n_blocks, width, -1)
        start = run.stop
        above_run = None if above is None else ops.reshape(above[run], shape)
        log, top = _logsumexp(ops.reshape(columns[run], shape), above_run)
        logs.append(log)
        tops.append(ops.squeeze(top, axis=1))
    return ops.concatenate(logs, axis=0), ops.concatenate(tops, axis=0)


def _logsumexp_of_drawn_blocks(columns: Tensor, step: Step) -> tuple[Tensor, Tensor]:
    # A draw may leave blocks without classes: no row looks them up, but they must not be NaN.
    top = ops.segment_max(ops.stop_gradient(columns), step.parent, step.n_blocks)
    top = ops.where(ops.isfinite(top), top, 0.0)
    shifted = ops.exp(columns - ops.take(top, step.parent, axis=0))
    total = ops.segment_sum(shifted, step.parent, step.n_blocks)
    return ops.log(ops.where(total > 0, total, 1.0)), top


def _logits(rows: Tensor, from_logits: bool) -> tuple[Tensor, Tensor, Tensor | float]:
    """Return logits, the top of each row, (n, 1), and how far its log-sum-exp is above, (n,)."""
    if from_logits:
        log_all, top = _logsumexp(rows)
        return rows, top, log_all
    # Keras's convention, so that the trivial structure gives Keras's own value: probabilities are
    # normalised, then clipped to [epsilon, 1 - epsilon], which keeps their logarithm finite.
    epsilon = keras.config.epsilon()
    proba = rows / ops.sum(rows, axis=1, keepdims=True)
    return ops.log(ops.clip(proba, epsilon, 1.0 - epsilon)), ops.zeros((1, 1)), 0.0


def _finite(x: Tensor) -> Tensor:
    """Replace -inf by the lowest number of the dtype."""
    lowest = np.finfo(compute_dtype()).min
    return ops.where(ops.equal(x, -np.inf), ops.convert_to_tensor(lowest), x)
