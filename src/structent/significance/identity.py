"""What tells structures apart: a text that two of them share if they are the same to a model."""

from __future__ import annotations

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

Scrambled: TypeAlias = (
    RandomPartition
    | FixedStructure
    | SpanningTreePartitions
    | MixedPartitions
    | ProductPartitions
    | ScrambledPartitions
)


def checked_scrambled(structure: object) -> Scrambled:
    """Return a structure whose scrambled copies can be told apart, or say what they can be of."""
    _content(structure, np.arange(len(getattr(structure, "classes", ()))))
    return cast("Scrambled", structure)


def identity(structure: Scrambled, places: IndexArray | None = None) -> str:
    """Return a text that two structures share if they are the same to a model.

    The order of the partitions and the names of blocks and levels do not matter.

    Parameters
    ----------
    structure
        A random partition or a sampler of structent.
    places
        If given, the structure is rearranged first: class i stands where ``places[i]`` stood.
    """
    if places is None:
        places = np.arange(len(structure.classes))
    content = _content(structure, places)
    return sha256(f"{structure.classes!r} {content!r}".encode()).hexdigest()


def _content(structure: object, places: IndexArray) -> Any:
    """Return what a structure is, in plain values.

    ``places`` has the class of the structure that each class stands for. Several may stand for one,
    as pairs do for their first parts.
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
