"""Hierarchies: every class has a path from the coarsest group to the finest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structent._typing import FloatArray, Label, WeightRule
from structent.errors import StructureError
from structent.structure.labels import (
    as_classes,
    as_label,
    class_indices,
    is_missing,
    unknown_label,
)
from structent.structure.partition import Partition
from structent.structure.random_partition import CLASS_LEVEL, RandomPartition, class_level

GroupPath: TypeAlias = tuple[Label, ...]  # from the coarsest group to the finest
Paths: TypeAlias = dict[Label, GroupPath]


def hierarchy(
    paths: Any,
    weights: ArrayLike | WeightRule | None = None,
    *,
    level_names: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
) -> RandomPartition:
    """Return the cuts of a tree of classes at each depth, and the singletons (section 4.1).

    Parameters
    ----------
    paths
        The tree, in any of four forms:

        - the path of each class, ``{"oak": ("plant", "tree"), ...}``, coarsest group first;
        - a table (pandas or polars) with one column per level, coarsest first, the classes last,
          and one row per class; a missing value ends a path early;
        - the parent of each node, ``{"oak": "tree", "tree": "plant", ...}``; the parent of a root
          is None or not there;
        - a directed networkx tree, with edges from parent to child.

    weights
        One weight per cut, from the coarsest to the singletons; equal if None. ``hxe(alpha)`` gives
        those of hierarchical cross-entropy.
    level_names
        Names for the cuts, from the coarsest to the finest groups. A table brings its own. The
        singletons are the level "class", or "label" where a cut is called "class".
    classes
        The classes, in the order wanted. If None: all that have a path, or in a parent map or
        networkx tree the leaves.

    Notes
    -----
    Paths may differ in length. A class whose path ends early is its own block in deeper cuts. A
    class that is itself a group of others (``"tree"`` beside ``"oak"``) is put into that group.

    Examples
    --------
    >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    >>> [partition.blocks for partition in plants.partitions]
    [(('oak', 'maple'), ('rose',)), (('oak',), ('maple',), ('rose',))]
    >>> plants.weights.tolist()
    [0.5, 0.5]
    >>> plants.levels["level 1"][0].names
    ('tree', 'flower')
    """
    ordered = None if classes is None else as_classes(classes)
    given, column_names = _paths_from(paths, ordered or ())
    chosen = _with_leaves_for_groups(given)
    if ordered is not None:
        class_indices(list(ordered), tuple(chosen))
        chosen = {label: chosen[label] for label in ordered}
    depth = max(map(len, chosen.values()))
    cuts = [_cut(chosen, d) for d in range(1, depth + 1)]
    names = _checked_level_names(level_names, column_names, depth)
    if callable(weights):
        weights = weights(depth + 1)
    singletons = Partition.singletons(chosen)
    return RandomPartition([*cuts, singletons], weights, levels=names)


def hxe(alpha: float) -> WeightRule:
    r"""Weights that make structured cross-entropy the hierarchical cross-entropy of Bertinetto.

    With :math:`\lambda_d = e^{-\alpha d}` for the cuts d = 1 (coarsest) to D (singletons):

    .. math:: w_d = (\lambda_d - \lambda_{d+1}) / \lambda_1, \qquad w_D = \lambda_D / \lambda_1

    and hierarchical cross-entropy is :math:`\lambda_1` times the structured one. With
    ``alpha = 0`` it is plain cross-entropy; the larger ``alpha``, the more the coarse cuts count.

    Examples
    --------
    >>> hxe(0.5)(3).round(4).tolist()
    [0.3935, 0.2387, 0.3679]
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number):
        raise StructureError(f"alpha must be a number, got {alpha!r}")
    if not 0.0 <= alpha < np.inf:
        raise StructureError(
            f"alpha must be 0 or more and finite, got {alpha:g}, whose weights would be negative"
        )

    def rule(n_partitions: int) -> FloatArray:
        cumulative = np.exp(-alpha * np.arange(n_partitions))  # lambda_d / lambda_1
        weights: FloatArray = cumulative - np.append(cumulative[1:], 0.0)
        return weights

    return rule


def _with_leaves_for_groups(paths: Paths) -> Paths:
    """Put each class that is itself a group of other classes into that group."""
    groups = {path[:d] for path in paths.values() for d in range(1, len(path) + 1)}
    return {
        label: (*path, label) if (*path, label) in groups else path for label, path in paths.items()
    }


def _cut(paths: Paths, depth: int) -> Partition:
    """Return the partition at a depth: classes belong together whose paths agree so far."""
    # A class whose path is over is a block of its own; the marker keeps it apart from any group.
    groups = [
        (False, path[:depth]) if len(path) >= depth else (True, (label,))
        for label, path in paths.items()
    ]
    number_of = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    names = _unique_names([group for _, group in number_of])
    return Partition(paths, [number_of[group] for group in groups], names=names)


def _unique_names(groups: list[GroupPath]) -> list[str]:
    """Name each group by its last part, or by as much of its path as makes the names differ."""
    names = [_text(group, 1) for group in groups]
    for length in range(2, max(map(len, groups)) + 1):
        names = _replaced_where_repeated(names, [_text(group, length) for group in groups])
    # Left are 1 and "1", or a name with a slash in it: their representations differ.
    return _replaced_where_repeated(names, [repr(group) for group in groups])


def _replaced_where_repeated(names: list[str], longer: list[str]) -> list[str]:
    times = Counter(names)
    return [long if times[short] > 1 else short for short, long in zip(names, longer, strict=True)]


def _text(group: GroupPath, length: int) -> str:
    return "/".join(map(str, group[-length:]))


def _checked_level_names(
    level_names: Sequence[str] | None, column_names: Sequence[str] | None, depth: int
) -> list[str]:
    if level_names is not None:
        if isinstance(level_names, str) or len(level_names) != depth:
            raise StructureError(
                f"level_names must be {depth} names, one for each depth of the groups, "
                f"got {level_names!r}"
            )
        if len(set(level_names)) < depth:
            raise StructureError(f"level_names must differ, got {list(level_names)}")
        return [*level_names, class_level(level_names)]
    if column_names is not None:
        return [*column_names[:depth], column_names[-1]]
    return [*(f"level {d}" for d in range(1, depth + 1)), CLASS_LEVEL]


def _paths_from(tree: Any, classes: Sequence[Any]) -> tuple[Paths, list[str] | None]:
    """Return the path of each class, and the level names where the form has any.

    ``classes`` are inner nodes or leaves to be kept as classes; without any, the leaves are.
    """
    if hasattr(tree, "columns"):
        return _from_table(tree)
    if hasattr(tree, "nodes") and hasattr(tree, "is_directed"):
        return _from_parents(_parents_from_networkx(tree), classes), None
    if not isinstance(tree, Mapping):
        raise StructureError(
            "a hierarchy must be a dict of paths or parents, a table, or a directed networkx "
            f"tree, got {type(tree).__name__}"
        )
    if not tree:
        raise StructureError("a hierarchy must have at least one class, got an empty dict")
    if any(isinstance(value, list) for value in tree.values()):
        raise StructureError(
            "a hierarchy must map a class to a tuple of groups, got a list; "
            "write paths as tuples, or give a table as a pandas or polars DataFrame"
        )
    are_paths = {isinstance(value, tuple) for value in tree.values()}
    if len(are_paths) > 1:
        raise StructureError(
            "a hierarchy must map every class to its path, or every node to its parent, "
            "got both; write a path of one group as a tuple, ('tree',)"
        )
    if are_paths == {True}:
        labels = as_classes(tree)
        return {
            label: tuple(map(as_label, path))
            for label, path in zip(labels, tree.values(), strict=True)
        }, None
    return _from_parents(dict(tree), classes), None


def _from_table(table: Any) -> tuple[Paths, list[str]]:
    names = [str(name) for name in table.columns]
    if not names:
        raise StructureError("a table of a hierarchy must have at least one column, got none")
    columns = [table[name].to_list() for name in table.columns]
    labels = as_classes(columns[-1])
    rows = zip(*columns[:-1], strict=True) if len(columns) > 1 else [()] * len(labels)
    return {
        label: _path_from_row(label, row, names) for label, row in zip(labels, rows, strict=True)
    }, names


def _path_from_row(label: Label, row: Sequence[Any], names: list[str]) -> GroupPath:
    missing = [is_missing(value) for value in row]
    length = missing.index(True) if True in missing else len(row)
    if not all(missing[length:]):
        raise StructureError(
            f"a path must not have a gap, got {label!r} with nothing in column "
            f"{names[length]!r} but a group after it; name that group too"
        )
    return tuple(as_label(value) for value in row[:length])


def _parents_from_networkx(tree: Any) -> dict[Any, Any]:
    if not tree.is_directed():
        raise StructureError(
            "a networkx tree must be directed, with edges from parent to child, got an "
            "undirected graph; networkx.bfs_tree(tree, root) directs it"
        )
    parents: dict[Any, Any] = dict.fromkeys(tree.nodes)
    for parent, child in tree.edges():
        if parents[child] is not None:
            raise StructureError(
                f"a node of a tree must have one parent, got {parents[child]!r} and {parent!r} "
                f"for {child!r}; edges go from parent to child"
            )
        parents[child] = parent
    return parents


def _from_parents(parents: dict[Any, Any], classes: Sequence[Any]) -> Paths:
    parent_of = {
        as_label(node): None if parent is None else as_label(parent)
        for node, parent in parents.items()
    }
    for parent in list(parent_of.values()):
        if parent is not None:
            parent_of.setdefault(parent, None)
    inner = {parent for parent in parent_of.values() if parent is not None}
    lineages = {node: _lineage(node, parent_of) for node in parent_of}
    chosen = as_classes(classes or [node for node in parent_of if node not in inner])
    for label in chosen:
        if label not in parent_of:
            raise unknown_label(label, parent_of, kind="node")
    # The root of everything is no group: it would be a partition into one block.
    n_roots = sum(parent is None for parent in parent_of.values())
    start = 1 if n_roots == 1 else 0
    return {
        label: (*lineages[label], label)[start:] if label in inner else lineages[label][start:]
        for label in chosen
    }


def _lineage(node: Label, parent_of: Mapping[Label, Label | None]) -> GroupPath:
    """Return the ancestors of a node, from its root down."""
    walk = [node]
    while (parent := parent_of[walk[-1]]) is not None:
        if parent in walk:
            circle = " -> ".join(map(repr, [*walk[walk.index(parent) :], parent]))
            raise StructureError(f"a parent map must not go round in a circle, got {circle}")
        walk.append(parent)
    return tuple(reversed(walk[1:]))
