"""The structured loss of class indices, and of codes of label sets, in JAX's operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from structent.errors import LabelError
from structent.kernels.coarse import members_of_sets
from structent.losses.jax.plan import (
    FEW_PARTITIONS,
    PartitionArrays,
    Plan,
    Structure,
    Window,
    compiled,
)

# The loop over masks (arrays in the shape of the logits) is unrolled up to this many.
_FEW_MASKS = 4
# The classes of an order are summed in this many interleaved pieces.
_N_PIECES = 5
IN_BOUNDS = "promise_in_bounds"  # labels are clipped before use
_EXACT = lax.Precision.HIGHEST  # else some devices round the factors of a matrix product


def loss_of_labels(rows: Array, labels: Array, structure: Structure) -> Array:
    """Return the loss of each example; the last axis of the rows holds the classes.

    Only the true blocks of each row are used.
    """
    n_classes = rows.shape[-1]
    _check_range(labels, n_classes)
    logits = as_matrix(rows)
    codes = jnp.clip(labels, 0, n_classes - 1).reshape(-1)
    plan, (block_of, weights) = compiled(structure)
    if len(weights):
        arrays = PartitionArrays(block_of, jnp.asarray(weights).astype(logits.dtype))
        jitted = _jitted_loss if plan.cuts is None else _jitted_loss_of_cuts
        loss = jitted(plan, logits, codes, arrays)
    else:  # plain cross-entropy
        largest = lax.stop_gradient(finite(logits.max(1)))
        log_total = jnp.log(jnp.exp(logits - largest[:, None]).sum(1))
        loss = plan.singleton_weight * (log_total + (largest - _at(logits, codes)))
    loss = loss.reshape(labels.shape).astype(rows.dtype)
    return jnp.where((labels >= 0) & (labels < n_classes), loss, jnp.nan)


def loss_of_codes(
    rows: Array, codes: Array, structure: Structure, sets: tuple[tuple[int, ...], ...]
) -> Array:
    """Return the loss of each example; the last axis of the rows holds the classes.

    Code ``n_classes + s`` means set s. The partitions are visited one after the other, each over
    all classes: memory is O(examples x classes).
    """
    n_classes = rows.shape[-1]
    _check_range(codes, n_classes + len(sets))
    plan, arrays = compiled(structure)
    members = members_of_sets(sets, n_classes)
    # As JAX arrays: a NumPy array of float64 would change its type inside enable_x64.
    own = PartitionArrays(*map(jnp.asarray, arrays))
    loss: Array = _jitted_losses(
        rows, codes, members, own, plan.singleton_weight, n_classes + len(sets)
    )
    return loss


def as_matrix(rows: Array) -> Array:
    """Return the rows as (n, classes), in float32 or better."""
    matrix = rows.reshape(-1, rows.shape[-1])
    return matrix.astype(jnp.promote_types(rows.dtype, jnp.float32))


def finite(largest: Array) -> Array:
    """Return the largest logits, 0 in place of infinities and NaN: safe to subtract."""
    return jnp.where(jnp.isfinite(largest), largest, 0)


def _check_range(labels: Array, n_classes: int) -> None:
    """Refuse labels (or codes) that are out of range, if their values are known."""
    try:
        values = np.asarray(labels)
    except jax.errors.TracerArrayConversionError:
        return  # they are being traced
    wrong = values[(values < 0) | (values >= n_classes)]
    if wrong.size:
        raise LabelError(
            f"labels must be between 0 and {n_classes - 1}, got {wrong[0]}; where= leaves out rows"
        )


class _Terms(NamedTuple):
    """The parts of the loss, and the factors of its gradient.

    The gradient for class j, without the part of the singletons, is
    ``factor[j] * (everywhere + sum of inside[t] over the true blocks t that hold j)``.
    """

    label_surprise: Array  # -log q_y, (n,)
    surprise: Array  # -log Q(B_t(y)), (n, partitions)
    factor: Array  # (n, classes)
    everywhere: Array  # (n,)
    inside: Array  # (n, partitions)


def _forward_of_labels(
    plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays
) -> tuple[Array, Any]:
    """Return the loss of each row, and what its gradient needs."""
    quick, is_good = _quick_terms(plan, logits, labels, arrays)
    terms = _unless(is_good, quick, partial(_stable_terms, plan, logits, labels, arrays))
    return _loss_of_terms(plan, terms, arrays.weights), (terms, labels, arrays.block_of)


def _backward_of_labels(plan: Plan, kept: Any, cotangent: Array) -> tuple[Any, ...]:
    terms, labels, block_of = kept
    coefficient = terms.everywhere[:, None] + _sums_over_partitions(
        plan, terms.inside, labels, block_of
    )
    is_label = jnp.arange(block_of.shape[1]) == labels[:, None]
    gradient = terms.factor * coefficient - jnp.where(is_label, plan.singleton_weight, 0)
    # The cotangent comes last: a small one times a small coefficient could underflow.
    gradient_of_weights = PartitionArrays(None, cotangent @ terms.surprise)
    return cotangent[:, None] * gradient, None, gradient_of_weights


def _unless(is_good: Array, quick: Any, stable: Callable[[], Any]) -> Any:
    """Return the quick result if it is good, or else the stable one, which is computed only then.

    This is a loop that runs once at most. A conditional would copy the arrays, and under vmap it
    would compute both branches.
    """
    state = lax.while_loop(
        lambda state: ~state[1], lambda _: (stable(), jnp.array(True)), (quick, is_good)
    )
    return state[0]


def _loss_of_terms(plan: Plan, terms: _Terms, weights: Array) -> Array:
    # A partition of weight 0 adds nothing, even if its loss is infinite.
    loss = jnp.where(weights == 0, 0, weights * terms.surprise).sum(1)
    if plan.singleton_weight:
        loss += plan.singleton_weight * terms.label_surprise
    return loss


def _sums_over_partitions(plan: Plan, values: Array, labels: Array, block_of: Array) -> Array:
    """Return for each class the sum of the values of the partitions whose true block holds it.

    Values are (n, partitions), sums (n, classes). Few partitions are summed with masks, which are
    fused into the loop that uses the sums; many partitions of few blocks with a matrix product.
    """

    def add(sums: Array, partition: tuple[Array, Array]) -> tuple[Array, None]:
        ids, value = partition
        return sums + jnp.where(_in_true_block(ids, labels), value[:, None], 0), None

    is_few = len(block_of) <= FEW_PARTITIONS
    sums = jnp.zeros((len(labels), block_of.shape[1]), values.dtype)
    if plan.ranges is not None and is_few:
        position = jnp.asarray(plan.ranges.position)
        start, size = (jnp.asarray(array)[labels] for array in plan.ranges[1:])
        for t in range(len(block_of)):
            # As unsigned integers, offsets below the start are large.
            offset = (position - start[:, t, None]).astype(jnp.uint32)
            is_inside = offset < size[:, t, None].astype(jnp.uint32)
            sums += jnp.where(is_inside, values[:, t, None], 0)
        return sums
    if plan.in_block is not None and not is_few:
        in_block = jnp.asarray(plan.in_block, values.dtype)
        n_first = in_block.shape[2]
        of_true = jnp.where(in_block[labels] > 0, values[:, None, :n_first], 0)
        sums = jnp.einsum("nbt,cbt->nc", of_true, in_block, precision=_EXACT)
        values, block_of = values[:, n_first:], block_of[n_first:]
    return lax.scan(add, sums, (block_of, values.T), unroll=is_few)[0]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _loss_of_labels(plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays) -> Array:
    return _forward_of_labels(plan, logits, labels, arrays)[0]


_loss_of_labels.defvjp(_forward_of_labels, _backward_of_labels)
_jitted_loss = jax.jit(_loss_of_labels, static_argnums=0)


def _quick_terms(
    plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays
) -> tuple[_Terms, Array]:
    """Return the terms from one table of exponentials, and whether they are good.

    Logits are relative to the label's, which is in every true block. So no sum is below 1, and
    nothing that matters underflows. The total may overflow if the label is nearly impossible.
    """
    factor = jnp.exp(logits - _at(logits, labels)[:, None])
    inside, total = _sums_of_true_blocks(plan, factor, labels, arrays.block_of)
    terms = _Terms(
        label_surprise=jnp.log(total),
        surprise=jnp.log(total)[:, None] - jnp.log(inside),
        factor=factor,
        everywhere=(plan.singleton_weight + arrays.weights.sum()) / total,
        inside=-arrays.weights / inside,
    )
    return terms, _is_in_reach(total)


def _is_in_reach(total: Array) -> Array:
    """Return whether all totals are far enough from overflow that 1 / total is not lost."""
    reach = float(np.finfo(total.dtype).max) ** 0.8
    return jnp.all(total < reach)


def _sums_of_true_blocks(
    plan: Plan, values: Array, labels: Array, block_of: Array
) -> tuple[Array, Array]:
    """Return the sum of the values over each true block, (n, partitions), and over all, (n,)."""

    def under_mask(_: None, ids: Array) -> tuple[None, Array]:
        return None, jnp.where(_in_true_block(ids, labels), values, 0).sum(1)

    def of_members(window: Window) -> Array:
        start, size, members = map(jnp.asarray, window[:3])
        rows = jax.vmap(partial(lax.dynamic_slice_in_dim, members, slice_size=window.width))
        taken = jnp.take_along_axis(values, rows(start[labels]), axis=1, mode=IN_BOUNDS)
        return jnp.where(jnp.arange(window.width) < size[labels][:, None], taken, 0).sum(1)

    n_first = 0 if plan.in_block is None else plan.in_block.shape[2]
    wide = block_of[n_first : len(block_of) - len(plan.windows)]
    _, masked = lax.scan(under_mask, None, wide, unroll=len(wide) <= _FEW_MASKS)
    others = [masked.T, *(of_members(window)[:, None] for window in plan.windows)]
    if not n_first:
        return jnp.concatenate(others, axis=1), values.sum(1)
    in_block = jnp.asarray(plan.in_block, values.dtype)
    of_blocks = jnp.einsum("nc,cbt->nbt", values, in_block, precision=_EXACT)
    first = jnp.where(in_block[labels] > 0, of_blocks, 0).sum(1)
    # The blocks of any partition add up to all classes, which saves a pass over the values.
    return jnp.concatenate([first, *others], axis=1), of_blocks[:, :, 0].sum(1)


def _forward_of_cuts(
    plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays
) -> tuple[Array, Any]:
    """Return the loss of each row, and two factors of its gradient, (n, classes) each."""

    def stable() -> tuple[Array, Array, Array]:
        terms = _stable_terms(plan, logits, labels, arrays)
        is_label = jnp.arange(logits.shape[1]) == labels[:, None]
        gradient = terms.factor - jnp.where(is_label, plan.singleton_weight, 0)
        return _loss_of_terms(plan, terms, arrays.weights), gradient, jnp.ones_like(gradient)

    quick, is_good = _quick_loss_of_cuts(plan, logits, labels)
    loss, factor, coefficient = _unless(is_good, quick, stable)
    return loss, (factor, coefficient)


def _backward_of_cuts(_: Plan, kept: tuple[Array, Array], cotangent: Array) -> tuple[Any, ...]:
    factor, coefficient = kept
    # The weights of cuts are constants, so that they have no gradient.
    return cotangent[:, None] * (factor * coefficient), None, None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _loss_of_cuts(plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays) -> Array:
    return _forward_of_cuts(plan, logits, labels, arrays)[0]


_loss_of_cuts.defvjp(_forward_of_cuts, _backward_of_cuts)
_jitted_loss_of_cuts = jax.jit(_loss_of_cuts, static_argnums=0)


def _quick_loss_of_cuts(
    plan: Plan, logits: Array, labels: Array
) -> tuple[tuple[Array, Array, Array], Array]:
    """Return the loss of each row, two factors of its gradient, and whether they are good.

    The true block of the cut after class c is {> c} for labels above c, and {<= c} for the others.
    With e = exp(z) relative to the label's logit, S_c the sum of e over the true block, w_c the
    weight of the cut, and W the sum of all weights:

        loss       = W log(total) - sum_c w_c log S_c
        gradient_j = e_j (W / total - w_0 [j = y]
                          - sum of w_c / S_c over the cuts whose true block holds j)

    Piece i has the classes i, i + n, i + 2 n, ..., with n pieces. Summing within a row of
    pieces, then over rows by a small matrix product, is faster than a cumulative sum.
    """
    n_classes = logits.shape[1]
    factor = jnp.exp(logits - _at(logits, labels)[:, None])
    n_rows = -(-n_classes // _N_PIECES)
    padding = n_rows * _N_PIECES - n_classes

    def pieces(values: Any) -> list[Any]:
        by_row = values.reshape(n_rows, _N_PIECES, -1)
        return [by_row[:, i] for i in range(_N_PIECES)]

    e = pieces(jnp.pad(factor.T, ((0, padding), (0, 0))))
    weights = pieces(np.pad(plan.cuts, (0, padding)).astype(factor.dtype))
    classes = pieces(np.arange(n_rows * _N_PIECES))
    is_above = [labels > c for c in classes]  # whether the label is above the cut
    true_sums = [
        jnp.where(is_in, above, below + own)
        for is_in, above, below, own in zip(
            is_above, _sums_after(e), _sums_before(e), e, strict=True
        )
    ]
    total = true_sums[-1][-1]  # after the last class there is no cut
    total_weight = plan.singleton_weight + plan.cuts.sum()
    loss = total_weight * jnp.log(total)
    loss -= sum(w * jnp.log(s) for w, s in zip(weights, true_sums, strict=True)).sum(0)
    share = [w / s for w, s in zip(weights, true_sums, strict=True)]
    upper = [jnp.where(is_in, r, 0) for is_in, r in zip(is_above, share, strict=True)]
    lower = [jnp.where(is_in, 0, r) for is_in, r in zip(is_above, share, strict=True)]
    everywhere = total_weight / total
    coefficient = [
        everywhere - (above + below + own) - jnp.where(c == labels, plan.singleton_weight, 0)
        for above, below, own, c in zip(
            _sums_before(upper), _sums_after(lower), lower, classes, strict=True
        )
    ]
    stacked = jnp.stack(coefficient, 1).reshape(n_rows * _N_PIECES, -1)[:n_classes]
    return (loss, factor, stacked.T), _is_in_reach(total)


def _sums_before(pieces: list[Array]) -> list[Array]:
    """Return the sum over all classes before each class, in pieces."""
    within = [jnp.zeros_like(pieces[0])]
    for piece in pieces:
        within.append(within[-1] + piece)
    before = np.tri(len(pieces[0]), k=-1, dtype=pieces[0].dtype)  # rows before each row
    rows_before = jnp.matmul(before, within.pop(), precision=_EXACT)
    return [rows_before + sums for sums in within]


def _sums_after(pieces: list[Array]) -> list[Array]:
    """Return the sum over all classes after each class, in pieces."""
    backwards = [piece[::-1] for piece in pieces[::-1]]
    return [sums[::-1] for sums in _sums_before(backwards)[::-1]]


def _stable_terms(plan: Plan, logits: Array, labels: Array, arrays: PartitionArrays) -> _Terms:
    """Return the terms from a separate softmax of each block: accurate for any logits."""
    q, largest, log_total = _softmax(logits)

    def subtract(gradient: Array, partition: tuple[Array, Array]) -> tuple[Array, Array]:
        ids, weight = partition
        inside = jnp.where(_in_true_block(ids, labels), logits, -jnp.inf)
        share, largest_inside, log_inside = _softmax(inside)
        surprise = (largest - largest_inside) + (log_total - log_inside)
        return gradient - weight * share, surprise

    total_weight = plan.singleton_weight + arrays.weights.sum()
    gradient, surprise = lax.scan(subtract, total_weight * q, (arrays.block_of, arrays.weights))
    return _Terms(
        label_surprise=(largest - _at(logits, labels)) + log_total,
        surprise=surprise.T,
        factor=gradient,
        everywhere=jnp.ones_like(largest),
        inside=jnp.zeros_like(surprise.T),
    )


def _softmax(rows: Array) -> tuple[Array, Array, Array]:
    """Return the softmax, the largest logit of each row, and the log-sum-exp relative to it.

    The last two are kept apart: with large logits their sum would lose digits.
    """
    largest = finite(rows.max(1))
    factor = jnp.exp(rows - largest[:, None])
    total = factor.sum(1)
    # In a row of only -inf all shares are 0.
    return factor / jnp.where(total == 0, 1, total)[:, None], largest, jnp.log(total)


def _in_true_block(ids: Array, labels: Array) -> Array:
    return ids.at[labels].get(mode=IN_BOUNDS)[:, None] == ids  # (n, classes)


def _at(logits: Array, labels: Array) -> Array:
    return jnp.take_along_axis(logits, labels[:, None], axis=1, mode=IN_BOUNDS)[:, 0]


@partial(jax.jit, static_argnums=5)
def _jitted_losses(
    rows: Array,
    codes: Array,
    members: Array,
    arrays: PartitionArrays,
    singleton_weight: float,
    n_codes: int,
) -> Array:
    logits, n_classes = as_matrix(rows), rows.shape[-1]
    known = jnp.clip(codes, 0, n_codes - 1)
    flat = known.reshape(-1, 1)
    of_sets = members[jnp.maximum(flat[:, 0] - n_classes, 0)]
    is_member = jnp.where(flat < n_classes, jnp.arange(n_classes) == flat, of_sets)
    weights = jnp.asarray(arrays.weights).astype(logits.dtype)
    arrays = PartitionArrays(jnp.asarray(arrays.block_of), weights)
    loss = _loss_of_codes(logits, is_member, arrays, jnp.asarray(singleton_weight, logits.dtype))
    return jnp.where(known == codes, loss.reshape(codes.shape).astype(rows.dtype), jnp.nan)


def _forward_of_codes(
    logits: Array, is_member: Array, arrays: PartitionArrays, singleton_weight: Array
) -> tuple[Array, Any]:
    """Return sum_t w_t [lse(z) - lse(z over A_t)] of each row, (n,), and what its gradient needs.

    The gradient is computed in the same loop, so that only one partition is held at a time.
    """
    q, largest, log_total = _softmax(logits)
    first = is_member.argmax(1)

    def add(total: Array, weight: Array, inside: Array) -> tuple[Array, Array]:
        share, own_largest, log_own = _softmax(jnp.where(inside, logits, -jnp.inf))
        surprise = (largest - own_largest) + (log_total - log_own)
        return total + weight * (q - share), surprise

    def add_partition(total: Array, partition: tuple[Array, Array]) -> tuple[Array, Array]:
        ids, weight = partition
        with_first = ids[first][:, None] == ids
        holds = (with_first | ~is_member).all(1, keepdims=True)
        return add(total, weight, jnp.where(holds, with_first, is_member))

    gradient, own = add(jnp.zeros_like(logits), singleton_weight, is_member)
    gradient, surprise = lax.scan(add_partition, gradient, (arrays.block_of, arrays.weights))
    weights, surprises = jnp.append(arrays.weights, singleton_weight), jnp.vstack([surprise, own])
    # A partition of weight 0 adds nothing, even if its loss is infinite.
    loss = jnp.where(weights[:, None] == 0, 0, weights[:, None] * surprises).sum(0)
    return loss, (gradient, surprise)


def _backward_of_codes(kept: Any, cotangent: Array) -> tuple[Any, ...]:
    gradient, surprise = kept
    of_weights = PartitionArrays(None, surprise @ cotangent)
    return cotangent[:, None] * gradient, None, of_weights, None


@jax.custom_vjp
def _loss_of_codes(
    logits: Array, is_member: Array, arrays: PartitionArrays, singleton_weight: Array
) -> Array:
    return _forward_of_codes(logits, is_member, arrays, singleton_weight)[0]


_loss_of_codes.defvjp(_forward_of_codes, _backward_of_codes)
