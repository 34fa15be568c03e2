"""A hierarchy as a tree of blocks: as text in the Newick format, and as a networkx graph."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structent._optional import load_optional
from structent._typing import IndexArray, Label
from structent.errors import StructureError
from structent.structure.partition import Partition

if TYPE_CHECKING:
    from structent.structure.random_partition import RandomPartition

_PLAIN = re.compile(r"[^\s()\[\]':;,_]+")  # an underscore without quotes may be read as a space
_ROOT = "root"


class _Tree(NamedTuple):
    """The groups above the classes.

    Attributes
    ----------
    classes
        The leaves.
    levels, cuts
        The names of the levels of groups, coarsest first, and their partitions.
    depth
        How many groups each class is in: its path ends there, (classes,).
    """

    classes: tuple[Label, ...]
    levels: tuple[str, ...]
    cuts: tuple[Partition, ...]
    depth: IndexArray


def newick_of(structure: RandomPartition) -> str:
    """Return the tree of a hierarchy in the Newick format; levels and weights are not in it."""
    tree = _tree(structure, "a Newick tree")
    names = [str(label) for label in tree.classes]
    is_wrong = any(isinstance(label, tuple) or label == "" for label in tree.classes)
    if is_wrong or len(set(names)) < len(names):
        raise StructureError(
            "a Newick tree holds classes that are different as text, got a pair, an empty name, or "
            "two that are the same; relabel() gives them other names"
        )
    # From the finest cut to the coarsest, nodes are put together: the first class, and the text.
    nodes = [(place, _quoted(name)) for place, name in enumerate(names)]
    for d in reversed(range(len(tree.cuts))):
        block_of, names_of_blocks = tree.cuts[d].block_of, tree.cuts[d].names
        members: dict[int, list[tuple[int, str]]] = {}
        for node in nodes:
            members.setdefault(int(block_of[node[0]]), []).append(node)
        nodes = [
            inside[0]
            if tree.depth[inside[0][0]] <= d
            else (inside[0][0], f"({_joined(inside)}){_quoted(names_of_blocks[block])}")
            for block, inside in members.items()
        ]
    return f"({_joined(nodes)});"


def networkx_of(structure: RandomPartition) -> Any:
    """Return the tree of a hierarchy as a directed networkx graph, from the root to the classes."""
    tree = _tree(structure, "a networkx tree")
    networkx = load_optional("networkx", extra="networkx", purpose="A networkx tree")
    key_of = _keys(tree)
    root = key_of[0, -1]
    graph = networkx.DiGraph()
    graph.add_node(root)
    for place, label in enumerate(tree.classes):
        above = root
        for d in range(int(tree.depth[place])):
            here = key_of[d + 1, int(tree.cuts[d].block_of[place])]
            graph.add_node(here, level=tree.levels[d])
            graph.add_edge(above, here)
            above = here
        graph.add_edge(above, label)
    return graph


def _tree(structure: RandomPartition, what: str) -> _Tree:
    one_each = all(len(partitions) == 1 for partitions in structure.levels.values())
    if not one_each or not structure.is_nested:
        raise StructureError(
            f"{what} needs a hierarchy with nested partitions, got another structure; "
            "save() keeps it as JSON"
        )
    levels = {name: partitions[0] for name, partitions in structure.levels.items()}
    *names, finest = levels
    if not levels[finest].is_singletons:
        names.append(finest)
    cuts = tuple(levels[name] for name in names)
    return _Tree(structure.classes, tuple(names), cuts, _depths(structure.classes, cuts))


def _depths(classes: tuple[Label, ...], cuts: tuple[Partition, ...]) -> IndexArray:
    """Return how many groups each class is in before it is a block of its own with its own name.

    Such a block has no information, but one of them is kept if a cut has no other blocks.
    """
    depth = np.zeros(len(classes), dtype=np.int64)
    for d, cut in enumerate(cuts):
        sizes = np.bincount(cut.block_of)
        for place, block in enumerate(cut.block_of.tolist()):
            if sizes[block] > 1 or cut.names[block] != str(classes[place]):
                depth[place] = d + 1
    if depth.max() < len(cuts):
        depth[0] = len(cuts)
    return depth


def _keys(tree: _Tree) -> dict[tuple[int, int], Label]:
    """Return the node of each group, by the number of its cut, from 1, and of its block.

    A node is the group's name, with its level before it if another group or a class has the same
    name. The root is (0, -1).
    """
    groups = {
        (d + 1, block): (tree.levels[d], name)
        for d, cut in enumerate(tree.cuts)
        for block, name in enumerate(cut.names)
    }
    for d, cut in enumerate(tree.cuts):
        for place in np.flatnonzero(tree.depth <= d):
            del groups[d + 1, int(cut.block_of[place])]
    named = {(0, -1): ("", _ROOT), **groups}
    times = Counter([*(name for _, name in named.values()), *tree.classes])
    key_of: dict[tuple[int, int], Label] = {
        place: name if times[name] == 1 else f"{level}:{name}"
        for place, (level, name) in named.items()
    }
    twice = [key for key, n in Counter([*key_of.values(), *tree.classes]).items() if n > 1]
    if twice:
        raise StructureError(
            f"the nodes of a networkx tree must have different names, got {twice[0]!r} for two; "
            "relabel() gives classes other names"
        )
    return key_of


def _joined(nodes: list[tuple[int, str]]) -> str:
    return ",".join(text for _, text in nodes)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"
