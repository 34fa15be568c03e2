"""Structures whose layers are tested in every framework, and what their weights must be."""

import numpy as np

from structent import (
    FixedStructure,
    LabelGraph,
    SpanningTreePartitions,
    circular,
    hierarchy,
    mix,
    ordinal,
    trivial,
)
from structent.structure import catalog

GRID = LabelGraph([(i, i + 1) for i in range(7) if i != 3] + [(i, i + 4) for i in range(4)])
STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "a tree with many blocks": hierarchy({c: (c // 90, c // 30, c // 3) for c in range(300)}),
    "a ragged tree with many blocks": hierarchy(
        {c: (c // 50, c // 10, c // 2)[: 1 + c % 3] for c in range(200)}
    ),
    "months": catalog.months(),
    "order": ordinal(range(9)),
    "a circle with many blocks": circular(range(90), width=2, singleton_weight=0.4),
    "one block for all": mix([hierarchy(dict.fromkeys(range(3), ("all",))), ordinal(range(3))]),
    "trivial": trivial(range(5)),
    "sampler": SpanningTreePartitions(GRID, 3, 0.3),
    "fixed sampler": FixedStructure(catalog.months()),
}
BY_CHAINS = {name for name in STRUCTURES if "many blocks" in name}


def unit_vectors(structure, plan):
    """Vectors of classes and blocks whose weights are the factor itself: one feature for each."""
    k, m = len(structure.classes), plan.factor.n_blocks
    return np.eye(k, k + m), np.eye(m, k + m, k)


def similarity(structure, singleton_weight=None):
    if singleton_weight is not None:
        structure = structure.with_singleton_weight(singleton_weight)
    return structure.similarity()
