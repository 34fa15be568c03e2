"""A partition: the classes, each in exactly one block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structent._checks import as_array
from structent._compiled import inlined, kernel
from structent._typing import FloatArray, IndexArray, IntArray, Label
from structent.errors import StructureError
from structent.structure.labels import (
    as_classes,
    as_label,
    class_indices,
    label_array,
    shown,
    unknown_label,
)


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """A set of non-empty blocks such that each class is in exactly one of them (Definition 1).

    Build one with :meth:`from_blocks`, :meth:`from_mapping` or :meth:`singletons`.

    Parameters
    ----------
    classes
        The classes, in the order in which every array of the structure holds them.
    block_of
        The block of each class, as any integers; blocks are renumbered in the order of their
        first class, so that equal partitions have equal ``block_of``.
    names
        A name for each block, in the same order; None to name a block by its classes.

    Examples
    --------
    >>> sick_or_well = Partition.from_blocks([["died", "readmitted"], ["well"]])
    >>> sick_or_well.block_of.tolist()
    [0, 0, 1]
    >>> sick_or_well.names
    ('died+readmitted', 'well')
    """

    classes: tuple[Label, ...]
    block_of: IntArray
    given_names: tuple[str, ...] | None

    def __init__(
        self,
        classes: Iterable[Any],
        block_of: ArrayLike,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        checked = as_classes(classes)
        numbered = _numbered_by_first_class(_checked_ids(block_of, len(checked)))
        given = None if names is None else _checked_names(names, int(numbered.max()) + 1)
        self._set(checked, numbered, given)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Iterable[Any]],
        *,
        classes: Iterable[Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Return the partition with these blocks.

        The classes are in the order of ``classes`` if given, otherwise in the order of the blocks.
        ``names`` are the names of the blocks, in the order of ``blocks``.
        """
        listed = [_checked_block(block) for block in blocks]
        members = [label for block in listed for label in block]
        block_of = {label: number for number, block in enumerate(listed) for label in block}
        if len(block_of) < len(members):
            twice = next(label for label in members if members.count(label) > 1)
            raise StructureError(
                f"blocks must not overlap, got {twice!r} in more than one; "
                "to weigh several groupings, make a RandomPartition of several partitions"
            )
        ordered = as_classes(members if classes is None else classes)
        for label in ordered:
            if label not in block_of:
                raise StructureError(
                    f"every class must be in a block, got {label!r} in none; "
                    "add a block for it, or leave it out of classes"
                )
        if len(ordered) < len(members):
            foreign = next(label for label in members if label not in set(ordered))
            raise unknown_label(foreign, ordered)
        numbers = [block_of[label] for label in ordered]
        if names is not None:
            names = _checked_names(names, len(listed))
            names = [names[number] for number in dict.fromkeys(numbers)]
        return cls(ordered, numbers, names=names)

    @classmethod
    def from_mapping(cls, block_names: Mapping[Any, Any]) -> Self:
        """Return the partition that maps each class to the name of its block.

        Examples
        --------
        >>> Partition.from_mapping({"maple": "tree", "oak": "tree", "trout": "fish"}).blocks
        (('maple', 'oak'), ('trout',))
        """
        groups = [as_label(group) for group in block_names.values()]
        number_of = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        names = [group if isinstance(group, str) else repr(group) for group in number_of]
        return cls(block_names, [number_of[group] for group in groups], names=names)

    @classmethod
    def singletons(cls, classes: Iterable[Any]) -> Self:
        """Return the partition in which every class is a block of its own (Definition 2)."""
        checked = as_classes(classes)
        return cls._trusted(checked, np.arange(len(checked), dtype=np.int32))

    @classmethod
    def _trusted(
        cls, classes: tuple[Label, ...], block_of: IntArray, names: tuple[str, ...] | None = None
    ) -> Self:
        """Return a partition of checked classes and of blocks numbered by their first class."""
        partition = cls.__new__(cls)
        partition._set(classes, block_of, names)
        return partition

    def _set(
        self, classes: tuple[Label, ...], block_of: IntArray, names: tuple[str, ...] | None
    ) -> None:
        block_of.setflags(write=False)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "block_of", block_of)
        object.__setattr__(self, "given_names", names)

    @cached_property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block_of.max()) + 1

    @cached_property
    def blocks(self) -> tuple[tuple[Label, ...], ...]:
        """The blocks, each a tuple of its classes."""
        blocks: list[list[Label]] = [[] for _ in range(self.n_blocks)]
        for label, number in zip(self.classes, self.block_of.tolist(), strict=True):
            blocks[number].append(label)
        return tuple(map(tuple, blocks))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the blocks: given, or made of the classes (``jan..mar``, ``oak+trout``)."""
        if self.given_names is not None:
            return self.given_names
        return _names_from_classes(self.classes, self.block_of)

    @property
    def is_singletons(self) -> bool:
        """Whether every class is a block of its own."""
        return self.n_blocks == len(self.classes)

    def coarsen(self, labels: ArrayLike | Sequence[Any]) -> NDArray[np.str_]:
        """Return the name of the block of each label: S(Y), Definition 3.

        Examples
        --------
        >>> quarters = Partition.from_mapping({"jan": "winter", "feb": "winter", "mar": "spring"})
        >>> quarters.coarsen(["mar", "jan"]).tolist()
        ['spring', 'winter']
        """
        return label_array(self.names)[self.block_of[class_indices(labels, self.classes)]]

    def refines(self, other: Partition) -> bool:
        """Whether each block lies within one block of ``other``."""
        other = other.reordered(self.classes)
        pairs = set(zip(self.block_of.tolist(), other.block_of.tolist(), strict=True))
        return len(pairs) == self.n_blocks

    def meet(self, other: Partition) -> Partition:
        """Return the coarsest partition that refines both."""
        other = other.reordered(self.classes)
        both = self.block_of.astype(np.int64) * other.n_blocks + other.block_of
        return Partition._trusted(self.classes, _numbered_by_first_class(both))

    def product(self, other: Partition) -> Partition:
        """Return the joint partition (R, S) of the pairs of classes (Definition 19).

        Examples
        --------
        >>> pairs = Partition.singletons(["a", "b"]).product(Partition.from_blocks([[1, 2]]))
        >>> pairs.blocks
        ((('a', 1), ('a', 2)), (('b', 1), ('b', 2)))
        """
        return self._product(other, tuple(product(self.classes, other.classes)))

    def _product(self, other: Partition, pairs: tuple[Label, ...]) -> Partition:
        """Return the product, given the pairs of classes, which many products may share."""
        # Numbered by the first class already: pairs and blocks are both in the order of their
        # first part, then of their second.
        both = self.block_of[:, None] * np.int32(other.n_blocks) + other.block_of
        names = None
        if self.given_names is not None or other.given_names is not None:
            names = tuple(
                f"({first}, {second})" for first, second in product(self.names, other.names)
            )
        return Partition._trusted(pairs, both.ravel(), names)

    def restrict(self, classes: Iterable[Any]) -> Partition:
        """Return the partition of some of the classes, in the order given."""
        kept = as_classes(classes)
        numbers = self.block_of[class_indices(list(kept), self.classes)]
        return Partition._renumbered(kept, numbers, self.given_names)

    def reordered(self, classes: tuple[Label, ...]) -> Partition:
        """Return the same partition with its classes in another order."""
        if classes == self.classes:
            return self
        if len(classes) != len(self.classes) or set(classes) != set(self.classes):
            raise StructureError(_different_classes(classes, self.classes))
        return self.restrict(classes)

    @classmethod
    def _renumbered(
        cls, classes: tuple[Label, ...], numbers: NDArray[Any], names: tuple[str, ...] | None
    ) -> Self:
        """Return the partition with renumbered blocks, which keep their names."""
        if names is not None:
            names = tuple(names[number] for number in dict.fromkeys(numbers.tolist()))
        return cls._trusted(classes, _numbered_by_first_class(numbers), names)

    def __len__(self) -> int:
        return self.n_blocks

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        return self.classes == other.classes and bool((self.block_of == other.block_of).all())

    def __hash__(self) -> int:
        return hash((self.classes, self.block_of.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.classes, self.block_of, self.given_names))

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        shown = names if len(names) <= 60 else names[:57] + "..."
        return f"<Partition of {len(self.classes)} classes into {self.n_blocks} blocks: {shown}>"


class Pooled(NamedTuple):
    """Partitions as rows of ``block_of``, equal ones pooled, from coarse to fine.

    Attributes
    ----------
    singleton_weight
        The weight of the partitions into singletons.
    rows
        The rows of the other partitions that have weight, (partitions,).
    n_blocks, weights
        How many blocks each of these has, and its weight, (partitions,).
    """

    singleton_weight: float
    rows: IndexArray
    n_blocks: IndexArray
    weights: FloatArray


def pooled(block_of: IntArray, weights: FloatArray) -> Pooled:
    """Return the different partitions among rows whose blocks are numbered 0, 1, ...

    Examples
    --------
    >>> block_of = np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0], [0, 0, 1]], dtype=np.int32)
    >>> found = pooled(block_of, np.array([0.5, 0.125, 0.25, 0.125]))
    >>> found.singleton_weight, found.rows.tolist(), found.weights.tolist()
    (0.5, [2, 1], [0.25, 0.25])
    """
    return Pooled(*_pooled(block_of, weights))


@kernel
def _pooled(
    block_of: IntArray, weights: FloatArray
) -> tuple[float, IndexArray, IndexArray, FloatArray]:
    n_partitions, n_classes = block_of.shape
    n_blocks = np.empty(n_partitions, dtype=np.int64)
    start = np.zeros(n_classes + 2, dtype=np.int64)
    for t in range(n_partitions):
        n_blocks[t] = block_of[t].max() + 1
        start[n_blocks[t] + 1] += 1
    for b in range(n_classes + 1):
        start[b + 1] += start[b]
    by_size = np.empty(n_partitions, dtype=np.int64)
    for t in range(n_partitions):
        by_size[start[n_blocks[t]]] = t
        start[n_blocks[t]] += 1
    # A hash table: the place, among the partitions found, of each partition met so far.
    table = np.full(2 * n_partitions + 1, -1)
    rows, pooled_weights = np.empty(n_partitions, dtype=np.int64), np.empty(n_partitions)
    singleton_weight, n_found = 0.0, 0
    for row in by_size:
        if n_blocks[row] == n_classes:
            singleton_weight += weights[row]
        elif weights[row] > 0:
            at = _hash(block_of[row]) % len(table)
            while table[at] >= 0 and (block_of[rows[table[at]]] != block_of[row]).any():
                at = (at + 1) % len(table)
            if table[at] < 0:
                table[at], rows[n_found], pooled_weights[n_found] = n_found, row, 0.0
                n_found += 1
            pooled_weights[table[at]] += weights[row]
    rows = rows[:n_found]
    return singleton_weight, rows, n_blocks[rows], pooled_weights[:n_found]


@inlined
def _hash(row: IntArray) -> int:
    """Return a number that depends on every entry: it is never negative."""
    value = 0
    for entry in row:
        value = value * 1_000_003 + entry + 1  # what is above 2^64 is lost
    return value & (2**63 - 1)


def parents_of(block_of: Sequence[IntArray] | IntArray) -> tuple[IntArray, ...] | None:
    """Return the tree of nested partitions, which are given from fine to coarse.

    The first array maps the classes to the blocks of the finest partition, the second one maps
    these to the blocks of the next coarser one, and so on. None if they are not nested.

    Examples
    --------
    >>> fine, coarse = np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1])
    >>> [parent.tolist() for parent in parents_of([fine, coarse])]
    [[0, 0, 1, 2], [0, 0, 1]]
    >>> parents_of([coarse, fine]) is None
    True
    """
    parents = list(block_of[:1])
    for finer, coarser in pairwise(block_of):
        parent = np.zeros(int(finer.max()) + 1, dtype=np.int32)
        parent[finer] = coarser
        if not np.array_equal(parent[finer], coarser):
            return None
        parents.append(parent)
    return tuple(parents)


def _unpickled(
    classes: tuple[Label, ...], block_of: IntArray, names: tuple[str, ...] | None
) -> Partition:
    return Partition(classes, block_of, names=names)


def _numbered_by_first_class(ids: NDArray[Any]) -> IntArray:
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]


def _checked_ids(block_of: ArrayLike, n_classes: int) -> NDArray[Any]:
    ids = as_array(block_of, "block_of")
    if ids.shape != (n_classes,) or ids.dtype.kind not in "iu":
        raise StructureError(
            f"block_of must be one integer for each of the {n_classes} classes, "
            f"got {ids.dtype} of shape {ids.shape}"
        )
    return ids


def _checked_block(block: Iterable[Any]) -> tuple[Label, ...]:
    if isinstance(block, str):
        raise StructureError(
            f"a block must be a sequence of classes, got the string {block!r}; write [{block!r}]"
        )
    listed = tuple(map(as_label, block))
    if not listed:
        raise StructureError("a block must hold at least one class, got an empty block")
    return as_classes(listed)


def _checked_names(names: Sequence[str], n_blocks: int) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise StructureError(f"block names must be a sequence of strings, got {shown(names)}")
    checked = tuple(names)
    if not all(isinstance(name, str) for name in checked):
        raise StructureError(f"block names must be strings, got {shown(names)}")
    if len(checked) != n_blocks:
        raise StructureError(
            f"there must be {n_blocks} block names, one per block, got {shown(checked)}"
        )
    if len(set(checked)) < len(checked):
        twice = next(name for name, times in Counter(checked).items() if times > 1)
        raise StructureError(
            f"block names must differ within a partition, got {shown(twice)} twice"
        )
    return tuple(map(str, checked))


def _different_classes(expected: tuple[Label, ...], given: tuple[Label, ...]) -> str:
    missing = [label for label in expected if label not in set(given)]
    foreign = [label for label in given if label not in set(expected)]
    parts = [
        f"{what} {', '.join(map(shown, labels[:3]))}{', ...' if len(labels) > 3 else ''}"
        for what, labels in (("without", missing), ("with", foreign))
        if labels
    ]
    return f"partitions must cover the same classes, got one {' and '.join(parts)} beside another"


def _names_from_classes(classes: Sequence[Any], block_of: IntArray) -> tuple[str, ...]:
    """Return a name for each block: ``oak+trout``, ``jan..mar``, ``(jan..mar, Marin+Napa)``.

    Three or more neighbours are written as a range. A block of pairs that is a product of two sets
    is named by these sets.

    Examples
    --------
    >>> _names_from_classes(("a", "b", "c", "d"), np.array([0, 0, 0, 1]))
    ('a..c', 'd')
    >>> pairs = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    >>> _names_from_classes(pairs, np.array([0, 1, 0, 1]))
    ('(a+b, 1)', '(a+b, 2)')
    """
    names = _names(classes, block_of, str)
    # str() is the same for 1 and "1", and a class may itself be called "a+b": repr() is safe.
    return names if len(set(names)) == len(names) else _names(classes, block_of, repr)


def _names(
    classes: Sequence[Any], block_of: IntArray, text: Callable[[Label], str]
) -> tuple[str, ...]:
    members: list[list[int]] = [[] for _ in range(int(block_of.max()) + 1)]
    for place, block in enumerate(block_of.tolist()):
        members[block].append(place)
    parts = _parts(classes)
    return tuple(_name(places, classes, parts, text) for places in members)


def _name(
    places: list[int],
    classes: Sequence[Any],
    parts: list[tuple[Label, ...]],
    text: Callable[[Label], str],
) -> str:
    if len(places) == 1:
        return text(classes[places[0]])
    sides = [{classes[place][k] for place in places} for k in range(len(parts))]
    # Pairs lie within the product of their sides, and are all of it if they are as many.
    if not parts or math.prod(map(len, sides)) > len(places):
        return _runs(places, classes, text)
    named = (
        _runs([i for i, label in enumerate(every) if label in side], every, text)
        for side, every in zip(sides, parts, strict=True)
    )
    return f"({', '.join(named)})"


def _parts(classes: Sequence[Any]) -> list[tuple[Label, ...]]:
    """Return the different labels in each part of classes that are tuples; none for others."""
    lengths = {len(label) if isinstance(label, tuple) else 0 for label in classes}
    if len(lengths) > 1:
        return []
    return [tuple(dict.fromkeys(label[k] for label in classes)) for k in range(lengths.pop())]


def _runs(places: list[int], labels: Sequence[Any], text: Callable[[Label], str]) -> str:
    """Name some of the labels, three or more neighbours as a range."""
    ends = np.flatnonzero(np.diff(places) > 1) + 1
    runs = [[text(labels[place]) for place in run] for run in np.split(places, ends)]
    return "+".join(f"{run[0]}..{run[-1]}" if len(run) > 2 else "+".join(run) for run in runs)
