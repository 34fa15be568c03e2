"""Readers of hierarchies: each form of a tree becomes a path of groups for every class."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from structent._typing import Label
from structent.errors import StructureError
from structent.structure.labels import as_classes, as_label, is_missing, unknown_label

Path: TypeAlias = tuple[Label, ...]
Paths: TypeAlias = dict[Label, Path]


def paths_from(tree: Any, classes: Sequence[Any]) -> tuple[Paths, list[str] | None]:
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


def _path_from_row(label: Label, row: Sequence[Any], names: list[str]) -> Path:
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


def _lineage(node: Label, parent_of: Mapping[Label, Label | None]) -> Path:
    """Return the ancestors of a node, from its root down."""
    walk = [node]
    while (parent := parent_of[walk[-1]]) is not None:
        if parent in walk:
            circle = " -> ".join(map(repr, [*walk[walk.index(parent) :], parent]))
            raise StructureError(f"a parent map must not go round in a circle, got {circle}")
        walk.append(parent)
    return tuple(reversed(walk[1:]))
