"""Ordinal structures: grades, sizes, severities."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from structent.errors import StructureError
from structent.structure.labels import as_classes
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition, with_singletons


def ordinal(classes: Iterable[Any], singleton_weight: float = 0.5) -> RandomPartition:
    """Return the cuts of an order into a lower and an upper part, equally probable.

    There are ``n_classes - 1`` cuts {<= c}, {> c}. The more cuts are between two classes, the
    further apart they are.

    Parameters
    ----------
    classes
        The classes in their order, at least two.
    singleton_weight
        The weight of the singletons; the cuts share the rest.

    Examples
    --------
    >>> sizes = ordinal(["S", "M", "L"], singleton_weight=0.5)
    >>> [partition.names for partition in sizes.partitions]
    [('S', 'M+L'), ('S+M', 'L'), ('S', 'M', 'L')]
    >>> sizes.weights.tolist()
    [0.25, 0.25, 0.5]
    """
    ordered = as_classes(classes)
    n_cuts = len(ordered) - 1
    if n_cuts == 0:
        raise StructureError(f"an order needs at least two classes, got {ordered}")
    above = 1 - np.tri(n_cuts, n_cuts + 1, dtype=np.int32)  # (cuts, classes)
    cuts = [Partition(ordered, cut) for cut in above]
    return with_singletons(cuts, singleton_weight, level="cut")
