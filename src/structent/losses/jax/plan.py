"""A structure as JAX takes it: constants of the compiled function, or arrays that are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from structent._typing import IntArray
from structent.errors import StructureError
from structent.kernels.layout import Layout
from structent.structure import RandomPartition

# The loop over partitions is unrolled up to this many.
FEW_PARTITIONS = 32
# A block of more than this part of the classes is summed faster under a mask than by its members.
_NARROW = 1 / 3
# Partitions of up to this many blocks are summed together by one matrix product over all blocks:
# with many classes or many partitions this is faster than a mask for each.
_FEW_BLOCKS = 8
_MANY_CLASSES = 1000


class PartitionArrays(NamedTuple):
    """A random partition as arrays: a pytree that can be an argument of a jitted function.

    A ``RandomPartition`` is a constant of the compiled function, so each new one is compiled again.
    Of these arrays only the shapes matter: all draws of a sampler share one compilation.
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


class Ranges(NamedTuple):
    """The blocks of a tree as ranges of one order of the classes, in NumPy's arrays.

    Class j is in the block of class c of partition t if
    ``0 <= position[j] - start[c, t] < size[c, t]``. This reads less memory than one id of class j
    for each partition.
    """

    position: Any  # (classes,)
    start: Any  # (classes, partitions)
    size: Any  # (classes, partitions)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is known of a structure while tracing, besides its arrays.

    ``in_block`` is for the first partitions, which have few blocks: 1 if a class is in block b of
    partition t, else 0, (classes, blocks, partitions). ``windows`` are for the last partitions.
    """

    singleton_weight: float = 0.0
    in_block: Any = None
    windows: tuple[Window, ...] = ()
    ranges: Ranges | None = None  # where the partitions are a tree
    tree: tuple[tuple[Any, float], ...] | None = None  # the parents and the weight of each level
    cuts: Any = None  # where all partitions cut one order: the weight of the cut after each class


_DRAWN = Plan()


def compiled(structure: Structure) -> tuple[Plan, PartitionArrays]:
    """Return what is known of a structure while tracing, and its arrays."""
    return (_DRAWN, structure) if isinstance(structure, PartitionArrays) else _fixed(structure)


@lru_cache(maxsize=64)
def _fixed(structure: RandomPartition) -> tuple[Plan, PartitionArrays]:
    """Compile a structure to NumPy arrays, because JAX arrays made in a trace must not leave it."""
    layout = Layout.of(structure)
    n_blocks = layout.local_block_of.max(axis=1, initial=0) + 1
    windows = [_window(layout, t) for t in range(layout.n_partitions)]
    is_narrow = np.array([w.width <= _NARROW * layout.n_classes for w in windows], dtype=bool)
    is_narrow &= layout.n_partitions <= FEW_PARTITIONS
    is_large = max(layout.n_classes / _MANY_CLASSES, layout.n_partitions / FEW_PARTITIONS) > 1
    has_few = (n_blocks <= _FEW_BLOCKS) & is_large
    is_narrow &= ~has_few
    order = np.lexsort([is_narrow, ~has_few])  # stable: few blocks, then any, then small ones
    block_of = layout.local_block_of[order]
    ranges = tree = None
    if layout.parents:  # a tree that is not empty
        ranges = _ranges(block_of, layout.local_block_of)
        tree = tuple(zip(layout.parents, layout.weights[::-1].tolist(), strict=True))
    plan = Plan(
        singleton_weight=layout.singleton_weight,
        in_block=_in_block(block_of[: has_few.sum()]),
        windows=tuple(windows[t] for t in np.flatnonzero(is_narrow)),
        ranges=ranges,
        tree=tree,
        cuts=_cuts(layout) if layout.n_partitions > FEW_PARTITIONS else None,
    )
    return plan, PartitionArrays(block_of, layout.weights[order])


def _in_block(block_of: IntArray) -> NDArray[np.float32] | None:
    """Return whether each class is in each block, (classes, blocks, partitions)."""
    if not len(block_of):
        return None
    blocks = np.arange(block_of.max() + 1)[:, None]
    in_block: NDArray[np.float32] = (block_of.T[:, None] == blocks).astype(np.float32)
    return in_block


def _cuts(layout: Layout) -> NDArray[np.float64] | None:
    """Return the weight of the cut after each class, if each partition is one cut of the order."""
    is_boundary = np.diff(layout.local_block_of, axis=1) != 0  # (partitions, classes - 1)
    if (is_boundary.sum(axis=1) != 1).any():
        return None
    weights: NDArray[np.float64] = np.append(layout.weights @ is_boundary, 0.0)
    return weights


def _ranges(block_of: IntArray, coarse_to_fine: IntArray) -> Ranges:
    """Return the blocks of a tree as ranges of classes, sorted by the coarsest blocks first."""
    position = np.argsort(np.lexsort(coarse_to_fine[::-1])).astype(np.int32)
    start, size = np.empty_like(block_of), np.empty_like(block_of)
    for ids, own_start, own_size in zip(block_of, start, size, strict=True):
        first = np.full(ids.max() + 1, len(ids), dtype=np.int32)
        np.minimum.at(first, ids, position)
        own_start[:], own_size[:] = first[ids], np.bincount(ids)[ids]
    return Ranges(position, start.T.copy(), size.T.copy())


def _window(layout: Layout, t: int) -> Window:
    k, ids = layout.n_classes, layout.block_of[t]
    size = np.diff(layout.start)[ids]
    # Padded, since the slice of the last block is as wide as the others.
    members = np.pad(layout.members[t * k : (t + 1) * k], (0, size.max()))
    return Window(layout.start[ids] - t * k, size, members, int(size.max()))
