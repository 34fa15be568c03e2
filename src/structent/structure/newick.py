"""Trees in the Newick format: ``((oak,elm)tree,(rose,tulip)flower);``, the leaves are classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from structent.errors import StructureError

_MOST_GROUPS = 2 * 10**7  # of all leaves together

_PART = re.compile(
    r"""\s+ | \[[^\]]*\]                        # white space and comments
    | :\s*[-+.\deE]+                            # lengths of branches
    | (?P<mark>[(),;])
    | '(?P<quoted>[^']*+(?:''[^']*+)*+)'
    | (?P<name>[^\s()\[\]':;,]+)""",
    re.VERBOSE,
)

_SUPPORT = re.compile(r"\d[-+.\deE/%]*")


def paths_from_newick(text: str) -> dict[str, tuple[str, ...]]:
    """Return the groups of each leaf, from the root's children down; the root is no group.

    Names stay as they are written, without their quotes. Comments and branch lengths are ignored.
    A group without a name is named by its first and last leaf. These leaves are also added to the
    name if a sibling has the same name, or if it is a number that several groups have.

    Examples
    --------
    >>> paths_from_newick("((oak:1,elm:2)tree,'cat''s tail'[a reed])plants;")
    {'oak': ('tree',), 'elm': ('tree',), "cat's tail": ()}
    >>> paths_from_newick("((a,b),c);")
    {'a': ('a..b',), 'b': ('a..b',), 'c': ()}
    """
    leaves = _leaves(_tree(text))
    n_groups = 0
    for leaf in leaves:
        n_groups += leaf.depth
        if n_groups > _MOST_GROUPS:
            raise StructureError(
                f"the groups of all leaves of a Newick tree must be at most {_MOST_GROUPS:,}, got "
                f"more: {len(leaves):,} leaves, some {leaf.depth:,} deep; leave out groups that "
                "say little"
            )
    repeated = [repr(name) for name, n in Counter(leaf.name for leaf in leaves).items() if n > 1]
    if repeated:
        raise StructureError(
            f"the leaves of a Newick tree must have different names, got {', '.join(repeated[:5])} "
            "more than once"
        )
    groups = {id(node): node for leaf in leaves for node in leaf.above()}
    times = Counter(group.name for group in groups.values())
    beside = Counter((id(group.parent), group.name) for group in groups.values())

    def is_own(group: _Node) -> bool:
        # Some programs write the support of a group where its name should be: 95 names many groups.
        is_support = times[group.name] > 1 and _SUPPORT.fullmatch(group.name)
        return beside[id(group.parent), group.name] == 1 and not is_support

    name_of = {key: _group_name(node, unique=is_own(node)) for key, node in groups.items()}
    return {leaf.name: tuple(name_of[id(node)] for node in leaf.above()) for leaf in leaves}


@dataclass(eq=False)
class _Node:
    parent: _Node | None
    depth: int
    name: str = ""
    children: list[_Node] = field(default_factory=list)

    def above(self) -> list[_Node]:
        """Return the groups that the node is in, coarsest first, without the root."""
        walk = []
        node = self.parent
        while node is not None and node.parent is not None:
            walk.append(node)
            node = node.parent
        return walk[::-1]


def _tree(text: str) -> _Node:
    """Return the root, without recursion, because trees of species are deep."""
    root = here = _Node(None, 0)
    is_over = False
    before = ""
    for part, place in _parts(text):
        if is_over:
            raise _wrong(text, place, "something after the ';' that ends the tree")
        if part == "(" and before in ("", "(", ","):
            here = _child(here)
        elif part == "," and here.parent is not None:
            here = _child(here.parent)
        elif part == ")" and here.parent is not None:
            here = here.parent
        elif part == ";" and here is root:
            is_over = True
        elif part in ("(", ",", ")", ";"):
            raise _wrong(text, place, f"{part!r} where it cannot stand")
        elif here.name:
            raise _wrong(
                text, place, f"a second name {part[1:]!r}; put names with spaces in quotes"
            )
        else:
            here.name = part[1:]
        before = part
    if not is_over:
        raise StructureError("a Newick tree must end in ';', got text that ends too early")
    return root


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield marks as they are, and names after an ``=`` that distinguishes them from marks."""
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
        if match is None:
            raise _wrong(text, place, f"{text[place : place + 10]!r}, which is not Newick")
        if match["mark"]:
            yield match["mark"], place
        elif match["quoted"] is not None:
            yield "=" + match["quoted"].replace("''", "'"), place
        elif match["name"]:
            yield "=" + match["name"], place
        place = match.end()


def _child(parent: _Node) -> _Node:
    parent.children.append(_Node(parent, parent.depth + 1))
    return parent.children[-1]


def _leaves(root: _Node) -> list[_Node]:
    leaves, left = [], [root]
    while left:
        node = left.pop()
        left += reversed(node.children)
        if not node.children:
            leaves.append(node)
    if not all(leaf.name for leaf in leaves):
        raise StructureError("every leaf of a Newick tree must have a name, got one without")
    return leaves


def _group_name(node: _Node, *, unique: bool) -> str:
    if unique and node.name:
        return node.name
    first = last = node
    while first.children:
        first = first.children[0]
    while last.children:
        last = last.children[-1]
    leaves = f"{first.name}..{last.name}"
    return f"{node.name} ({leaves})" if node.name else leaves


def _wrong(text: str, place: int, what: str) -> StructureError:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return StructureError(f"a Newick tree has an error at line {line}, column {column}: got {what}")
