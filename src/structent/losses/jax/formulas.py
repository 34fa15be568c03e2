"""The structured loss in JAX's operations: of class indices, of codes and of distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

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

# So many logits at a time, with all that is made of them, stay in the second cache of a CPU.
_CACHED_LOGITS = 2**17
# Up to so many masks, each an array in the shape of the logits, the loop is unrolled.
_FEW_MASKS = 4
# The classes of an order are summed in so many interleaved pieces.
_N_PIECES = 5
_IN_BOUNDS = "promise_in_bounds"  # labels are clipped at the door
_EXACT = lax.Precision.HIGHEST  # else some devices round the factors of a matrix product


def loss_of_labels(rows: Array, labels: Array, structure: Structure) -> Array:
    """Return the loss of each example, the classes being on the last axis of the rows.

    Only the true blocks of each row are looked at.
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
        largest = lax.stop_gradient(_finite(logits.max(1)))
        log_total = jnp.log(jnp.exp(logits - largest[:, None]).sum(1))
        loss = plan.singleton_weight * (log_total + (largest - _at(logits, codes)))
    loss = loss.reshape(labels.shape).astype(rows.dtype)
    return jnp.where((labels >= 0) & (labels < n_classes), loss, jnp.nan)


def loss_of_codes(
    rows: Array, codes: Array, structure: Structure, sets: tuple[tuple[int, ...], ...]
) -> Array:
    """Return the loss of each example, the classes being on the last axis of the rows.

    Code ``n_classes + s`` means set s. Every partition is looked at in full, one after the other:
    memory is O(examples x classes).
    """
    n_classes = rows.shape[-1]
    _check_range(codes, n_classes + len(sets))
    plan, arrays = compiled(structure)
    members = members_of_sets(sets, n_classes)
    # As JAX's own: NumPy's float64 would be another type inside of enable_x64 than outside.
    own = PartitionArrays(*map(jnp.asarray, arrays))
    loss: Array = _jitted_losses(
        rows, codes, members, own, plan.singleton_weight, n_classes + len(sets)
    )
    return loss


@partial(jax.jit, static_argnums=0)
def loss_of_distributions(plan: Plan, logits: Array, mass: Array, arrays: PartitionArrays) -> Array:
    """Return the loss of each row, (n,)."""
    if plan.tree:
        return _loss_in_tree(plan, logits, mass)
    return _stable_loss_of_distributions(plan, logits, mass, arrays)


def as_matrix(rows: Array) -> Array:
    """Return the rows as (n, classes), in float32 or better."""
    matrix = rows.reshape(-1, rows.shape[-1])
    return matrix.astype(jnp.promote_types(rows.dtype, jnp.float32))


def _check_range(labels: Array, n_classes: int) -> None:
    """Refuse labels that are not a class, or not one of so many codes, if they have values yet."""
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
    """The parts of the loss, and its gradient in factors.

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
    # A partition without weight counts nothing, even where its loss is infinite.
    loss = jnp.where(weights == 0, 0, weights * terms.surprise).sum(1)
    if plan.singleton_weight:
        loss += plan.singleton_weight * terms.label_surprise
    return loss


def _sums_over_partitions(plan: Plan, values: Array, labels: Array, block_of: Array) -> Array:
    """Return the sum of the values of the partitions whose true block holds the class.

    Values are (n, partitions), sums (n, classes). Few partitions are masks, which become a part of
    the loop that uses the sums. Many partitions of few blocks are a matrix product.
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
            # As numbers without a sign, those below the start are large.
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

    Relative to the label's logit, which is in every true block, no sum is below 1: nothing that
    matters underflows. What may overflow is the total, where the label is all but impossible.
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
    """Return whether all totals are so far below the largest number that 1 / total is not lost."""
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
        taken = jnp.take_along_axis(values, rows(start[labels]), axis=1, mode=_IN_BOUNDS)
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
    # Any partition's blocks together are all classes, which saves a pass over the values.
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

    Piece i has the classes i, i + n, i + 2 n, ..., with n pieces. To sum within a row of pieces and
    then over rows, by a small matrix product, takes less time than a cumulative sum.
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
    """Return the terms from the softmax of each block by itself: right for any logits."""
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

    Kept apart: in rows of large logits their sum would round away the differences.
    """
    largest = _finite(rows.max(1))
    factor = jnp.exp(rows - largest[:, None])
    total = factor.sum(1)
    # A row of -inf alone has no shares.
    return factor / jnp.where(total == 0, 1, total)[:, None], largest, jnp.log(total)


def _finite(largest: Array) -> Array:
    """Return the largest logits, 0 in place of infinities and NaN: safe to subtract."""
    return jnp.where(jnp.isfinite(largest), largest, 0)


def _in_true_block(ids: Array, labels: Array) -> Array:
    return ids.at[labels].get(mode=_IN_BOUNDS)[:, None] == ids  # (n, classes)


def _at(logits: Array, labels: Array) -> Array:
    return jnp.take_along_axis(logits, labels[:, None], axis=1, mode=_IN_BOUNDS)[:, 0]


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

    The gradient is taken at once, so that the arrays of one partition are held at a time.
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
    # A partition without weight counts nothing, even where its loss is infinite.
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


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _loss_in_tree(plan: Plan, logits: Array, mass: Array) -> Array:
    """Return the loss of each row of distributions, the partitions being a tree."""
    return _loss_and_gradient_in_tree(plan, logits, mass)[0]


def _derivative_in_tree(
    plan: Plan, primals: tuple[Array, Array], tangents: tuple[Any, Any]
) -> tuple[Array, Array]:
    logits, mass = primals
    by_logits, by_mass = tangents
    loss, gradient = _loss_and_gradient_in_tree(plan, logits, mass)
    tangent = jnp.zeros_like(loss)
    if not isinstance(by_logits, SymbolicZero):
        tangent += (gradient * by_logits).sum(1)
    if not isinstance(by_mass, SymbolicZero):  # rare, so that it has no formula of its own
        stable = partial(_stable_loss_of_distributions, plan, logits, arrays=None)
        tangent += jax.jvp(stable, (mass,), (by_mass,))[1]
    return loss, tangent


_loss_in_tree.defjvp(_derivative_in_tree, symbolic_zeros=True)


def _loss_and_gradient_in_tree(plan: Plan, logits: Array, mass: Array) -> tuple[Array, Array]:
    """Return the loss of each row, and its gradient by the logits, (n, classes)."""
    of_rows = partial(_loss_and_gradient_of_few_rows, plan)
    loss, gradient = lax.platform_dependent(
        logits, mass, cpu=partial(_some_rows_at_a_time, of_rows), default=of_rows
    )
    return loss, gradient


def _some_rows_at_a_time(
    of_rows: Callable[[Array, Array], tuple[Array, Array]], logits: Array, mass: Array
) -> tuple[Array, Array]:
    """Visit as many rows at a time as stay in the cache of a CPU, which takes 0.6 of the time."""
    n, n_classes = logits.shape
    size = 2 ** int(np.log2(max(1, _CACHED_LOGITS / n_classes)))
    if n <= size:
        return of_rows(logits, mass)
    n_full = n - n % size
    parts = [x[:n_full].reshape(-1, size, n_classes) for x in (logits, mass)]
    loss, gradient = lax.map(lambda rows: of_rows(*rows), tuple(parts))
    loss, gradient = loss.reshape(n_full), gradient.reshape(n_full, n_classes)
    if n_full == n:
        return loss, gradient
    rest = of_rows(logits[n_full:], mass[n_full:])
    return jnp.concatenate([loss, rest[0]]), jnp.concatenate([gradient, rest[1]])


def _loss_and_gradient_of_few_rows(plan: Plan, logits: Array, mass: Array) -> tuple[Array, Array]:
    # Classes first in both branches: segments of rows are summed several times faster than segments
    # of columns.
    loss, gradient, is_good = _quick_loss_in_tree(plan, logits, mass)

    def stable() -> tuple[Array, Array]:
        of_logits = partial(_stable_loss_of_distributions, plan, mass=mass, arrays=None)
        exact, pull_back = jax.vjp(of_logits, logits)
        return exact, pull_back(jnp.ones_like(exact))[0].T

    loss, gradient = lax.cond(is_good, lambda: (loss, gradient), stable)
    return loss, gradient.T


def _quick_loss_in_tree(plan: Plan, logits: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Return the loss of each row, its gradient, (classes, n), and whether they are good.

    All blocks share one table of exponentials. They are good if no block that has mass underflows:

        loss       = W P(all) log(total) - w_0 sum_c P_c z_c - sum_t w_t sum_B P(B) log S(B)
        gradient_j = e_j (W P(all) / total - sum_t w_t P(B_t(j)) / S(B_t(j))) - w_0 P_j

    with z relative to the largest logit, e = exp(z), and S(B) the sum of e over B.
    """
    relative = logits - _finite(logits.max(1))[:, None]
    exponentials = jnp.exp(relative)
    total, total_mass = exponentials.sum(1), mass.sum(1)
    total_weight = plan.singleton_weight + sum(weight for _, weight in plan.tree or ())
    loss = total_weight * total_mass * jnp.log(total)
    loss -= plan.singleton_weight * jnp.where(mass == 0, 0, mass * relative).sum(1)
    levels: list[tuple[Any, Array]] = []
    is_good = jnp.array(True)
    sums, own_mass = exponentials.T, mass.T
    for parent, weight in plan.tree or ():  # from the classes up
        sums, own_mass = (_segment_sums(x, parent) for x in (sums, own_mass))
        if not levels:  # the finest blocks: a block with mass holds one of these with mass
            is_good = ((sums >= _trusted(logits)) | (own_mass == 0)).all()
        safe = jnp.where(own_mass == 0, 1, sums)
        loss -= weight * (own_mass * jnp.log(safe)).sum(0)
        levels.append((parent, weight * own_mass / safe))
    # From the coarsest level down, each adds what the levels above it have.
    parent, inside = levels.pop()
    while levels:
        grandparent, (parent, own) = parent, levels.pop()
        # XLA would fuse a plain sum into the last loop, and look up all levels for every class. A
        # sum at given rows is not fused.
        rows = np.arange(len(own))
        inside = own.at[rows].add(inside.at[grandparent].get(mode=_IN_BOUNDS), unique_indices=True)
    everywhere = total_weight * total_mass / total
    coefficient = everywhere - inside.at[parent].get(mode=_IN_BOUNDS)
    return loss, exponentials.T * coefficient - plan.singleton_weight * mass.T, is_good


def _segment_sums(values: Array, parent: Any) -> Array:
    return jax.ops.segment_sum(values, parent, int(parent.max()) + 1, mode=_IN_BOUNDS)


def _trusted(logits: Array) -> float:
    """Return the least sum in which exponentials that were cut off to 0 cannot show."""
    limits = np.finfo(logits.dtype)
    return float(logits.shape[1] * limits.tiny / limits.eps)


def _stable_loss_of_distributions(
    plan: Plan, logits: Array, mass: Array, arrays: PartitionArrays | None
) -> Array:
    """Return the loss of each row, every block seen from its own largest: right for any logits.

    The arrays are looked at where there is no tree.
    """
    loss = jnp.zeros(len(logits), logits.dtype)
    if plan.singleton_weight:
        loss += plan.singleton_weight * _cross_entropy(jax.nn.log_softmax(logits), mass, axis=1)
    # Classes first: segments of rows are summed several times faster than segments of columns.
    log_q, mass = jax.nn.log_softmax(logits.T, axis=0), mass.T
    if arrays is None:
        # From the classes up: the blocks of a level are made of those of the level before.
        for parent, weight in plan.tree or ():
            log_q, mass = _merged(log_q, mass, parent, n_blocks=int(parent.max()) + 1)
            loss += weight * _cross_entropy(log_q, mass, axis=0)
        return loss

    def add(loss: Array, partition: tuple[Array, Array]) -> tuple[Array, None]:
        ids, weight = partition
        merged = _merged(log_q, mass, ids, n_blocks=len(log_q))
        return loss + jnp.where(weight == 0, 0, weight * _cross_entropy(*merged, axis=0)), None

    return lax.scan(add, loss, (arrays.block_of, arrays.weights.astype(loss.dtype)))[0]


def _cross_entropy(log_q: Array, mass: Array, *, axis: int) -> Array:
    # No mass counts nothing, even where its loss is infinite.
    return -(mass * jnp.where((mass == 0) & jnp.isneginf(log_q), 0, log_q)).sum(axis)


def _merged(log_q: Array, mass: Array, block_of: Any, *, n_blocks: int) -> tuple[Array, Array]:
    """Return the logarithm of each block's probability, by its own largest, and its mass."""
    shift = lax.stop_gradient(_finite(jax.ops.segment_max(log_q, block_of, n_blocks)))
    sums = jax.ops.segment_sum(jnp.exp(log_q - shift[block_of]), block_of, n_blocks)
    # The logarithm of 0 is not taken, because its derivative would be NaN.
    merged = jnp.where(sums == 0, -jnp.inf, shift + jnp.log(jnp.where(sums == 0, 1, sums)))
    return merged, jax.ops.segment_sum(mass, block_of, n_blocks)
