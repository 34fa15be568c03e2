"""Hierarchies from columns of groups: in the data, or in a table with one row per class."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from structent._typing import Label
from structent.errors import StructureError
from structent.inputs.table import Table, label_column
from structent.structure.hierarchy import GroupPath, Paths, hierarchy
from structent.structure.labels import sorted_classes
from structent.structure.random_partition import RandomPartition

_MOST_SHOWN = 10


def hierarchy_from_columns(
    table: Table, target: str, columns: Sequence[str]
) -> tuple[RandomPartition, tuple[str, ...]]:
    """Return the hierarchy of the labels that columns of the data give, and notes.

    Each label must have one value in each column. A row without a value takes the value of the
    label's other rows.
    """
    if target in columns:
        raise StructureError(
            f"columns of groups must not be the target, got {target!r}; name the coarser ones"
        )
    labels = table.labels(target)
    classes = labels.classes
    values = labels.column.to_list()
    groups = {
        name: _group_of_each(classes, values, label_column(table.column(name))[0].to_list(), name)
        for name in columns
    }
    return hierarchy_from_groups(classes, groups)


def hierarchy_from_groups(
    classes: Sequence[Label], groups: Mapping[str, Sequence[Label | None]]
) -> tuple[RandomPartition, tuple[str, ...]]:
    """Return the hierarchy of levels given in any order, and notes on levels that were left out.

    Parameters
    ----------
    classes
        The classes.
    groups
        For each level the group of each class, None if a class has none at this level.

    Examples
    --------
    >>> plants, _ = hierarchy_from_groups(
    ...     ["oak", "elm", "rose", "cat"],
    ...     {"form": ["tree", "tree", "flower", "pet"], "realm": ["plant"] * 3 + ["animal"]},
    ... )
    >>> [level[0].names for level in plants.levels.values()]
    [('plant', 'animal'), ('tree', 'flower', 'pet'), ('oak', 'elm', 'rose', 'cat')]
    """
    levels, notes = _levels_that_say_something(len(classes), groups)
    if not levels:
        raise StructureError(
            "a hierarchy needs a level with more than one group and fewer groups than classes, got "
            f"none in {', '.join(map(repr, groups))}"
        )
    ordered = _coarsest_first(levels)
    for coarse, fine in pairwise(ordered):
        _check_nested(fine, levels[fine], coarse, levels[coarse])
    rows = zip(*(levels[name] for name in ordered), strict=True)
    paths: Paths = {
        label: _path(label, row, ordered) for label, row in zip(classes, rows, strict=True)
    }
    return hierarchy(paths, level_names=ordered), notes


def _group_of_each(
    classes: Sequence[Label],
    labels: Sequence[Label | None],
    values: Sequence[Label | None],
    column: str,
) -> list[Label | None]:
    groups: dict[Label, set[Label]] = {label: set() for label in classes}
    for label, value in set(zip(labels, values, strict=True)):
        if label is not None and value is not None:
            groups[label].add(value)
    several = [label for label in classes if len(groups[label]) > 1]
    if several:
        shown = [
            f"{label!r} ({', '.join(map(repr, sorted_classes(list(groups[label]))[:3]))})"
            for label in several[:_MOST_SHOWN]
        ]
        more = f" and {len(several) - _MOST_SHOWN} more" if len(several) > _MOST_SHOWN else ""
        raise StructureError(
            f"each label must have one value in column {column!r}, got several for "
            f"{', '.join(shown)}{more}"
        )
    return [next(iter(groups[label]), None) for label in classes]


def _levels_that_say_something(
    n_classes: int, groups: Mapping[str, Sequence[Label | None]]
) -> tuple[dict[str, Sequence[Label | None]], tuple[str, ...]]:
    levels, notes = {}, []
    for name, values in groups.items():
        present = [value for value in values if value is not None]
        n_groups = len(set(present)) + n_classes - len(present)
        if n_groups == 1:
            notes.append(f"the level {name!r} left out: all classes are in one group")
        elif n_groups == n_classes:
            notes.append(f"the level {name!r} left out: each class is a group of its own")
        else:
            levels[name] = values
    return levels, tuple(notes)


def _coarsest_first(levels: Mapping[str, Sequence[Label | None]]) -> list[str]:
    """Sort levels by their number of groups, among classes that have a group at every level."""
    rows = list(zip(*levels.values(), strict=True))
    whole = [row for row in rows if None not in row]
    n_groups = {name: len({row[i] for row in whole}) for i, name in enumerate(levels)}
    n_missing = {name: sum(value is None for value in levels[name]) for name in levels}
    return sorted(levels, key=lambda name: (n_groups[name], n_missing[name]))


def _check_nested(
    fine: str,
    fine_groups: Sequence[Label | None],
    coarse: str,
    coarse_groups: Sequence[Label | None],
) -> None:
    parent: dict[Label, Label] = {}
    for group, above in zip(fine_groups, coarse_groups, strict=True):
        if group is None or above is None:
            continue
        if parent.setdefault(group, above) != above:
            raise StructureError(
                f"the groups of a hierarchy must be nested, got {group!r} of {fine!r} in both "
                f"{parent[group]!r} and {above!r} of {coarse!r}"
            )


def _path(label: Label, row: Sequence[Label | None], levels: Sequence[str]) -> GroupPath:
    path = tuple(group for group in row if group is not None)
    if None in row[: len(path)]:
        gap = levels[row.index(None)]
        raise StructureError(
            f"a path must not have a gap, got {label!r} with no group in {gap!r} but one in a "
            "finer level; name that group too"
        )
    return path
