"""The loss of codes that are classes or sets of classes: rows that are known less exactly."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from structent.kernels.coarse import members_of_sets
from structent.losses.jax.of_labels import as_matrix, check_range, softmax
from structent.losses.jax.plan import PartitionArrays, Structure, compiled


def loss_of_codes(
    rows: Array, codes: Array, structure: Structure, sets: tuple[tuple[int, ...], ...]
) -> Array:
    """Return the loss of each example, the classes being on the last axis of the rows.

    Code ``n_classes + s`` means set s. Every partition is looked at in full, one after the other:
    memory is O(examples x classes).
    """
    n_classes = rows.shape[-1]
    check_range(codes, n_classes + len(sets))
    plan, arrays = compiled(structure)
    members = members_of_sets(sets, n_classes)
    # As JAX's own: NumPy's float64 would be another type inside of enable_x64 than outside.
    own = PartitionArrays(*map(jnp.asarray, arrays))
    loss: Array = _jitted_losses(
        rows, codes, members, own, plan.singleton_weight, n_classes + len(sets)
    )
    return loss


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
    loss = _loss(logits, is_member, arrays, jnp.asarray(singleton_weight, logits.dtype))
    return jnp.where(known == codes, loss.reshape(codes.shape).astype(rows.dtype), jnp.nan)


def _forward(
    logits: Array, is_member: Array, arrays: PartitionArrays, singleton_weight: Array
) -> tuple[Array, Any]:
    """Return sum_t w_t [lse(z) - lse(z over A_t)] of each row, (n,), and what its gradient needs.

    The gradient is taken at once, so that the arrays of one partition are held at a time.
    """
    q, largest, log_total = softmax(logits)
    first = is_member.argmax(1)

    def add(total: Array, weight: Array, inside: Array) -> tuple[Array, Array]:
        share, own_largest, log_own = softmax(jnp.where(inside, logits, -jnp.inf))
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


def _backward(kept: Any, cotangent: Array) -> tuple[Any, ...]:
    gradient, surprise = kept
    of_weights = PartitionArrays(None, surprise @ cotangent)
    return cotangent[:, None] * gradient, None, of_weights, None


@jax.custom_vjp
def _loss(
    logits: Array, is_member: Array, arrays: PartitionArrays, singleton_weight: Array
) -> Array:
    return _forward(logits, is_member, arrays, singleton_weight)[0]


_loss.defvjp(_forward, _backward)
