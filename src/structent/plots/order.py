"""The order in which classes are drawn, and whether a structure is itself an order or a circle."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

from structent._typing import IndexArray
from structent.structure import (
    FixedStructure,
    Partition,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
)
from structent.structure.graph import adjacency


def structure_order(structure: RandomPartition | PartitionSampler) -> IndexArray:
    """Return the places of the classes, in an order that keeps blocks together.

    In a hierarchy the classes of every block are next to each other. In a graph neighbours are
    close (reverse Cuthill-McKee). All other structures, such as circles and scales, keep their own
    order.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    >>> structure_order(plants).tolist()
    [0, 2, 1]
    """
    if isinstance(structure, FixedStructure):
        structure = structure.structure
    if isinstance(structure, SpanningTreePartitions):
        links = adjacency(structure.graph)
        return reverse_cuthill_mckee(links, symmetric_mode=True).astype(np.int64)
    if isinstance(structure, RandomPartition) and structure.is_nested:
        coarsest_first = sorted(structure.partitions, key=len)
        # NumPy sorts by the last key first.
        return np.lexsort([partition.block_of for partition in reversed(coarsest_first)])
    return np.arange(len(structure.classes))


def is_order(structure: RandomPartition) -> bool:
    """Whether every block is a run of neighbours in the order of the classes.

    Examples
    --------
    >>> from structent import circular, ordinal
    >>> is_order(ordinal(["S", "M", "L"])), is_order(circular(range(12)))
    (True, False)
    """
    # Blocks are numbered by their first class, so the numbers of an order never decrease.
    return all((np.diff(p.block_of) >= 0).all() for p, _, _ in coarse_partitions(structure))


def is_circle(structure: RandomPartition) -> bool:
    """Whether every block is a run of neighbours when the last class is beside the first.

    Examples
    --------
    >>> from structent import Partition, RandomPartition, circular
    >>> crossed = RandomPartition([Partition(["a", "b", "c", "d"], [0, 1, 0, 1])])
    >>> is_circle(circular(range(12))), is_circle(crossed)
    (True, False)
    """
    for partition, _, _ in coarse_partitions(structure):
        n_borders = int((partition.block_of != np.roll(partition.block_of, 1)).sum())
        # Around a circle there are as many borders as runs, and none if there is one block.
        if n_borders != partition.n_blocks and partition.n_blocks > 1:
            return False
    return True


def coarse_partitions(structure: RandomPartition) -> list[tuple[Partition, float, str]]:
    """Return every partition but the singletons, with its weight and its level."""
    every = zip(structure.partitions, structure.weights.tolist(), structure.level_of, strict=True)
    return [entry for entry in every if not entry[0].is_singletons]
