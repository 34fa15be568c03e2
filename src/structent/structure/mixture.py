"""The simplest random partition, and those that mix others with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

from structent._checks import checked_fraction, checked_weights
from structent._typing import FloatArray, Label
from structent.errors import StructureError
from structent.structure import files
from structent.structure.composed import (
    checked_singleton_weight,
    product_with,
    scrambled,
)
from structent.structure.levels import CLASS_LEVEL, class_level, free_name
from structent.structure.partition import Partition
from structent.structure.partition_sampler import (
    Structure,
    checked_structure,
    drawn,
    seeds_of,
)
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


@overload
def mix(  # type: ignore[overload-overlap]  # the narrower one comes first, and wins
    structures: Sequence[RandomPartition], weights: ArrayLike | None = None
) -> RandomPartition: ...


@overload
def mix(structures: Sequence[Structure], weights: ArrayLike | None = None) -> MixedPartitions: ...


def mix(
    structures: Sequence[Structure], weights: ArrayLike | None = None
) -> RandomPartition | MixedPartitions:
    """Return the random partition that is each of the structures with the given probability.

    Where one of them is a sampler, the result is one, too: what they draw is mixed at each
    iteration.

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
    if isinstance(structures, RandomPartition) or not isinstance(structures, Sequence):
        raise StructureError(
            f"mix takes a list of structures, got {type(structures).__name__}; put it into a list"
        )
    if not structures:
        raise StructureError("mix needs one or more structures, got none")
    if weights is None:
        weights = np.full(len(structures), 1.0 / len(structures))
    shares = checked_weights(weights, len(structures))
    if _are_fixed(structures):
        return _mix_of_fixed(structures, shares)
    return MixedPartitions(tuple(structures), tuple(shares.tolist()))


@files.readable
@dataclass(frozen=True, init=False)
class MixedPartitions:
    """The sampler that mixes what several structures give at each iteration; made by :func:`mix`.

    Parameters
    ----------
    structures
        Random partitions and samplers of the same classes.
    weights
        The probability of each, with sum 1.
    given_singleton_weight
        The weight of the singletons, the others in proportion; None for that of the mixture.

    Examples
    --------
    >>> from structent import LabelGraph, SpanningTreePartitions, ordinal
    >>> path = LabelGraph([("S", "M"), ("M", "L")])
    >>> sizes = mix([ordinal(["S", "M", "L"]), SpanningTreePartitions(path, 2, 0.0)], [0.8, 0.2])
    >>> sizes.sample(0).weights.round(3).tolist()
    [0.2, 0.2, 0.4, 0.2, 0.0]
    """

    KIND: ClassVar[str] = "mixed_partitions"  # in files

    structures: tuple[Structure, ...]
    weights: tuple[float, ...]
    given_singleton_weight: float | None

    def __init__(
        self,
        structures: tuple[Structure, ...],
        weights: tuple[float, ...],
        given_singleton_weight: float | None = None,
    ) -> None:
        parts = tuple(checked_structure(structure, "mix") for structure in structures)
        shares = checked_weights(weights, len(parts))
        object.__setattr__(self, "structures", parts)
        object.__setattr__(self, "weights", tuple(shares.tolist()))
        weight = checked_singleton_weight(given_singleton_weight)
        object.__setattr__(self, "given_singleton_weight", weight)
        self.sample(0)  # refuses other classes now, not in the middle of training

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in the order of the first structure."""
        return self.structures[0].classes

    @property
    def singleton_weight(self) -> float:
        """The weight of the singletons, in the first draw."""
        return self.sample(0).singleton_weight

    @property
    def seeds(self) -> frozenset[int]:
        """The seeds of the samplers that it is made of."""
        return frozenset().union(*map(seeds_of, self.structures))

    def sample(self, iteration: int) -> RandomPartition:
        """Return the mixture of the random partitions of this iteration."""
        parts = [drawn(structure, iteration, None) for structure in self.structures]
        mixed = _mix_of_fixed(parts, np.array(self.weights))
        return drawn(mixed, iteration, self.given_singleton_weight)

    def with_singleton_weight(self, singleton_weight: float) -> MixedPartitions:
        """Return the sampler of the same partitions with this weight on the singletons."""
        return MixedPartitions(self.structures, self.weights, singleton_weight)

    scramble = scrambled
    product = product_with

    def to_json(self) -> str:
        """Return the sampler as JSON text with a format version."""
        content = {
            "structures": [files.as_part(structure) for structure in self.structures],
            "weights": self.weights,
            "singleton_weight": self.given_singleton_weight,
        }
        return files.to_json(self.KIND, content)

    @classmethod
    def from_json(cls, text: str) -> MixedPartitions:
        """Return the sampler that :meth:`to_json` wrote."""
        content = files.from_json(text, cls.KIND)
        parts = tuple(map(files.from_part, files.list_field(content, "structures")))
        weights = tuple(files.list_field(content, "weights"))
        return cls(parts, weights, files.field(content, "singleton_weight"))

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MixedPartitions:
        """Return the sampler of a JSON file."""
        return cls.from_json(files.load(path))


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


def _are_fixed(structures: Sequence[Structure]) -> TypeGuard[Sequence[RandomPartition]]:
    return all(isinstance(structure, RandomPartition) for structure in structures)


def _mix_of_fixed(structures: Sequence[RandomPartition], shares: FloatArray) -> RandomPartition:
    partitions = [partition for structure in structures for partition in structure.partitions]
    mixed = np.concatenate(
        [share * structure.weights for share, structure in zip(shares, structures, strict=True)]
    )
    return RandomPartition(partitions, mixed, levels=_joined_levels(structures))


def _joined_levels(structures: Sequence[RandomPartition]) -> list[str]:
    """Join level names, keeping apart the levels of different structures that are called alike.

    The singletons are the same partition in every structure, so their level is shared.
    """
    taken: set[str] = set()
    names: list[dict[str, str]] = []  # of each structure: its levels' new names by their old ones
    for structure in structures:
        new = {
            name: free_name(name, taken)
            for name in structure.levels
            if not _is_of_classes(structure, name)
        }
        taken.update(new.values())
        names.append(new)
    of_classes = class_level(taken)
    return [
        new.get(name, of_classes)
        for structure, new in zip(structures, names, strict=True)
        for name in structure.level_of
    ]


def _is_of_classes(structure: RandomPartition, level: str) -> bool:
    return all(partition.is_singletons for partition in structure.levels[level])
