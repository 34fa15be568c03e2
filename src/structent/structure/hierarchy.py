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
    as_typed,
    class_indices,
    is_missing,
    shown,
    unknown_label,
)
from structent.structure.newick import paths_from_newick
from structent.structure.partition import Partition
from structent.structure.random_partition import CLASS_LEVEL, RandomPartition, class_level

GroupPath: TypeAlias = tuple[Label, ...]  # from the coarsest group to the finest
Paths: TypeAlias = dict[Label, GroupPath]

_MOST_STEPS = 10**8  # the squares of the lengths of all paths
_MOST_SHOWN = 10


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
          is None or missing;
        - a directed networkx tree, with edges from parent to child.

    weights
        One weight per cut, from the coarsest to the singletons; equal if None. ``hxe(alpha)`` gives
        the weights of hierarchical cross-entropy.
    level_names
        Names for the cuts, from the coarsest to the finest groups. A table brings its own. The
        singletons are the level "class", or "label" if a cut is called "class".
    classes
        The classes, in the order wanted. If None: all classes that have a path; in a parent map or
        networkx tree, the leaves.

    Notes
    -----
    Paths may have different lengths. A class with a shorter path is its own block in deeper cuts. A
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
    return _hierarchy(given, weights, level_names, column_names, ordered)


def hierarchy_from_levels(
    rows: Any,
    weights: ArrayLike | WeightRule | None = None,
    *,
    level_names: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
) -> RandomPartition:
    """Return the hierarchy of rows that name their label at every level, coarsest first.

    The last name of a row is its class, and the names before it are its groups. Rows may be
    repeated. hiclass takes such rows as ``y``, and a pandas MultiIndex holds them.

    Parameters
    ----------
    rows
        An array, (n, levels), a table (pandas or polars), a pandas MultiIndex, or a list of rows of
        different lengths. An empty text or a missing value ends a row early.
    weights, level_names, classes
        As for :func:`hierarchy`; a table and a MultiIndex bring their own names of levels.

    Examples
    --------
    >>> rows = [["plant", "tree", "oak"], ["plant", "tree", "elm"], ["animal", "cat", ""]]
    >>> hierarchy_from_levels(rows) == hierarchy(
    ...     {"oak": ("plant", "tree"), "elm": ("plant", "tree"), "cat": ("animal",)}
    ... )
    True
    """
    listed, column_names = _rows_of_levels(rows)
    paths: Paths = {}
    for number, row in enumerate(listed):
        *path, label = _names_of_row(row, number)
        if paths.setdefault(label, tuple(path)) != tuple(path):
            raise StructureError(
                f"a class must have one path, got {paths[label]} and {tuple(path)} for {label!r}; "
                "give classes names that differ (pairs of child and parent are for "
                "hierarchy_from_edges)"
            )
    ordered = None if classes is None else as_classes(classes)
    return _hierarchy(paths, weights, level_names, column_names, ordered)


def hierarchy_from_edges(
    edges: Any,
    weights: ArrayLike | WeightRule | None = None,
    *,
    level_names: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
) -> RandomPartition:
    """Return the hierarchy of ``(child, parent)`` pairs, such as the hypernyms of WordNet.

    Parameters
    ----------
    edges
        The pairs, as a list, an array, (n, 2), or a table (pandas or polars) of two columns. A
        parent that is missing makes the child a root.
    weights, level_names
        As for :func:`hierarchy`.
    classes
        The classes, leaves or not, in the order wanted; all leaves if None. Only their ancestors
        are used, and groups that contain all classes are left out.

    Examples
    --------
    >>> edges = [("oak", "tree"), ("elm", "tree"), ("rose", "flower"), ("tree", "plant"),
    ...          ("flower", "plant"), ("plant", "entity"), ("idea", "entity")]
    >>> plants = hierarchy_from_edges(edges, classes=["oak", "elm", "rose"])
    >>> plants == hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)})
    True
    """
    ordered = None if classes is None else as_classes(classes)
    parents, second = _parents_from_edges(edges)
    paths = without_common_groups(_from_parents(parents, ordered or ()))
    for node in (node for label, path in paths.items() for node in (*path, label)):
        if node in second:
            raise StructureError(
                f"a node of a tree must have one parent, got {parents[node]!r} and "
                f"{second[node]!r} for {node!r}; pairs are (child, parent), keep one for each child"
            )
    return _hierarchy(paths, weights, level_names, None, ordered)


def hierarchy_from_newick(
    text: str,
    weights: ArrayLike | WeightRule | None = None,
    *,
    level_names: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
) -> RandomPartition:
    """Return the hierarchy of a tree in the Newick format; its leaves are the classes.

    Names are text. If ``classes`` are numbers or bools and all names can be read as such, they are
    converted. For the other parameters see :func:`hierarchy`. The inverse is
    :meth:`RandomPartition.to_newick <structent.structure.RandomPartition.to_newick>`.

    Examples
    --------
    >>> plants = hierarchy_from_newick("((oak:1,elm:2)tree,(rose)flower);")
    >>> plants == hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)})
    True
    """
    ordered = None if classes is None else as_classes(classes)
    found = paths_from_newick(text)
    labels = as_typed(list(found), ordered or ())
    paths: Paths = dict(zip(labels, found.values(), strict=True))
    return _hierarchy(paths, weights, level_names, None, ordered)


def _hierarchy(
    paths: Paths,
    weights: ArrayLike | WeightRule | None,
    level_names: Sequence[str] | None,
    column_names: Sequence[str] | None,
    ordered: tuple[Label, ...] | None,
) -> RandomPartition:
    _check_depth(list(map(len, paths.values())))
    chosen = _with_leaves_for_groups(paths)
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
            f"alpha must be 0 or more and finite, got {alpha:g}, which gives negative weights"
        )

    def rule(n_partitions: int) -> FloatArray:
        cumulative = np.exp(-alpha * np.arange(n_partitions))  # lambda_d / lambda_1
        weights: FloatArray = cumulative - np.append(cumulative[1:], 0.0)
        return weights

    return rule


def without_common_groups(paths: Paths) -> Paths:
    """Return paths without leading groups that contain every class and so tell nothing.

    Examples
    --------
    >>> without_common_groups({"oak": ("life", "plant"), "cat": ("life", "animal")})
    {'oak': ('plant',), 'cat': ('animal',)}
    """
    first, *others = paths.values()
    common = 0
    while common < len(first) and all(path[: common + 1] == first[: common + 1] for path in others):
        common += 1
    return {label: path[common:] for label, path in paths.items()}


def _check_depth(depths: Sequence[int]) -> None:
    """Refuse trees that would take hours to cut: each cut looks at the paths down to its depth."""
    if sum(depth**2 for depth in depths) > _MOST_STEPS:
        raise StructureError(
            f"a hierarchy must not be so deep, got {len(depths):,} classes in up to "
            f"{max(depths):,} groups within one another; leave out groups that say little"
        )


def _with_leaves_for_groups(paths: Paths) -> Paths:
    """Put each class that is itself a group of other classes into that group."""
    groups = {path[:d] for path in paths.values() for d in range(1, len(path) + 1)}
    return {
        label: (*path, label) if (*path, label) in groups else path for label, path in paths.items()
    }


def _cut(paths: Paths, depth: int) -> Partition:
    """Return the partition at a depth: classes with the same path so far share a block."""
    # A class with a shorter path is a block of its own; the marker separates it from all groups.
    groups = [
        (False, path[:depth]) if len(path) >= depth else (True, (label,))
        for label, path in paths.items()
    ]
    number_of = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    names = _unique_names([group for _, group in number_of])
    return Partition(paths, [number_of[group] for group in groups], names=names)


def _unique_names(groups: list[GroupPath]) -> list[str]:
    """Name each group by its last part, or by as much of its path as makes names different."""
    names = [_text(group, 1) for group in groups]
    for length in range(2, max(map(len, groups)) + 1):
        if len(set(names)) == len(names):
            break
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
    """Return the path of each class, and the level names if the form has any.

    ``classes`` are the inner nodes or leaves that are classes; if there are none, the leaves are.
    """
    if hasattr(tree, "columns"):
        return _from_table(tree)
    if hasattr(tree, "nodes") and hasattr(tree, "is_directed"):
        return _from_parents(_parents_from_networkx(tree), classes), None
    if not isinstance(tree, Mapping):
        raise StructureError(
            "a hierarchy must be a dict of paths or parents, a table, or a directed networkx "
            f"tree, got {type(tree).__name__}; for rows of levels there is hierarchy_from_levels, "
            "and for pairs of child and parent hierarchy_from_edges"
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


def _rows_of_levels(rows: Any) -> tuple[list[tuple[Any, ...]], list[str] | None]:
    """Return rows as tuples, and the names of the levels if the form has any."""
    if hasattr(rows, "columns"):
        names = [str(name) for name in rows.columns]
        return list(zip(*(rows[name].to_list() for name in rows.columns), strict=True)), names
    if hasattr(rows, "nlevels") and hasattr(rows, "to_list"):  # a pandas Index
        named = all(isinstance(name, str) for name in rows.names)
        listed = [row if isinstance(row, tuple) else (row,) for row in rows.to_list()]
        return listed, list(rows.names) if named else None
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        rows = rows.tolist()
    if not isinstance(rows, Sequence) or any(not isinstance(row, list | tuple) for row in rows):
        raise StructureError(
            "rows of levels must be an array with two axes, a table, a pandas MultiIndex or a list "
            f"of rows, got {getattr(rows, 'shape', None) or type(rows).__name__}"
        )
    return [tuple(row) for row in rows], None


def _names_of_row(row: Sequence[Any], number: int) -> list[Label]:
    """Return the names of a row, from the coarsest group to the class."""
    is_there = [not (is_missing(value) or value == "") for value in row]
    length = is_there.index(False) if False in is_there else len(row)
    if any(is_there[length:]) or length == 0:
        raise StructureError(
            "a row of levels must have a name at the first level and no gap, got "
            f"{list(row)} in row {number}; hierarchy() takes a table with one row per class, whose "
            "last column is the class"
        )
    return [as_label(value) for value in row[:length]]


def _parents_from_edges(edges: Any) -> tuple[dict[Label, Label | None], dict[Label, Label | None]]:
    """Return the first parent of each child, and a second parent if it has several."""
    if hasattr(edges, "columns"):
        pairs = list(zip(*(edges[name].to_list() for name in edges.columns), strict=True))
    else:
        pairs = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
    parents: dict[Label, Label | None] = {}
    second: dict[Label, Label | None] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or is_missing(pair[0]):
            raise StructureError(f"an edge must be a pair of child and parent, got {pair!r:.60}")
        child, parent = as_label(pair[0]), None if is_missing(pair[1]) else as_label(pair[1])
        if parents.setdefault(child, parent) != parent:
            second[child] = parent
    return parents, second


def _from_parents(parents: Mapping[Any, Any], classes: Sequence[Any]) -> Paths:
    parent_of = {
        as_label(node): None if parent is None else as_label(parent)
        for node, parent in parents.items()
    }
    for parent in list(parent_of.values()):
        if parent is not None:
            parent_of.setdefault(parent, None)
    inner = {parent for parent in parent_of.values() if parent is not None}
    _check_no_circle(parent_of)
    chosen = as_classes(classes or [node for node in parent_of if node not in inner])
    for label in chosen:
        if label not in parent_of:
            raise unknown_label(label, parent_of, kind="node")
    lineages: Paths = {}
    n_steps = 0
    for label in chosen:
        lineages[label] = _lineage(label, parent_of)
        n_steps += len(lineages[label]) ** 2
        if n_steps > _MOST_STEPS:  # now, before all of them fill the memory
            _check_depth(list(map(len, lineages.values())))
    # The root of everything is no group: it would be a partition into one block.
    n_roots = sum(parent is None for parent in parent_of.values())
    start = 1 if n_roots == 1 else 0
    return {
        label: (*lineages[label], label)[start:] if label in inner else lineages[label][start:]
        for label in chosen
    }


def _check_no_circle(parent_of: Mapping[Label, Label | None]) -> None:
    """Refuse a parent map in which a node is above itself, in one pass over all nodes."""
    ends: set[Label | None] = {None}  # nodes whose ancestors are known to end at a root
    for node in parent_of:
        walk: dict[Label, None] = {}
        at: Label | None = node
        while at not in ends and at is not None:
            if at in walk:
                names = list(walk)
                circle = " -> ".join(map(shown, [*names[names.index(at) :], at][-_MOST_SHOWN:]))
                raise StructureError(f"a parent map must not go round in a circle, got {circle}")
            walk[at] = None
            at = parent_of[at]
        ends.update(walk)


def _lineage(node: Label, parent_of: Mapping[Label, Label | None]) -> GroupPath:
    """Return the ancestors of a node, from its root down."""
    if node not in parent_of:
        raise unknown_label(node, parent_of, kind="node")
    walk = {node: None}
    last = node
    while (parent := parent_of[last]) is not None:
        if parent in walk:
            seen = list(walk)
            circle = " -> ".join(map(repr, [*seen[seen.index(parent) :], parent]))
            raise StructureError(f"a parent map must not go round in a circle, got {circle}")
        walk[parent] = None
        last = parent
    return tuple(reversed(list(walk)[1:]))

    walk = []
    while (parent := parent_of[node]) is not None:
        walk.append(parent)
        node = parent
    return tuple(reversed(walk))
