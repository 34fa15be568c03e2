"""The loss of distributions over the classes: all blocks are looked at, from the classes up."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from structent.losses.jax.of_labels import finite
from structent.losses.jax.plan import PartitionArrays, Plan


@partial(jax.jit, static_argnums=0)
def loss_of_targets(plan: Plan, logits: Array, mass: Array, arrays: PartitionArrays) -> Array:
    """Return the loss of each row, (n,)."""
    loss = jnp.zeros(len(logits), logits.dtype)
    if plan.singleton_weight:
        loss += plan.singleton_weight * _cross_entropy(jax.nn.log_softmax(logits), mass, axis=1)
    # Classes first, for segments of rows are summed several times faster than those of columns.
    log_q, mass = jax.nn.log_softmax(logits.T, axis=0), mass.T
    if plan.tree is not None:
        # From the classes up: the blocks of a level are made of those of the level before.
        for parent, weight in plan.tree:
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
    shift = lax.stop_gradient(finite(jax.ops.segment_max(log_q, block_of, n_blocks)))
    sums = jax.ops.segment_sum(jnp.exp(log_q - shift[block_of]), block_of, n_blocks)
    # The logarithm of 0 is not taken, for its derivative would be NaN.
    merged = jnp.where(sums == 0, -jnp.inf, shift + jnp.log(jnp.where(sums == 0, 1, sums)))
    return merged, jax.ops.segment_sum(mass, block_of, n_blocks)
