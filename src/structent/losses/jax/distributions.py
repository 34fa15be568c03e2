"""The structured loss of distributions over the classes, in JAX's operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from structent.losses.jax.formulas import IN_BOUNDS, finite
from structent.losses.jax.plan import PartitionArrays, Plan

# This many logits, and all that is computed from them, fit in the second-level cache of a CPU.
_CACHED_LOGITS = 2**17


@partial(jax.jit, static_argnums=0)
def loss_of_distributions(plan: Plan, logits: Array, mass: Array, arrays: PartitionArrays) -> Array:
    """Return the loss of each row, (n,)."""
    if plan.tree:
        return _loss_in_tree(plan, logits, mass)
    return _stable_loss_of_distributions(plan, logits, mass, arrays)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _loss_in_tree(plan: Plan, logits: Array, mass: Array) -> Array:
    """Return the loss of each row of distributions, if the partitions are a tree."""
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
    """Visit as many rows at a time as fit in the CPU's cache: this takes 0.6 of the time."""
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

    They are good if no block with mass underflows. All blocks share one table of exponentials:

        loss       = W P(all) log(total) - w_0 sum_c P_c z_c - sum_t w_t sum_B P(B) log S(B)
        gradient_j = e_j (W P(all) / total - sum_t w_t P(B_t(j)) / S(B_t(j))) - w_0 P_j

    with z relative to the largest logit, e = exp(z), and S(B) the sum of e over B.
    """
    relative = logits - finite(logits.max(1))[:, None]
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
    # From the coarsest level down, each level adds the terms of the levels above it.
    parent, inside = levels.pop()
    while levels:
        grandparent, (parent, own) = parent, levels.pop()
        # XLA would fuse a plain sum into the last loop, and look up all levels for every class. A
        # sum at given rows is not fused.
        rows = np.arange(len(own))
        inside = own.at[rows].add(inside.at[grandparent].get(mode=IN_BOUNDS), unique_indices=True)
    everywhere = total_weight * total_mass / total
    coefficient = everywhere - inside.at[parent].get(mode=IN_BOUNDS)
    return loss, exponentials.T * coefficient - plan.singleton_weight * mass.T, is_good


def _segment_sums(values: Array, parent: Any) -> Array:
    return jax.ops.segment_sum(values, parent, int(parent.max()) + 1, mode=IN_BOUNDS)


def _trusted(logits: Array) -> float:
    """Return the least sum in which exponentials that underflowed to 0 make no difference."""
    limits = np.finfo(logits.dtype)
    return float(logits.shape[1] * limits.tiny / limits.eps)


def _stable_loss_of_distributions(
    plan: Plan, logits: Array, mass: Array, arrays: PartitionArrays | None
) -> Array:
    """Return the loss of each row, each block relative to its largest: accurate for any logits.

    The arrays are used if there is no tree.
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
    # A class or block without mass adds nothing, even if its loss is infinite.
    return -(mass * jnp.where((mass == 0) & jnp.isneginf(log_q), 0, log_q)).sum(axis)


def _merged(log_q: Array, mass: Array, block_of: Any, *, n_blocks: int) -> tuple[Array, Array]:
    """Return each block's log-probability, computed relative to its largest, and its mass."""
    shift = lax.stop_gradient(finite(jax.ops.segment_max(log_q, block_of, n_blocks)))
    sums = jax.ops.segment_sum(jnp.exp(log_q - shift[block_of]), block_of, n_blocks)
    # The logarithm of 0 is not taken, because its derivative would be NaN.
    merged = jnp.where(sums == 0, -jnp.inf, shift + jnp.log(jnp.where(sums == 0, 1, sums)))
    return merged, jax.ops.segment_sum(mass, block_of, n_blocks)
