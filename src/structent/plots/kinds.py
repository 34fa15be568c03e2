"""What kind of thing a structure is, told by its partitions: an order, a circle, or neither."""

import numpy as np

from structent.structure import Partition, RandomPartition


def coarse_partitions(structure: RandomPartition) -> list[tuple[Partition, float, str]]:
    """Return every partition but the singletons, with its weight and its level."""
    every = zip(structure.partitions, structure.weights.tolist(), structure.level_of, strict=True)
    return [entry for entry in every if not entry[0].is_singletons]


def is_order(structure: RandomPartition) -> bool:
    """Whether every block is a run of neighbours in the order of the classes.

    Examples
    --------
    >>> from structent import circular, ordinal
    >>> is_order(ordinal(["S", "M", "L"])), is_order(circular(range(12)))
    (True, False)
    """
    # Blocks are numbered by their first class, so that runs have numbers that never fall.
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
        # Around a circle there are as many borders as runs, and none where there is one block.
        if n_borders != partition.n_blocks and partition.n_blocks > 1:
            return False
    return True
