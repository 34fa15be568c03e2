"""Samplers made of others: the product of two, and one with its classes scrambled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from structent._checks import checked_fraction
from structent._typing import Label
from structent.errors import StructureError
from structent.structure import files
from structent.structure.labels import as_classes
from structent.structure.levels import CLASS_LEVEL
from structent.structure.partition_sampler import (
    Structure,
    checked_structure,
    drawn,
    seeds_of,
)
from structent.structure.random_partition import RandomPartition

# Methods of every sampler that is made of others.


def scrambled(sampler: Structure, rng: np.random.Generator) -> ScrambledPartitions:
    """Return a sampler with its classes shuffled over the blocks."""
    return ScrambledPartitions(sampler, tuple(rng.permutation(len(sampler.classes)).tolist()))


def product_with(sampler: Structure, other: Structure) -> ProductPartitions:
    """Return the sampler of pairs of its classes and those of another.

    At each iteration it gives the product of the two random partitions. The other is a random
    partition, or a sampler with another seed.
    """
    return ProductPartitions(sampler, other)


@files.readable
@dataclass(frozen=True, init=False)
class ProductPartitions:
    """The sampler of pairs of classes: at each iteration the product of what two structures give.

    Made by ``product`` of a sampler, or of a structure with a sampler. Draws are independent, as
    in Definition 21, if the two have different seeds, so equal ones are refused.

    Parameters
    ----------
    first, second
        Random partitions or samplers, of the first and of the second part of a pair.
    given_singleton_weight
        The weight of the singletons, the others in proportion; None for the product of the two.

    Examples
    --------
    >>> from structent import LabelGraph, SpanningTreePartitions, circular
    >>> coast = LabelGraph([("Marin", "Sonoma"), ("Sonoma", "Napa"), ("Marin", "Napa")])
    >>> counties = SpanningTreePartitions(coast, n_blocks=2, singleton_weight=0.5)
    >>> joint = circular(range(1, 13)).product(counties)
    >>> len(joint.classes), joint.classes[0]
    (36, (1, 'Marin'))
    >>> joint.sample(0) == circular(range(1, 13)).product(counties.sample(0))
    True
    """

    KIND: ClassVar[str] = "product_partitions"  # in files

    first: Structure
    second: Structure
    given_singleton_weight: float | None

    def __init__(
        self,
        first: Structure,
        second: Structure,
        given_singleton_weight: float | None = None,
    ) -> None:
        parts = [checked_structure(part, "product") for part in (first, second)]
        shared = frozenset.intersection(*map(seeds_of, parts))
        if shared:
            raise StructureError(
                "the samplers of a product must have different seeds, or their draws depend on "
                f"each other, got seed {min(shared)} in both; give one of them another"
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)
        weight = checked_singleton_weight(given_singleton_weight)
        object.__setattr__(self, "given_singleton_weight", weight)

    @cached_property
    def classes(self) -> tuple[Label, ...]:
        """The pairs of classes, those of the first part changing slowest."""
        return as_classes(product(self.first.classes, self.second.classes))

    @property
    def singleton_weight(self) -> float:
        """The weight of the pairs by themselves, in the first draw."""
        return self.sample(0).singleton_weight

    @property
    def seeds(self) -> frozenset[int]:
        """The seeds of the samplers that it is made of."""
        return seeds_of(self.first) | seeds_of(self.second)

    def sample(self, iteration: int) -> RandomPartition:
        """Return the product of the two random partitions of this iteration."""
        first, second = (drawn(part, iteration, None) for part in (self.first, self.second))
        pairs = product_of_fixed(first, second, self.classes)
        return drawn(pairs, iteration, self.given_singleton_weight)

    def with_singleton_weight(self, singleton_weight: float) -> ProductPartitions:
        """Return the sampler of the same partitions with this weight on the singletons."""
        return ProductPartitions(self.first, self.second, singleton_weight)

    scramble = scrambled
    product = product_with

    def to_json(self) -> str:
        """Return the sampler as JSON text with a format version."""
        content = {
            "first": files.as_part(self.first),
            "second": files.as_part(self.second),
            "singleton_weight": self.given_singleton_weight,
        }
        return files.to_json(self.KIND, content)

    @classmethod
    def from_json(cls, text: str) -> ProductPartitions:
        """Return the sampler that :meth:`to_json` wrote."""
        content = files.from_json(text, cls.KIND)
        first, second = (files.from_part(files.field(content, p)) for p in ("first", "second"))
        return cls(first, second, files.field(content, "singleton_weight"))

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ProductPartitions:
        """Return the sampler of a JSON file."""
        return cls.from_json(files.load(path))


@files.readable
@dataclass(frozen=True, init=False)
class ScrambledPartitions:
    """The sampler that draws as another does, with the classes shuffled over the blocks.

    Made by ``scramble`` of a sampler: the same shuffle at every iteration.

    Parameters
    ----------
    sampler
        The sampler that is scrambled.
    places
        For each class the place of the class whose blocks it takes, (classes,).
    given_singleton_weight
        The weight of the singletons, the others in proportion; None for that of the sampler.

    Examples
    --------
    >>> from structent import FixedStructure, ordinal
    >>> sizes = FixedStructure(ordinal(["S", "M", "L"]))
    >>> ScrambledPartitions(sizes, (2, 0, 1)).sample(0).partitions[0].blocks
    (('S', 'L'), ('M',))
    """

    KIND: ClassVar[str] = "scrambled_partitions"  # in files

    sampler: Structure
    places: tuple[int, ...]
    given_singleton_weight: float | None

    def __init__(
        self,
        sampler: Structure,
        places: tuple[int, ...],
        given_singleton_weight: float | None = None,
    ) -> None:
        n_classes = len(checked_structure(sampler, "scramble").classes)
        if not all(map(_is_integer, places)) or sorted(places) != list(range(n_classes)):
            raise StructureError(
                f"places must be the numbers from 0 to {n_classes - 1} in some order, got "
                f"{list(places)[:5]}, {len(places)} of them"
            )
        object.__setattr__(self, "sampler", sampler)
        object.__setattr__(self, "places", tuple(map(int, places)))
        weight = checked_singleton_weight(given_singleton_weight)
        object.__setattr__(self, "given_singleton_weight", weight)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of the sampler."""
        return self.sampler.classes

    @property
    def singleton_weight(self) -> float:
        """The weight of the singletons, in the first draw."""
        return self.sample(0).singleton_weight

    @property
    def seeds(self) -> frozenset[int]:
        """The seeds of the samplers that it is made of."""
        return seeds_of(self.sampler)

    def sample(self, iteration: int) -> RandomPartition:
        """Return the scrambled random partition of this iteration."""
        shuffled = drawn(self.sampler, iteration, None)._shuffled(self._places)
        return drawn(shuffled, iteration, self.given_singleton_weight)

    def with_singleton_weight(self, singleton_weight: float) -> ScrambledPartitions:
        """Return the sampler of the same partitions with this weight on the singletons."""
        return ScrambledPartitions(self.sampler, self.places, singleton_weight)

    def scramble(self, rng: np.random.Generator) -> ScrambledPartitions:
        """Return the sampler with its classes shuffled once more."""
        places = tuple(rng.permutation(self._places).tolist())
        return ScrambledPartitions(self.sampler, places, self.given_singleton_weight)

    product = product_with

    def to_json(self) -> str:
        """Return the sampler as JSON text with a format version."""
        content = {
            "sampler": files.as_part(self.sampler),
            "places": self.places,
            "singleton_weight": self.given_singleton_weight,
        }
        return files.to_json(self.KIND, content)

    @classmethod
    def from_json(cls, text: str) -> ScrambledPartitions:
        """Return the sampler that :meth:`to_json` wrote."""
        content = files.from_json(text, cls.KIND)
        sampler = files.from_part(files.field(content, "sampler"))
        places = tuple(files.list_field(content, "places"))
        return cls(sampler, places, files.field(content, "singleton_weight"))

    save = files.save_structure

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ScrambledPartitions:
        """Return the sampler of a JSON file."""
        return cls.from_json(files.load(path))

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.array(self.places, dtype=np.int64)


def _is_integer(place: Any) -> bool:
    return isinstance(place, int | np.integer) and not isinstance(place, bool)


def product_of(first: Structure, second: Structure) -> RandomPartition | ProductPartitions:
    """Return the joint random partition of two, a sampler where one of them is one."""
    if isinstance(first, RandomPartition) and isinstance(second, RandomPartition):
        return product_of_fixed(first, second, tuple(product(first.classes, second.classes)))
    return ProductPartitions(first, second)


def product_of_fixed(
    first: RandomPartition, second: RandomPartition, pairs: tuple[Label, ...]
) -> RandomPartition:
    """Return the joint random partition of two, given the pairs of their classes."""
    partitions = [r._product(s, pairs) for r in first.partitions for s in second.partitions]
    levels = [
        CLASS_LEVEL if partition.is_singletons else f"{of_first} x {of_second}"
        for partition, (of_first, of_second) in zip(
            partitions, product(first.level_of, second.level_of), strict=True
        )
    ]
    weights = np.outer(first.weights, second.weights).ravel()
    return RandomPartition(partitions, weights, levels=levels)


def checked_singleton_weight(singleton_weight: float | None) -> float | None:
    """Return a weight of the singletons, or None for that of the draws themselves."""
    if singleton_weight is None:
        return None
    return checked_fraction(singleton_weight, "singleton_weight")
