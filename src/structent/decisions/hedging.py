"""Sets of classes that are probable enough, and the chains of growing sets that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import checked_fraction
from structent._notebook import paragraph, table
from structent._typing import FloatArray, IndexArray, Label
from structent.metrics.measure import checked_proba, columns_of
from structent.structure import Partition, RandomPartition
from structent.structure.random_partition import CLASS_LEVEL
from structent.structure.samplers import checked_fixed

ALL_CLASSES = "all classes"

BoolArray: TypeAlias = NDArray[np.bool_]

_SHOWN = 10  # rows in a notebook
# Which rows go on to a larger set, given their numbers, their sets and the sets' probabilities.
GoesOn: TypeAlias = Callable[[IndexArray, IndexArray, FloatArray], BoolArray]


@dataclass(frozen=True, eq=False)
class HedgedPredictions:
    """A set of classes for each row; all columns have one entry per row.

    Attributes
    ----------
    sets
        The classes of each row's set, in the structure's order.
    probability
        The probability of the set, (n,).
    names
        What the set is called: a class, a block's name, or ``"all classes"``.
    levels
        The level whose block it is; None if the set is all classes and no block.
    depths
        How many levels of the structure the set settles, (n,): the levels that have a block which
        holds all of it. In a hierarchy that is its depth in the tree, 0 for all classes.
    classes
        All classes of the structure.
    """

    sets: tuple[tuple[Label, ...], ...]
    probability: FloatArray
    names: tuple[str, ...]
    levels: tuple[str | None, ...]
    depths: IndexArray
    classes: tuple[Label, ...]

    def __repr__(self) -> str:
        return (
            f"<HedgedPredictions of {len(self.sets):,} rows, {self.average_size:.2f} classes each>"
        )

    def _repr_html_(self) -> str:
        first = zip(self.names[:_SHOWN], self.probability[:_SHOWN], self.sizes, strict=False)
        rows = [[name, f"{p:.3f}", size] for name, p, size in first]
        of_all = f"{len(rows)} of {len(self.sets):,} rows; {self.average_size:.2f} classes each."
        return table(["answer", "probability", "classes"], rows) + paragraph(of_all)

    @property
    def sizes(self) -> IndexArray:
        """How many classes each set has, (n,)."""
        return np.array([len(each) for each in self.sets], dtype=np.int64)

    @property
    def average_size(self) -> float:
        """The mean number of classes in a set; NaN without rows."""
        return float(self.sizes.mean()) if self.sets else float("nan")

    @property
    def average_depth(self) -> float:
        """The mean number of levels that a set settles; NaN without rows."""
        return float(self.depths.mean()) if self.sets else float("nan")


def hedge(
    proba: ArrayLike, structure: RandomPartition, confidence: float, *, classes: Any = None
) -> HedgedPredictions:
    """The most precise set of classes for each row that is probable enough.

    The probabilities of a row determine a chain of growing sets. It starts with the most probable
    class. The next set is always the smallest block that holds the last set and more classes; if
    several are the smallest, it is the most probable of them. The chain ends with all classes. In a
    hierarchy it is the path from the class to the root. The result is the first set of the chain
    with at least the asked probability, so it grows with the confidence.

    Parameters
    ----------
    proba
        The probabilities of the classes, (n, classes), each row summing to 1.
    structure
        The structure. The blocks of all its partitions count, also those of weight 0: weights do
        not matter for which sets may be named.
    confidence
        The probability that a set must have, between 0 and 1. With 0 the most probable class is
        enough. All classes are always enough.
    classes
        The class of each column of ``proba``, as in
        :func:`~structent.metrics.structured_log_loss`: ``model.classes_`` for ``predict_proba``,
        ``structure.classes`` for a network trained with a loss of this package.

    Returns
    -------
    The set of each row with its probability, name and level. Of equally probable classes or blocks
    the first is taken, in the order of the partitions.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"maple": ("tree",), "oak": ("tree",), "rose": ("flower",)})
    >>> proba = [[0.875, 0.125, 0.0], [0.5, 0.375, 0.125], [0.25, 0.25, 0.5]]
    >>> hedged = hedge(proba, plants, 0.8)
    >>> hedged.names
    ('maple', 'tree', 'all classes')
    >>> hedged.sets[1], float(hedged.probability[1])
    (('maple', 'oak'), 0.875)
    """
    confidence = checked_fraction(confidence, "confidence")
    chains, table = chains_and_proba(proba, structure, classes)
    climbed = chains.climb(table, lambda _rows, _sets, probability: probability < confidence)
    return predictions(climbed, chains, structure.classes)


def chains_and_proba(
    proba: ArrayLike, structure: RandomPartition, classes: Any
) -> tuple[Chains, FloatArray]:
    """Return the chains of a structure, and probabilities whose columns are in its order."""
    structure = checked_fixed(structure)
    columns = columns_of(structure.classes, proba, classes)
    return Chains.of(structure), checked_proba(proba, structure.n_classes, columns)


def predictions(climbed: Climbed, chains: Chains, classes: tuple[Label, ...]) -> HedgedPredictions:
    """Return the set of each row, with its name and level."""
    set_of = climbed.set_of.tolist()
    different = {i: chains.sets[i] for i in set(set_of)}
    labels = {i: tuple(classes[c] for c in each.members.tolist()) for i, each in different.items()}
    depths = {i: chains.depth(i) for i in different}
    return HedgedPredictions(
        tuple(labels[i] for i in set_of),
        climbed.probability,
        tuple(different[i].name for i in set_of),
        tuple(different[i].level for i in set_of),
        np.array([depths[i] for i in set_of], dtype=np.int64),
        classes,
    )


class ChainSet(NamedTuple):
    """A set of classes in a chain.

    Attributes
    ----------
    members
        Its classes, by number.
    name, level
        What it is called, and the level whose block it is; None if it is no block.
    """

    members: IndexArray
    name: str
    level: str | None


class Climbed(NamedTuple):
    """The set that each row ended at, (n,) each.

    Attributes
    ----------
    set_of
        The number of its set.
    probability
        The probability of that set.
    before
        The probability of the last set before it in the chain; 0 if it is the first.
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
        The different sets. The sets of one class come first, numbered like the classes.
    set_at
        The number of the set that is the block of a class in a partition, (partitions + 1,
        classes). The last partition is one block of all classes, so every other set has a larger
        one.
    level_of
        The level of each partition; None for that last one.
    """

    sets: tuple[ChainSet, ...]
    set_at: IndexArray
    level_of: tuple[str | None, ...]

    @classmethod
    def of(cls, structure: RandomPartition) -> Chains:
        """Return the sets of a structure, also those of partitions of weight 0."""
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
        """Return the set at which each row ends if it climbs its chain while a rule says so.

        Parameters
        ----------
        proba
            The probabilities of the classes, (n, classes), in the order of the structure.
        goes_on
            The rule. A row always ends at all classes.
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
        """Return whether each set holds the class at the same position, (n,)."""
        holds: BoolArray = (self.set_at[:, codes] == set_of).any(axis=0) | (set_of == codes)
        return holds

    def depth(self, number: int) -> int:
        """Return how many levels a set settles: those with a block that holds all of it."""
        members = self.sets[number].members
        holding = zip(self.level_of, _holding(members, self.set_at), strict=True)
        levels = {level for level, holds in holding if holds and level is not None}
        # The classes are a level even if the structure lacks the singletons.
        has_singletons = (self.set_at == np.arange(self.set_at.shape[1])).all(axis=1).any()
        return len(levels) + (len(members) == 1 and not has_singletons)


def _next_sets(number: int, *, chains: Chains) -> tuple[IndexArray, list[IndexArray]]:
    """Return the smallest sets that hold a set and more, each with the classes that it adds."""
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
