"""Structures made of others: their mixture, their product, and a scrambled copy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import WEIGHT_TOLERANCE, checked_fraction, checked_weights
from structent._typing import FloatArray, Label
from structent.errors import StructureError
from structent.structure import files
from structent.structure.labels import as_classes, class_indices, shown
from structent.structure.random_partition import (
    CLASS_LEVEL,
    RandomPartition,
    class_level,
    free_name,
)
from structent.structure.samplers import (
    FixedStructure,
    Structure,
    checked_structure,
    drawn,
    product_with,
    seeds_of,
)
from structent.structure.similarity import (
    N_DRAWS,
    mean_similarity,
    similarity_of,
    with_singletons_at,
)

_LARGEST_DRAW = 10**8  # partitions times classes
_MOST_PAIRS = 10**6  # classes of a product


@overload
def mix(  # type: ignore[overload-overlap]  # the narrower one comes first, and wins
    structures: Sequence[RandomPartition], weights: ArrayLike | None = None
) -> RandomPartition: ...


@overload
def mix(structures: Sequence[Structure], weights: ArrayLike | None = None) -> MixedPartitions: ...


def mix(
    structures: Sequence[Structure], weights: ArrayLike | None = None
) -> RandomPartition | MixedPartitions:
    """Return the mixture of structures, each with the given probability.

    If one of them is a sampler, the result is a sampler, too: it mixes what they draw in each
    iteration.

    Parameters
    ----------
    structures
        Structures of the same classes.
    weights
        The probability of each structure, with sum 1; equal if None.

    Examples
    --------
    >>> from structent import ordinal, trivial
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


def product_of(first: Structure, second: Structure) -> RandomPartition | ProductPartitions:
    """Return the joint random partition of two; it is a sampler if one of them is."""
    if isinstance(first, RandomPartition) and isinstance(second, RandomPartition):
        return _product_of_fixed(first, second, tuple(product(first.classes, second.classes)))
    return ProductPartitions(first, second)


def scrambled(sampler: Structure, rng: np.random.Generator) -> ScrambledPartitions:
    """Return a sampler with its classes shuffled over the blocks."""
    return ScrambledPartitions(sampler, tuple(rng.permutation(len(sampler.classes)).tolist()))


@files.readable
@dataclass(frozen=True, init=False)
class MixedPartitions:
    """The sampler that mixes several structures in each iteration; made by :func:`mix`.

    Parameters
    ----------
    structures
        Random partitions and samplers of the same classes.
    weights
        The probability of each, with sum 1.
    given_singleton_weight
        The weight of the singletons, the others in proportion; None to keep the mixture's.

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
        parts = tuple(
            checked_structure(structure, "each structure of mix") for structure in structures
        )
        shares = checked_weights(weights, len(parts))
        _check_size(sum(map(_n_blocks_of_draw, parts)))
        object.__setattr__(self, "structures", parts)
        object.__setattr__(self, "weights", tuple(shares.tolist()))
        weight = _checked_singleton_weight(given_singleton_weight)
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

    def similarity(self, *, n_draws: int = N_DRAWS) -> FloatArray:
        """Return the expected similarity of the classes, (classes, classes).

        It is the weighted mean of the similarities of the structures, and exact if these are.
        """

        def mean(similarities: list[FloatArray]) -> FloatArray:
            total = np.zeros((len(self.classes),) * 2)
            for weight, part, similarity in zip(
                self.weights, self.structures, similarities, strict=True
            ):
                places = class_indices(self.classes, part.classes)
                total += weight * similarity[np.ix_(places, places)]
            return total

        return _joined_similarity(
            self, self.structures, mean, lambda own: float(np.dot(self.weights, own)), n_draws
        )

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


@files.readable
@dataclass(frozen=True, init=False)
class ProductPartitions:
    """The sampler of pairs of classes: in each iteration, the product of two random partitions.

    Made by ``product`` of a sampler, or of a structure with a sampler. Draws are independent, as
    in Definition 21, only if the two have different seeds, so equal seeds are refused.

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
        parts = [checked_structure(part, "each part of a product") for part in (first, second)]
        shared = frozenset.intersection(*map(seeds_of, parts))
        if shared:
            raise StructureError(
                "the samplers of a product must have different seeds, or their draws depend on "
                f"each other, got seed {min(shared)} in both; give one of them another"
            )
        _check_size(math.prod(map(_n_blocks_of_draw, parts)))
        n_pairs = math.prod(len(part.classes) for part in parts)
        if n_pairs > _MOST_PAIRS:
            raise StructureError(
                f"a product must have at most {_MOST_PAIRS:,} pairs of classes, got {n_pairs:,}"
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)
        weight = _checked_singleton_weight(given_singleton_weight)
        object.__setattr__(self, "given_singleton_weight", weight)

    @cached_property
    def classes(self) -> tuple[Label, ...]:
        """The pairs of classes; the first part changes slowest."""
        return as_classes(product(self.first.classes, self.second.classes))

    @property
    def singleton_weight(self) -> float:
        """The weight of the single pairs, in the first draw."""
        return self.sample(0).singleton_weight

    @property
    def seeds(self) -> frozenset[int]:
        """The seeds of the samplers that it is made of."""
        return seeds_of(self.first) | seeds_of(self.second)

    def sample(self, iteration: int) -> RandomPartition:
        """Return the product of the two random partitions of this iteration."""
        first, second = (drawn(part, iteration, None) for part in (self.first, self.second))
        pairs = _product_of_fixed(first, second, self.classes)
        return drawn(pairs, iteration, self.given_singleton_weight)

    def with_singleton_weight(self, singleton_weight: float) -> ProductPartitions:
        """Return the sampler of the same partitions with this weight on the singletons."""
        return ProductPartitions(self.first, self.second, singleton_weight)

    def similarity(self, *, n_draws: int = N_DRAWS) -> FloatArray:
        """Return the expected similarity of the pairs, (classes, classes).

        It is the product of the similarities of the two parts, because their draws are independent,
        and exact if these are.
        """
        parts = (self.first, self.second)
        return _joined_similarity(
            self, parts, lambda both: np.asarray(np.kron(*both)), math.prod, n_draws
        )

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
    """A sampler with the classes shuffled over the blocks, in the same way in every iteration.

    Made by ``scramble`` of a sampler.

    Parameters
    ----------
    sampler
        The sampler that is scrambled.
    places
        For each class, the index of the class whose blocks it takes, (classes,).
    given_singleton_weight
        The weight of the singletons, the others in proportion; None to keep the sampler's.

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
        n_classes = len(checked_structure(sampler, "what is scrambled").classes)
        if not all(map(_is_integer, places)) or sorted(places) != list(range(n_classes)):
            raise StructureError(
                f"places must be the numbers from 0 to {n_classes - 1} in some order, got "
                f"{shown(list(places))}, {len(places)} of them"
            )
        object.__setattr__(self, "sampler", sampler)
        object.__setattr__(self, "places", tuple(map(int, places)))
        weight = _checked_singleton_weight(given_singleton_weight)
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

    def similarity(self, *, n_draws: int = N_DRAWS) -> FloatArray:
        """Return the expected similarity of the classes, (classes, classes).

        It is the sampler's similarity, rearranged like the classes.
        """
        places = np.ix_(self._places, self._places)
        return _joined_similarity(
            self, (self.sampler,), lambda one: one[0][places], math.prod, n_draws
        )

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


def _joined_similarity(
    sampler: MixedPartitions | ProductPartitions | ScrambledPartitions,
    parts: Sequence[Structure],
    join: Callable[[list[FloatArray]], FloatArray],
    join_weights: Callable[[list[float]], float],
    n_draws: int,
) -> FloatArray:
    """Return the expected similarity of a sampler, computed from the similarities of its parts.

    ``join_weights`` computes the weight of its own singletons from the weights of its parts. If a
    part does not tell its weight, or has only singletons, the mean over draws is taken.
    """
    given, own = sampler.given_singleton_weight, 0.0
    if given is not None:
        weights = [getattr(part, "singleton_weight", None) for part in parts]
        own = 1.0 if None in weights else join_weights([float(w) for w in weights if w is not None])
        if own > 1.0 - WEIGHT_TOLERANCE:
            return mean_similarity(sampler, n_draws)
    similarity = join([similarity_of(part, n_draws) for part in parts])
    return with_singletons_at(similarity, own, given)


def _n_blocks_of_draw(structure: Structure) -> int:
    """Return how many numbers ``block_of`` has in a draw: partitions times classes."""
    if isinstance(structure, RandomPartition):
        return structure.n_partitions * structure.n_classes
    if isinstance(structure, MixedPartitions):
        return sum(map(_n_blocks_of_draw, structure.structures))
    if isinstance(structure, ProductPartitions):
        return _n_blocks_of_draw(structure.first) * _n_blocks_of_draw(structure.second)
    if isinstance(structure, ScrambledPartitions):
        return _n_blocks_of_draw(structure.sampler)
    if isinstance(structure, FixedStructure):
        return _n_blocks_of_draw(structure.structure)
    return 2 * len(structure.classes)  # of a graph, or somebody else's


def _check_size(n_blocks: int) -> None:
    """Refuse a structure that needs a lot of memory, although its parts or its file are small."""
    if n_blocks > _LARGEST_DRAW:
        raise StructureError(
            f"a structure made of others must have at most {_LARGEST_DRAW:,} partitions times "
            f"classes, got {n_blocks:,}"
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
    """Join level names; levels of different structures with the same name stay separate.

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


def _product_of_fixed(
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


def _checked_singleton_weight(singleton_weight: float | None) -> float | None:
    """Return a weight of the singletons, or None to keep the weight of the draws."""
    if singleton_weight is None:
        return None
    return checked_fraction(singleton_weight, "singleton_weight")


def _is_integer(place: Any) -> bool:
    return isinstance(place, int | np.integer) and not isinstance(place, bool)
