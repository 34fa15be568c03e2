"""A large label tree, like a tree of species, for which padded masks are too slow."""

import numpy as np

from structent import Partition, RandomPartition


def taxonomy(n_classes: int, group_counts: tuple[int, ...]) -> RandomPartition:
    """Return a random tree with about these numbers of groups, and classes in random order."""
    rng = np.random.default_rng(0)
    group, partitions = np.arange(n_classes), []
    for n_groups in group_counts:
        parent = np.sort(rng.integers(n_groups, size=group.max() + 1))
        group = np.unique(parent, return_inverse=True)[1][group]
        partitions.append(group)
    order = rng.permutation(n_classes)
    coarse_to_fine = [Partition(range(n_classes), group[order]) for group in partitions[::-1]]
    return RandomPartition([*coarse_to_fine, Partition.singletons(range(n_classes))])
