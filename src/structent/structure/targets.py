"""Labels of any granularity: a class, the name of a block, or a set of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structent._typing import IndexArray, Label
from structent.errors import LabelError
from structent.structure.labels import (
    class_indices,
    plain_values,
    unknown_label,
    with_columns_joined,
)
from structent.structure.partition import Partition


@dataclass(frozen=True)
class LabelSets:
    """The code of each row, and the classes that each code means.

    Attributes
    ----------
    codes
        One code per row, (n,). The classes come first, ``0 .. n_classes - 1``, then the blocks of
        the structure, then the other sets of classes that were given.
    sets
        For each code the indices of its classes.
    classes
        The classes of the structure.
    """

    codes: IndexArray
    sets: tuple[tuple[int, ...], ...]
    classes: tuple[Label, ...]

    @classmethod
    def of_sets(cls, coarse_sets: Iterable[Sequence[int]], classes: tuple[Label, ...]) -> LabelSets:
        """Return the codes of sets of classes, given by their indices, without any rows."""
        of_classes = ((index,) for index in range(len(classes)))
        sets = (*of_classes, *map(tuple, coarse_sets))
        return cls(np.empty(0, dtype=np.int64), sets, classes)

    @property
    def coarse_sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of the codes that are not a class: code ``len(classes) + s`` means set s."""
        return self.sets[len(self.classes) :]

    def classes_of_rows(self) -> list[tuple[Label, ...]]:
        """Return for each row the classes that its label allows."""
        return [tuple(self.classes[index] for index in self.sets[code]) for code in self.codes]


def label_sets_of(
    labels: ArrayLike | Sequence[Any],
    classes: tuple[Label, ...],
    levels: Mapping[str, tuple[Partition, ...]],
) -> LabelSets:
    """Return the codes of labels that are classes, names of blocks, or sets of classes.

    A name that is both a class and a block means the class; ``"level:name"`` always means the
    block.
    """
    values = plain_values(with_columns_joined(labels, classes))
    sets: dict[tuple[int, ...], int] = {(index,): index for index in range(len(classes))}
    meanings = _block_meanings(classes, levels)
    for block in meanings.values():
        for members in block:
            sets.setdefault(members, len(sets))
    code_of: dict[Any, int] = {label: index for index, label in enumerate(classes)}
    nameable = {str, *map(type, classes)}
    codes = []
    for value in values:
        if isinstance(value, set | frozenset):
            members = _indices_of_set(value, classes)
            codes.append(sets.setdefault(members, len(sets)))
            continue
        if type(value) not in nameable:
            raise unknown_label(value, [*classes, *meanings], kind="class or block")
        if value not in code_of:
            code_of[value] = sets[_only_meaning(value, meanings, classes)]
        codes.append(code_of[value])
    return LabelSets(np.array(codes, dtype=np.int64), tuple(sets), classes)


def checked_label_sets(label_sets: Any, classes: tuple[Label, ...]) -> LabelSets:
    """Return the label sets if they were made by a structure with these classes, in this order."""
    if not isinstance(label_sets, LabelSets):
        raise LabelError(
            f"label_sets must be the result of structure.encode_with_blocks(labels), got "
            f"{type(label_sets).__name__}"
        )
    if label_sets.classes != classes:
        raise LabelError(
            f"label_sets must have the {len(classes)} classes of the structure in their order, "
            f"got {len(label_sets.classes)} classes; encode the labels with this structure"
        )
    return label_sets


def _block_meanings(
    classes: tuple[Label, ...], levels: Mapping[str, tuple[Partition, ...]]
) -> dict[str, dict[tuple[int, ...], str]]:
    """For each short and full name: the sets it could mean, with the full name of each."""
    index = {label: position for position, label in enumerate(classes)}
    meanings: dict[str, dict[tuple[int, ...], str]] = {}
    for level, partitions in levels.items():
        for partition in partitions:
            for name, block in zip(partition.names, partition.blocks, strict=True):
                members = tuple(index[label] for label in block)
                full_name = f"{level}:{name}"
                meanings.setdefault(name, {}).setdefault(members, full_name)
                meanings.setdefault(full_name, {}).setdefault(members, full_name)
    return meanings


def _only_meaning(
    name: Any, meanings: dict[str, dict[tuple[int, ...], str]], classes: tuple[Label, ...]
) -> tuple[int, ...]:
    if name not in meanings:
        raise unknown_label(name, [*classes, *meanings], kind="class or block")
    candidates = meanings[name]
    if len(candidates) > 1:
        raise LabelError(
            f"{name!r} is the name of several blocks; write {' or '.join(candidates.values())}"
        )
    return next(iter(candidates))


def _indices_of_set(
    labels: set[Any] | frozenset[Any], classes: tuple[Label, ...]
) -> tuple[int, ...]:
    if not labels:
        raise LabelError("a set of classes must hold at least one, got an empty set")
    return tuple(sorted(class_indices(list(labels), classes).tolist()))
