"""Circular structures: months of a year, hours of a day, directions of the wind."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from structent._checks import checked_integer
from structent.structure.labels import as_classes
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition, with_singletons


def circular(
    classes: Iterable[Any], width: int = 3, singleton_weight: float = 0.3
) -> RandomPartition:
    """Return every rotation of the partition of a circle into blocks of ``width`` neighbours.

    The paper's section 4.2: for twelve months and width 3, the three ways to cut the year into
    quarters, equally probable, and the singletons. If ``width`` does not divide the number of
    classes, one block of each rotation is smaller, and there are as many rotations as classes.

    Parameters
    ----------
    classes
        The classes in their order around the circle.
    width
        The number of classes in a block.
    singleton_weight
        The weight of the singletons; the rotations share the rest.

    Examples
    --------
    >>> year = circular(["jan", "feb", "mar", "apr"], width=2, singleton_weight=0.5)
    >>> [partition.blocks for partition in year.partitions[:2]]
    [(('jan', 'feb'), ('mar', 'apr')), (('jan', 'apr'), ('feb', 'mar'))]
    >>> year.weights.tolist()
    [0.25, 0.25, 0.5]
    """
    ordered = as_classes(classes)
    n_classes = len(ordered)
    width = checked_integer(
        width, "width", at_least=1, at_most=n_classes, reason=", the number of classes"
    )
    steps = range(width if n_classes % width == 0 else n_classes)
    places = [(np.arange(n_classes) - step) % n_classes // width for step in steps]
    rotations = list(dict.fromkeys(Partition(ordered, place) for place in places))
    return with_singletons(rotations, singleton_weight, level=f"width {width}")
