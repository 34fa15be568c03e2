"""The levels at which a study scores predictions, and how far mistakes are from the truth."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from structent._typing import FloatArray
from structent.metrics import LevelReport, level_report
from structent.metrics.measure import ScoredRows, columns_of
from structent.structure import LabelGraph, Partition, RandomPartition, SpanningTreePartitions
from structent.structure.graph import adjacency
from structent.structure.random_partition import class_level
from structent.structure.samplers import FixedStructure, Structure

N_SCORED_DRAWS = 10  # partitions of a sampler that are scored: the first ones, so always the same


def scored_structure(structure: Structure) -> RandomPartition:
    """Return a structure with levels to score; for a sampler, its first draws and the classes.

    Examples
    --------
    >>> ring = LabelGraph([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> scored = scored_structure(SpanningTreePartitions(ring, n_blocks=2, singleton_weight=0.5))
    >>> {name: len(partitions) for name, partitions in scored.levels.items()}
    {'blocks': 10, 'class': 1}
    """
    if isinstance(structure, RandomPartition):
        return structure
    if isinstance(structure, FixedStructure):
        return structure.structure
    draws = [structure.sample(iteration) for iteration in range(N_SCORED_DRAWS)]
    partitions: list[Partition] = []
    weights: list[float] = []
    levels: list[str] = []
    for draw in draws:
        members = zip(draw.partitions, draw.weights.tolist(), draw.level_of, strict=True)
        for partition, weight, level in members:
            if not partition.is_singletons:
                partitions.append(partition)
                weights.append(weight / N_SCORED_DRAWS)
                levels.append(level)
    partitions.append(Partition.singletons(structure.classes))
    weights.append(max(1.0 - sum(weights), 0.0))  # rounding may make it slightly negative
    return RandomPartition(partitions, weights, levels=[*levels, class_level(levels)])


def scores_by_level(
    y_true: ArrayLike,
    proba: ArrayLike,
    structure: Structure,
    *,
    classes: Any,
    allow_blocks: bool = False,
) -> LevelReport:
    """Return the scores at every level; on a graph, distances are numbers of edges.

    Parameters
    ----------
    y_true, proba, classes, allow_blocks
        As in :func:`~structent.metrics.level_report`.
    structure
        A random partition or a sampler, of which :func:`scored_structure` is scored.

    Examples
    --------
    >>> path = LabelGraph([("S", "M"), ("M", "L")])
    >>> sizes = SpanningTreePartitions(path, n_blocks=2, singleton_weight=0.5)
    >>> found = scores_by_level(["S", "S"], [[0, 0, 1], [0, 1, 0]], sizes, classes=["S", "M", "L"])
    >>> found.mistake_severity  # an L is two edges from an S, an M one
    1.5
    """
    scored = scored_structure(structure)
    report = level_report(y_true, proba, scored, classes=classes, allow_blocks=allow_blocks)
    if not isinstance(structure, SpanningTreePartitions):
        return report
    columns = columns_of(scored.classes, proba, classes)
    named = scored if allow_blocks else None
    rows = ScoredRows.of(y_true, proba, None, scored.classes, columns, named)
    rows = rows.take(rows.codes < len(scored.classes))  # a set of classes has no place on the graph
    edges = edges_between(structure.graph)[rows.codes, rows.proba.argmax(axis=1)]
    mistakes = edges[edges > 0]
    return replace(
        report,
        mistake_severity=float(mistakes.mean()) if len(mistakes) else 0.0,
        average_distance=float(edges.mean()) if len(edges) else float("nan"),
    )


@lru_cache(maxsize=2)  # every split asks for the same graph
def edges_between(graph: LabelGraph) -> FloatArray:
    """Return the number of edges on the shortest path between two classes, (classes, classes).

    Examples
    --------
    >>> edges_between(LabelGraph([("S", "M"), ("M", "L")])).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    between: FloatArray = shortest_path(adjacency(graph), unweighted=True)
    between.setflags(write=False)
    return between
