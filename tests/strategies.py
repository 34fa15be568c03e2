"""Random classes, partitions, structures, distributions, trees and graphs for property tests."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import LabelGraph, Partition, RandomPartition

labels = st.one_of(
    st.text(max_size=6),
    st.integers(-5, 40),
    st.tuples(st.text(max_size=3), st.integers(0, 9)),
)


def class_sets(min_size: int = 1, max_size: int = 8) -> st.SearchStrategy[list]:
    return st.lists(labels, min_size=min_size, max_size=max_size, unique=True)


@st.composite
def partitions(draw, classes=None):
    classes = draw(class_sets()) if classes is None else classes
    ids = st.integers(0, len(classes) - 1)
    return Partition(classes, draw(st.lists(ids, min_size=len(classes), max_size=len(classes))))


@st.composite
def weights(draw, size):
    """Weights with sum 1, some of them perhaps 0."""
    raw = draw(arrays(np.float64, size, elements=st.integers(0, 20)))
    if raw.sum() == 0:
        raw[draw(st.integers(0, size - 1))] = 1.0
    return raw / raw.sum()


@st.composite
def random_partitions(draw, classes=None, max_partitions=4):
    classes = draw(class_sets()) if classes is None else classes
    n_partitions = draw(st.integers(1, max_partitions))
    drawn = [draw(partitions(classes)) for _ in range(n_partitions)]
    return RandomPartition(drawn, draw(weights(n_partitions)))


@st.composite
def distributions(draw, *shape):
    """Probabilities that sum to 1 over all axes, zeros and tiny values among them."""
    elements = st.one_of(st.just(0.0), st.just(1e-12), st.floats(1e-3, 1.0))
    raw = draw(arrays(np.float64, shape, elements=elements))
    if raw.sum() == 0:
        raw.flat[draw(st.integers(0, raw.size - 1))] = 1.0
    return raw / raw.sum()


@st.composite
def structured_variables(draw, n_distributions=1):
    """A structure, and distributions of its classes."""
    structure = draw(random_partitions())
    drawn = [draw(distributions(structure.n_classes)) for _ in range(n_distributions)]
    return structure, *drawn


@st.composite
def structured_pairs(draw):
    """Structures of X and of Y, and a joint distribution."""
    structure_x, structure_y = draw(random_partitions()), draw(random_partitions())
    p_xy = draw(distributions(structure_x.n_classes, structure_y.n_classes))
    return structure_x, structure_y, p_xy


@st.composite
def ragged_paths(draw, max_classes=8):
    """Classes with paths of different length through shared groups."""
    n_classes = draw(st.integers(1, max_classes))
    group = st.sampled_from("ABC")
    path = st.lists(group, max_size=4).map(tuple)
    return {f"class {i}": draw(path) for i in range(n_classes)}


@st.composite
def connected_graphs(draw, min_size=2, max_size=200):
    """A random tree with random edges added."""
    n_nodes = draw(st.integers(min_size, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    edges = {(int(rng.integers(node)), node) for node in range(1, n_nodes)}
    for first, second in rng.integers(n_nodes, size=(draw(st.integers(0, n_nodes)), 2)).tolist():
        if first != second:
            edges.add((min(first, second), max(first, second)))
    return LabelGraph(sorted(edges), range(n_nodes))
