"""Levels: partitions of one coarseness, which are scored together under one name."""

from collections.abc import Collection, Sequence
from itertools import chain, count

from structent._typing import Label
from structent.errors import StructureError
from structent.structure.partition import Partition

CLASS_LEVEL = "class"


def class_level(taken: Collection[str]) -> str:
    """Return what to call the level of the singletons where other levels have these names.

    "class" is a rank of biology, too.

    >>> class_level(["genus", "family"]), class_level(["family", "order", "class"])
    ('class', 'label')
    """
    return CLASS_LEVEL if CLASS_LEVEL not in taken else free_name("label", taken)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number behind it where it is taken.

    >>> free_name("cut", []), free_name("cut", ["cut", "cut (2)"])
    ('cut', 'cut (3)')
    """
    numbered = (f"{name} ({number})" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def default_levels(partitions: tuple[Partition, ...]) -> tuple[str, ...]:
    """Make each partition a level of its own, and the singletons the level of the classes."""
    by_coarseness = sorted(range(len(partitions)), key=lambda t: partitions[t].n_blocks)
    level_of = [CLASS_LEVEL] * len(partitions)
    coarse = [t for t in by_coarseness if not partitions[t].is_singletons]
    for number, t in enumerate(coarse, start=1):
        level_of[t] = f"level {number}"
    return tuple(level_of)


def checked_levels(levels: Sequence[str], partitions: tuple[Partition, ...]) -> tuple[str, ...]:
    """Return the name of each partition's level, if names are unique within a level."""
    named = not isinstance(levels, str) and all(isinstance(level, str) for level in levels)
    if not named or len(levels) != len(partitions):
        raise StructureError(
            f"levels must be one name for each of the {len(partitions)} partitions, got {levels!r}"
        )
    for level in dict.fromkeys(levels):
        _check_names_within_level(
            level, [p for p, of in zip(partitions, levels, strict=True) if of == level]
        )
    return tuple(map(str, levels))


def _check_names_within_level(level: str, partitions: list[Partition]) -> None:
    """Within a level a name means one set of classes, else a label "tree" could mean two."""
    if len(partitions) == 1 or all(partition.given_names is None for partition in partitions):
        return
    meaning: dict[str, tuple[Label, ...]] = {}
    for partition in partitions:
        for name, block in zip(partition.names, partition.blocks, strict=True):
            if meaning.setdefault(name, block) != block:
                raise StructureError(
                    f"block names must be unique within a level, got {name!r} for two different "
                    f"blocks of level {level!r}; give the partitions levels of their own"
                )
