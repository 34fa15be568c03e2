"""The simplest random partition, and those that mix others with it."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_fraction, checked_weights
from structent.errors import StructureError
from structent.structure.levels import CLASS_LEVEL
from structent.structure.partition import Partition
from structent.structure.random_partition import RandomPartition


def trivial(classes: Iterable[Any]) -> RandomPartition:
    """Return the trivial random partition: the singletons, with probability one (Definition 11).

    Every quantity on it is the ordinary one: its entropy is Shannon's, its loss cross-entropy.

    Examples
    --------
    >>> trivial(["maple", "oak", "trout"]).singleton_weight
    1.0
    """
    return RandomPartition([Partition.singletons(classes)])


def mix(structures: Sequence[RandomPartition], weights: ArrayLike | None = None) -> RandomPartition:
    """Return the random partition that is each of the structures with the given probability.

    Parameters
    ----------
    structures
        Structures of the same classes.
    weights
        The probability of each structure, with sum 1; equal if None.

    Examples
    --------
    >>> from structent import ordinal
    >>> sizes = mix([ordinal(["S", "M", "L"]), trivial(["S", "M", "L"])], weights=[0.4, 0.6])
    >>> sizes.weights.tolist()
    [0.1, 0.1, 0.2, 0.6]
    """
    for structure in structures:
        if not isinstance(structure, RandomPartition):
            raise StructureError(f"mix takes RandomPartition, got {structure!r}")
    if not structures:
        raise StructureError("mix needs one or more structures, got none")
    if weights is None:
        weights = np.full(len(structures), 1.0 / len(structures))
    shares = checked_weights(weights, len(structures))
    partitions = [partition for structure in structures for partition in structure.partitions]
    mixed = np.concatenate(
        [share * structure.weights for share, structure in zip(shares, structures, strict=True)]
    )
    levels: tuple[str, ...] = ()
    for structure in structures:
        levels = _joined_levels(levels, structure.level_of)
    return RandomPartition(partitions, mixed, levels=levels)


def with_singletons(
    partitions: Sequence[Partition], singleton_weight: float, *, level: str
) -> RandomPartition:
    """Return equally probable partitions, one level together, and the singletons after them."""
    singleton_weight = checked_fraction(singleton_weight, "singleton_weight")
    share = (1.0 - singleton_weight) / len(partitions)
    return RandomPartition(
        [*partitions, Partition.singletons(partitions[0].classes)],
        [share] * len(partitions) + [singleton_weight],
        levels=[level] * len(partitions) + [CLASS_LEVEL],
    )


def _joined_levels(levels: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    """Join level names, keeping apart the levels of different structures that are called alike.

    The singletons are the same partition in every structure, so their level is shared.
    """
    new_name: dict[str, str] = {}
    for name in dict.fromkeys(further):
        new_name[name], number = name, 2
        while name != CLASS_LEVEL and new_name[name] in levels:
            new_name[name] = f"{name} ({number})"
            number += 1
    return levels + tuple(new_name[name] for name in further)
