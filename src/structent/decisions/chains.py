"""The chain of a row: growing sets of classes, from its most probable class to all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._typing import FloatArray, IndexArray
from structent.structure import Partition, RandomPartition
from structent.structure.levels import CLASS_LEVEL

ALL_CLASSES = "all classes"

BoolArray: TypeAlias = NDArray[np.bool_]

# Which of some rows go on: their numbers, the sets where they stand, and those sets' probabilities.
GoesOn: TypeAlias = Callable[[IndexArray, IndexArray, FloatArray], BoolArray]


class ChainSet(NamedTuple):
    """A set of classes at which a row may stand.

    Attributes
    ----------
    members
        Its classes, by number.
    name, level
        What it is called, and the level whose block it is; None where it is no block.
    """

    members: IndexArray
    name: str
    level: str | None


class Climbed(NamedTuple):
    """Where each row stands, (n,) each.

    Attributes
    ----------
    set_of
        The number of its set.
    probability
        The probability of that set.
    before
        The probability of the last set before it in the chain; 0 where it is the first.
    """

    set_of: IndexArray
    probability: FloatArray
    before: FloatArray


@dataclass(frozen=True, eq=False)
class Chains:
    """All sets of the chains of a structure.

    Attributes
    ----------
    sets
        The different sets; those of one class come first and are numbered as the classes.
    set_at
        Which of them is the block of a class in each partition, (partitions + 1, classes). The last
        partition has one block, so that every set but all classes has a larger one.
    level_of
        The level of each partition; None for that last one.
    """

    sets: tuple[ChainSet, ...]
    set_at: IndexArray
    level_of: tuple[str | None, ...]

    @classmethod
    def of(cls, structure: RandomPartition) -> Chains:
        """Return the sets of a structure, those of partitions of weight 0 among them."""
        classes, level_of = structure.classes, (*structure.level_of, None)
        level_of_classes = _level_of_classes(structure)
        one_block = Partition(classes, np.zeros(len(classes), dtype=np.int64), names=[ALL_CLASSES])
        partitions = (*structure.partitions, one_block)
        sets = [
            ChainSet(np.array([c]), str(label), level_of_classes) for c, label in enumerate(classes)
        ]
        number_of = {each.members.tobytes(): number for number, each in enumerate(sets)}
        set_at = np.empty((len(partitions), len(classes)), dtype=np.int64)
        for t, (partition, level) in enumerate(zip(partitions, level_of, strict=True)):
            blocks = _grouped(np.arange(len(classes)), partition.block_of)
            for name, (_, members) in zip(partition.names, blocks, strict=True):
                number = number_of.setdefault(members.tobytes(), len(sets))
                if number == len(sets):
                    sets.append(ChainSet(members, name, level))
                set_at[t, members] = number
        return cls(tuple(sets), set_at, level_of)

    def climb(self, proba: FloatArray, goes_on: GoesOn) -> Climbed:
        """Return where rows stand that climb their chains for as long as a rule says.

        Parameters
        ----------
        proba
            The probabilities of the classes, (n, classes), in the order of the structure.
        goes_on
            The rule. At all classes a row stands still, whatever it says.
        """
        rows = np.arange(len(proba))
        sizes = np.array([len(each.members) for each in self.sets])
        next_sets = cache(partial(_next_sets, chains=self))
        set_of = proba.argmax(axis=1)
        probability = proba[rows, set_of]
        before = np.zeros(len(proba))
        while len(rows := rows[sizes[set_of[rows]] < proba.shape[1]]) and len(
            rows := rows[goes_on(rows, set_of[rows], probability[rows])]
        ):
            before[rows] = probability[rows]
            for number, here in _grouped(rows, set_of[rows]):
                larger, added = next_sets(number)
                gains = [proba[np.ix_(here, classes)].sum(axis=1) for classes in added]
                set_of[here] = larger[np.argmax(gains, axis=0)]  # of equal ones the first
                probability[here] += np.max(gains, axis=0)
        return Climbed(set_of, probability, before)

    def hold(self, set_of: IndexArray, codes: IndexArray) -> BoolArray:
        """Return whether each set holds the class beside it, (n,)."""
        holds: BoolArray = (self.set_at[:, codes] == set_of).any(axis=0) | (set_of == codes)
        return holds

    def depth(self, number: int) -> int:
        """Return how many levels a set settles: those with a block that holds all of it."""
        members = self.sets[number].members
        holding = zip(self.level_of, _holding(members, self.set_at), strict=True)
        levels = {level for level, holds in holding if holds and level is not None}
        # The classes are a level even where the structure lacks the singletons.
        has_singletons = (self.set_at == np.arange(self.set_at.shape[1])).all(axis=1).any()
        return len(levels) + (len(members) == 1 and not has_singletons)


def _next_sets(number: int, *, chains: Chains) -> tuple[IndexArray, list[IndexArray]]:
    """Return the sets with the fewest classes of those that hold a set and more.

    With each come the classes that it adds.
    """
    sets, members = chains.sets, chains.sets[number].members
    around = chains.set_at[_holding(members, chains.set_at), members[0]]
    size_of = {each: len(sets[each].members) for each in around.tolist()}
    fewest = min(size for size in size_of.values() if size > len(members))
    larger = [each for each, size in size_of.items() if size == fewest]
    is_new = np.ones(chains.set_at.shape[1], dtype=np.bool_)
    is_new[members] = False
    return np.array(larger), [m[is_new[m]] for m in (sets[each].members for each in larger)]


def _holding(members: IndexArray, set_at: IndexArray) -> BoolArray:
    """Return which partitions have a block that holds all members of a set."""
    holding: BoolArray = (set_at[:, members] == set_at[:, members[:1]]).all(axis=1)
    return holding


def _level_of_classes(structure: RandomPartition) -> str:
    """Return the level whose blocks are the classes, which need not be one of the structure."""
    pairs = zip(structure.partitions, structure.level_of, strict=True)
    return next((level for partition, level in pairs if partition.is_singletons), CLASS_LEVEL)


def _grouped(items: IndexArray, keys: NDArray[Any]) -> Iterator[tuple[int, IndexArray]]:
    """Yield each key in ascending order, with the items that have it."""
    order = np.argsort(keys, kind="stable")
    different, starts = np.unique(keys[order], return_index=True)
    yield from zip(different.tolist(), np.split(items[order], starts[1:]), strict=True)
