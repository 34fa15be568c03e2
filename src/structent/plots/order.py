"""The order of the classes in which those that belong together stand together."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from structent._typing import IndexArray
from structent.structure import (
    FixedStructure,
    LabelGraph,
    PartitionSampler,
    RandomPartition,
    SpanningTreePartitions,
)


def structure_order(structure: RandomPartition | PartitionSampler) -> IndexArray:
    """Return the places of the classes, in an order that keeps blocks together.

    In a hierarchy the blocks of every level are runs. In a graph neighbours are close (reverse
    Cuthill-McKee). Elsewhere, on a circle or a scale, the structure's own order is the one.

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


def adjacency(graph: LabelGraph) -> csr_array:
    """Return the matrix of the edges, 1 where two classes are neighbours."""
    n = graph.n_classes
    ones = np.ones(len(graph.neighbour_indices))
    return csr_array((ones, graph.neighbour_indices, graph.start), shape=(n, n))
