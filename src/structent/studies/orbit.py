"""The orbit of a structure: all different structures that scrambling its classes can give."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias, cast

import numpy as np

from structent._typing import IndexArray
from structent.errors import StructentError
from structent.structure import (
    FixedStructure,
    LabelGraph,
    MixedPartitions,
    ProductPartitions,
    RandomPartition,
    ScrambledPartitions,
    SpanningTreePartitions,
)

# An orbit is listed if it has up to 1,000 structures, or up to five times as many as copies are
# wanted. In a larger one the same structure is rarely drawn twice.
_LISTED = 1000
_LISTED_FOR_A_COPY = 5


@dataclass(frozen=True)
class Orbit:
    """Copies of a structure with its classes scrambled: all different, none the structure itself.

    Attributes
    ----------
    copies
        The copies, in the order in which they were drawn.
    size
        How many structures the orbit has, the given one included; None if there are too many to
        be listed.
    """

    copies: tuple[Scrambled, ...]
    size: int | None


def draw_copies(structure: Scrambled, n_copies: int, rng: np.random.Generator) -> Orbit:
    """Return scrambled copies, drawn without replacement from the orbit of a structure.

    The size of the orbit is ``n_classes!`` divided by the number of automorphisms: scramblings that
    leave the weighted partitions, or the graph, unchanged give no new structure. All copies are
    equally likely. If the orbit is smaller than the number asked for, there are fewer copies.

    Parameters
    ----------
    structure
        What is scrambled.
    n_copies
        How many copies are wanted.
    rng
        Draws the copies.

    Examples
    --------
    Of the six orders of three sizes each is the same as its reverse.

    >>> from structent import ordinal
    >>> orbit = draw_copies(ordinal(["S", "M", "L"]), 99, np.random.default_rng(0))
    >>> orbit.size, len(orbit.copies)
    (3, 2)
    """
    listed = _listed_orbit(structure, most=max(_LISTED, _LISTED_FOR_A_COPY * n_copies))
    if listed is not None:
        others = [places for name, places in listed.items() if name != identity(structure)]
        drawn = [others[number] for number in rng.permutation(len(others))[:n_copies]]
    else:
        drawn = _different_arrangements(structure, n_copies, rng)
    return Orbit(
        tuple(rearranged(structure, places) for places in drawn),
        None if listed is None else len(listed),
    )


def rearranged(structure: Scrambled, places: IndexArray) -> Scrambled:
    """Return the structure in which class i has the place of class ``places[i]``."""
    classes = structure.classes
    new_label = {classes[old]: classes[new] for new, old in enumerate(places.tolist())}
    if isinstance(structure, RandomPartition):
        return structure.relabel(new_label).restrict(classes)
    if not isinstance(structure, SpanningTreePartitions):
        return ScrambledPartitions(structure, tuple(places.tolist()))
    edges = [(new_label[first], new_label[second]) for first, second in structure.graph.edges]
    return SpanningTreePartitions(
        LabelGraph(edges, classes), structure.n_blocks, structure.singleton_weight, structure.seed
    )


def _listed_orbit(structure: Scrambled, *, most: int) -> dict[str, IndexArray] | None:
    """Return an arrangement of each structure of the orbit, or None if there are too many.

    Swapping the first two classes and moving all classes on by one generate all scramblings. So
    repeating these two reaches the whole orbit.
    """
    start = np.arange(len(structure.classes))
    moves = [np.roll(start, 1)]
    if len(start) > 1:
        moves.append(np.array([1, 0, *start[2:]]))
    found = {identity(structure): start}
    waiting = [start]
    while waiting:
        places = waiting.pop()
        for move in moves:
            name = identity(structure, places[move])
            if name not in found:
                found[name] = places[move]
                waiting.append(places[move])
        if len(found) > most:
            return None
    return found


def _different_arrangements(
    structure: Scrambled, n_copies: int, rng: np.random.Generator
) -> list[IndexArray]:
    seen, drawn = {identity(structure)}, list[IndexArray]()
    while len(drawn) < n_copies:
        places = rng.permutation(len(structure.classes))
        name = identity(structure, places)
        if name not in seen:
            seen.add(name)
            drawn.append(places)
    return drawn


Scrambled: TypeAlias = (
    RandomPartition
    | FixedStructure
    | SpanningTreePartitions
    | MixedPartitions
    | ProductPartitions
    | ScrambledPartitions
)


def checked_scrambled(structure: object) -> Scrambled:
    """Return a structure that can be scrambled, or raise an error that says which ones can."""
    _content(structure, np.arange(len(getattr(structure, "classes", ()))))
    return cast("Scrambled", structure)


def identity(structure: Scrambled, places: IndexArray | None = None) -> str:
    """Return a text that is equal for two structures that a model cannot tell apart.

    The order of the partitions and the names of blocks and levels do not matter.

    Parameters
    ----------
    structure
        A random partition or a sampler of structent.
    places
        If given, the structure is rearranged first: class i gets the place of ``places[i]``.
    """
    if places is None:
        places = np.arange(len(structure.classes))
    content = _content(structure, places)
    return sha256(f"{structure.classes!r} {content!r}".encode()).hexdigest()


def _content(structure: object, places: IndexArray) -> Any:
    """Return the content of a structure as plain values.

    ``places`` has, for each class, the class of the structure that it stands for. Several classes
    may stand for the same one, as pairs do for their first parts.
    """
    match structure:
        case RandomPartition():
            return _weighted_partitions(structure, places)
        case FixedStructure():
            return _content(structure.structure, places)
        case SpanningTreePartitions():
            settings = (structure.n_blocks, structure.singleton_weight, structure.seed)
            return settings, _graph(structure.graph, places)
        case ScrambledPartitions(places=own, given_singleton_weight=weight):
            inside = _content(structure.sampler, np.array(own)[places])
            return inside if weight is None else (weight, inside)
        case ProductPartitions(given_singleton_weight=weight):
            first, second = np.divmod(places, len(structure.second.classes))
            parts = _content(structure.first, first), _content(structure.second, second)
            return "product", weight, parts
        case MixedPartitions(given_singleton_weight=weight):
            parts = tuple(_content(part, places) for part in structure.structures)
            return "mix", weight, structure.weights, parts
    raise StructentError(
        "structure must be one that can be scrambled, a RandomPartition or a sampler of structent, "
        f"got {type(structure).__name__}"
    )


def _weighted_partitions(
    structure: RandomPartition, places: IndexArray
) -> list[tuple[tuple[int, ...], float]]:
    """Return the partitions with blocks numbered by their first class, and weights, sorted."""
    rows = structure.block_of[:, places].tolist()
    # Weights that should be equal may differ by rounding, as after mix().
    weights = structure.weights.round(12).tolist()
    return sorted(
        (_numbered(block_of), weight) for block_of, weight in zip(rows, weights, strict=True)
    )


def _graph(graph: LabelGraph, places: IndexArray) -> tuple[tuple[int, ...], list[list[int]]]:
    """Return which classes share a node, the nodes numbered by their first class, and the edges."""
    node_of = _numbered(places.tolist())
    number = np.empty(graph.n_classes, dtype=np.int64)
    number[places] = node_of
    first = number[np.repeat(np.arange(graph.n_classes), graph.degrees)]
    second = number[graph.neighbour_indices]
    once = first < second
    return node_of, sorted(np.column_stack([first[once], second[once]]).tolist())


def _numbered(kinds: list[int]) -> tuple[int, ...]:
    """Return kinds numbered from 0 in the order in which they come."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(kind, len(number)) for kind in kinds)
