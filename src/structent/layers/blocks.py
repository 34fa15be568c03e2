"""How the weights of a layer are computed from the vectors of classes and blocks, in any framework.

If there are few blocks, a matrix product sums them. If there are many, sums go from the coarsest
partition to the classes: that takes a few reads and writes for each weight and each chain of nested
partitions, however many blocks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from structent._typing import FloatArray, IntArray
from structent.errors import StructureError
from structent.structure import PartitionSampler, RandomPartition
from structent.structure.partition import parents_of
from structent.structure.samplers import checked_structure
from structent.structure.similarity import SimilarityFactor

# Up to this many blocks, or this many for each chain, the product takes less time.
_FEW_BLOCKS, _BLOCKS_OF_A_CHAIN = 64, 6


class Operations(NamedTuple):
    """The operations of a framework.

    Attributes
    ----------
    matmul
        The product of two matrices.
    multiply
        ``x * scale``.
    add
        ``x + y * scale``, which may overwrite x.
    take
        Rows of a table, by their numbers.
    split
        A table, split into parts with the given numbers of rows.
    """

    matmul: Callable[[Any, Any], Any]
    multiply: Callable[[Any, float], Any]
    add: Callable[[Any, Any, float], Any]
    take: Callable[[Any, Any], Any]
    split: Callable[[Any, list[int]], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class BlockPlan:
    r"""How a class gets its weight: :math:`\sqrt s` times its vector plus its scaled block vectors.

    Attributes
    ----------
    factor
        The classes as sums of their blocks.
    own_root
        The root of the weight of the singletons.
    matrix
        The matrix that sums the vectors of blocks if there are few, (rows, blocks). Its rows are
        the classes, or the finest blocks if partitions are nested. None if there are many blocks.
    chains
        For many blocks: the roots of the weights of partitions, from coarse to fine, in one chain
        if they are nested, otherwise one chain for each partition.
    sizes
        The number of blocks of each partition in the chains.
    parents
        For each of these partitions, the block that contains each block of the next partition in
        the chain; for the last one, the block of each class. With a matrix whose rows are blocks,
        the finest block of each class.
    """

    factor: SimilarityFactor
    own_root: float
    matrix: FloatArray | None
    chains: tuple[tuple[float, ...], ...]
    sizes: list[int]
    parents: tuple[IntArray, ...]

    def class_vectors(
        self, own: Any, of_blocks: Any, matrix: Any, parents: Sequence[Any], xp: Operations
    ) -> Any:
        """Return the weight of each class, (classes, features).

        Parameters
        ----------
        own, of_blocks
            The vectors of the classes, (classes, features), and of the blocks, (blocks, features).
        matrix, parents
            The ``matrix`` and ``parents`` of the plan, as arrays of the framework.
        xp
            The operations of the framework.
        """
        if matrix is not None:
            sums = xp.matmul(matrix, of_blocks)
            return xp.add(xp.take(sums, parents[0]) if parents else sums, own, self.own_root)
        parts, vectors, scale, place = xp.split(of_blocks, self.sizes), own, self.own_root, 0
        for roots in self.chains:
            level = xp.multiply(parts[place], roots[0])
            for root in roots[1:]:
                level = xp.add(xp.take(level, parents[place]), parts[place + 1], root)
                place += 1
            vectors, scale = xp.add(xp.take(level, parents[place]), vectors, scale), 1.0
            place += 1
        return vectors


def block_plan(
    structure: RandomPartition | PartitionSampler, singleton_weight: float | None
) -> BlockPlan:
    """Return the plan of a layer with a structure; the singletons may get another weight.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> plan = block_plan(plants, 0.75)  # each plant has 0.5 times the vector of its kind
    >>> plan.matrix.tolist(), plan.parents[0].tolist(), round(plan.own_root**2, 9)
    ([[0.5, 0.0], [0.0, 0.5]], [0, 0, 1], 0.75)
    """
    structure = checked_structure(structure)
    if singleton_weight is not None:
        adjustable: Any = structure
        structure = adjustable.with_singleton_weight(singleton_weight)
    factor = SimilarityFactor.of(structure)
    if factor.singleton_weight <= 0.0:
        raise StructureError(
            "the structure of a layer needs a singleton weight above 0, so that it can learn any "
            "weights, got 0; give singleton_weight=0.1"
        )
    nested = parents_of(factor.block_of[::-1])
    n_chains = len(factor.weights) if nested is None else 1
    if factor.n_blocks <= max(_FEW_BLOCKS, _BLOCKS_OF_A_CHAIN * n_chains) or _is_drawn(factor):
        return _plan_of_few(factor, nested)
    parents = tuple(factor.block_of) if nested is None else nested[::-1]
    roots = np.sqrt(factor.weights).tolist()
    chains = tuple((root,) for root in roots) if nested is None else (tuple(roots),)
    sizes = [int(parent.max()) + 1 for parent in parents]
    return BlockPlan(factor, _own_root(factor), None, chains, sizes, parents)


def _plan_of_few(factor: SimilarityFactor, nested: tuple[IntArray, ...] | None) -> BlockPlan:
    matrix = csr_array(factor.matrix).toarray()
    if not nested:  # not nested, or without partitions (a sampler)
        matrix_or_none = matrix if factor.n_blocks else None
        return BlockPlan(factor, _own_root(factor), matrix_or_none, (), [], ())
    finest = nested[0]
    _, first = np.unique(finest, return_index=True)
    return BlockPlan(factor, _own_root(factor), matrix[first], (), [], (finest,))


def _own_root(factor: SimilarityFactor) -> float:
    return float(np.sqrt(factor.singleton_weight))


def _is_drawn(factor: SimilarityFactor) -> bool:
    """Whether the factor comes from a sampler, which has no partitions to follow."""
    return len(factor.weights) == 0
