"""A structure as JAX takes it: constants of the compiled function, or arrays that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np

from structent.errors import StructureError
from structent.kernels.layout import Layout
from structent.structure import RandomPartition

# Up to so many partitions the loop over them is unrolled.
FEW_PARTITIONS = 32
# A block of more than this part of the classes is summed faster under a mask than by its members.
_NARROW = 1 / 3


class PartitionArrays(NamedTuple):
    """A random partition as arrays: a pytree, to be an argument of a jitted function.

    A ``RandomPartition`` is a constant of the compiled function, and another one means another
    compilation. Of these arrays only the shapes matter: all draws of a sampler share one.
    """

    block_of: Any  # (partitions, classes)
    weights: Any  # (partitions,)


Structure: TypeAlias = RandomPartition | PartitionArrays


def partition_arrays(structure: RandomPartition) -> PartitionArrays:
    """Return a random partition as arrays, for the paper's variable partition.

    Examples
    --------
    >>> from structent import SpanningTreePartitions
    >>> from structent.structure.catalog import california_counties
    >>> from structent.losses.jax import structured_cross_entropy
    >>> sampler = SpanningTreePartitions(california_counties(), n_blocks=10, singleton_weight=0.5)
    >>> import jax
    >>> @jax.jit
    ... def loss(logits, labels, structure):
    ...     return structured_cross_entropy(logits, labels, structure).mean()
    >>> for step in range(3):
    ...     drawn = partition_arrays(sampler.sample(step))
    ...     value = loss(jnp.zeros((2, 58)), jnp.array([3, 7]), drawn)
    """
    if not isinstance(structure, RandomPartition):
        raise not_fixed(structure)
    return PartitionArrays(jnp.asarray(structure.block_of), jnp.asarray(structure.weights))


def not_fixed(structure: object) -> StructureError:
    """Return the error for what is not a structure, or is a sampler."""
    kind = type(structure).__name__
    if hasattr(structure, "sample"):
        return StructureError(
            f"structure must be one draw, got the sampler {kind}, whose draw would freeze in a "
            "compiled function; give that function partition_arrays(sampler.sample(step)) instead"
        )
    return StructureError(f"structure must be a RandomPartition or its arrays, got {kind}")


class Window(NamedTuple):
    """A partition into small blocks, by their members, in NumPy's arrays.

    The members of the block of class c are the first ``size[c]`` of ``members[start[c]:][:width]``.
    """

    start: Any
    size: Any
    members: Any
    width: int


@dataclass(frozen=True, eq=False)
class Plan:
    """What is known of a structure while tracing, besides its arrays."""

    singleton_weight: float = 0.0
    windows: tuple[Window, ...] = ()  # of the last partitions
    tree: tuple[tuple[Any, float], ...] | None = None  # the parents and the weight of each level


_DRAWN = Plan()


def compiled(structure: Structure) -> tuple[Plan, PartitionArrays]:
    """Return what is known of a structure while tracing, and its arrays."""
    return (_DRAWN, structure) if isinstance(structure, PartitionArrays) else _fixed(structure)


@lru_cache(maxsize=64)
def _fixed(structure: RandomPartition) -> tuple[Plan, PartitionArrays]:
    """Compile a structure to NumPy's arrays: JAX's that are made in a trace must not leave it."""
    layout = Layout.of(structure)
    windows = [_window(layout, t) for t in range(layout.n_partitions)]
    is_narrow = np.array([w.width <= _NARROW * layout.n_classes for w in windows], dtype=bool)
    is_narrow &= layout.n_partitions <= FEW_PARTITIONS
    order = np.argsort(is_narrow, kind="stable")
    arrays = PartitionArrays(layout.local_block_of[order], layout.weights[order])
    narrow = tuple(windows[t] for t in np.flatnonzero(is_narrow))
    tree = None
    if layout.parents is not None:
        tree = tuple(zip(layout.parents, layout.weights[::-1].tolist(), strict=True))
    return Plan(layout.singleton_weight, narrow, tree), arrays


def _window(layout: Layout, t: int) -> Window:
    k, ids = layout.n_classes, layout.block_of[t]
    size = np.diff(layout.start)[ids]
    # Padded, since the slice of the last block is as wide as the others.
    members = np.pad(layout.members[t * k : (t + 1) * k], (0, size.max()))
    return Window(layout.start[ids] - t * k, size, members, int(size.max()))
