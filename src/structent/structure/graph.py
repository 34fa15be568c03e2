"""A graph of labels: the classes are its nodes, and neighbours are alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from structent._typing import IntArray, Label
from structent.errors import StructureError
from structent.structure.labels import as_classes, as_label, class_indices, shown


@dataclass(frozen=True, eq=False, repr=False)
class LabelGraph:
    """A connected graph whose nodes are the classes (section 4.3).

    Parameters
    ----------
    edges
        Pairs of neighbouring classes, or an undirected networkx graph.
    classes
        The classes, in the order wanted; if None, as they come in the edges.

    Examples
    --------
    >>> coast = LabelGraph([("Marin", "Sonoma"), ("Sonoma", "Napa"), ("Marin", "Napa")])
    >>> coast.neighbours("Marin")
    ('Sonoma', 'Napa')
    """

    classes: tuple[Label, ...]
    edges: tuple[tuple[Label, Label], ...]
    start: IntArray
    neighbour_indices: IntArray

    def __init__(self, edges: Any, classes: Iterable[Any] | None = None) -> None:
        if hasattr(edges, "nodes") and hasattr(edges, "is_directed"):
            if edges.is_directed():
                raise StructureError(
                    "a graph of labels must be undirected, got a directed networkx graph; "
                    "graph.to_undirected() makes it so"
                )
            classes = edges.nodes if classes is None else classes
            edges = edges.edges()
        pairs = tuple(map(_checked_edge, edges))
        if classes is None:
            classes = dict.fromkeys(label for pair in pairs for label in pair)
        checked = as_classes(classes)
        ends = class_indices([label for pair in pairs for label in pair], checked).reshape(-1, 2)
        _check_no_edge_twice(pairs, ends)
        n_classes = len(checked)
        both_ways = np.concatenate([ends, ends[:, ::-1]])
        links = csr_array(
            (np.ones(len(both_ways)), (both_ways[:, 0], both_ways[:, 1])), (n_classes, n_classes)
        )
        _check_connected(links, checked)
        object.__setattr__(self, "classes", checked)
        object.__setattr__(self, "edges", pairs)
        object.__setattr__(self, "start", links.indptr.astype(np.int32))
        object.__setattr__(self, "neighbour_indices", links.indices.astype(np.int32))

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def degrees(self) -> IntArray:
        """How many neighbours each class has."""
        return np.diff(self.start)

    def neighbours(self, label: Any) -> tuple[Label, ...]:
        """Return the neighbours of a class."""
        node = class_indices([label], self.classes)[0]
        indices = self.neighbour_indices[self.start[node] : self.start[node + 1]]
        return tuple(self.classes[index] for index in indices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelGraph):
            return NotImplemented
        return (
            self.classes == other.classes
            and np.array_equal(self.start, other.start)
            and np.array_equal(self.neighbour_indices, other.neighbour_indices)
        )

    def __hash__(self) -> int:
        return hash((self.classes, self.neighbour_indices.tobytes()))

    def __repr__(self) -> str:
        return f"<LabelGraph of {self.n_classes} classes and {len(self.edges)} edges>"


def adjacency(graph: LabelGraph) -> csr_array:
    """Return the matrix of the edges, 1 where two classes are neighbours."""
    n = graph.n_classes
    ones = np.ones(len(graph.neighbour_indices))
    return csr_array((ones, graph.neighbour_indices, graph.start), shape=(n, n))


def _checked_edge(edge: Any) -> tuple[Label, Label]:
    if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise StructureError(f"an edge must be a pair of classes, got {shown(edge)}")
    first, second = map(as_label, edge)
    if first == second:
        raise StructureError(f"an edge must join two classes, got {shown(first)} joined to itself")
    return first, second


def _check_no_edge_twice(
    pairs: tuple[tuple[Label, Label], ...], ends: np.ndarray[Any, Any]
) -> None:
    seen: set[tuple[int, int]] = set()
    for pair, (first, second) in zip(pairs, np.sort(ends, axis=1).tolist(), strict=True):
        if (first, second) in seen:
            raise StructureError(
                f"an edge must be listed once, got {shown(pair[0])} - {shown(pair[1])} twice; "
                "an edge has no direction and no multiplicity"
            )
        seen.add((first, second))


def _check_connected(links: csr_array, classes: tuple[Label, ...]) -> None:
    n_parts, part_of = connected_components(links, directed=False)
    if n_parts == 1:
        return
    parts = []
    for part in range(min(n_parts, 5)):
        members = [classes[node] for node in np.flatnonzero(part_of == part)]
        named = ", ".join(map(shown, members[:3]))
        parts.append(f"{{{named}{f', ... ({len(members)})' if len(members) > 3 else ''}}}")
    raise StructureError(
        f"a graph of labels must be connected, got {n_parts} parts: {', '.join(parts)}"
        f"{', ...' if n_parts > 5 else ''}; add an edge between them, or leave classes out"
    )
