"""Uniform random spanning trees (Wilson 1996), and the partitions that cutting them gives.

Compiled by Numba. Every draw is a pure function of (seed, iteration), which start the random
numbers of SplitMix64. So no state is kept, and nothing global is changed.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel
from structent._typing import IntArray

# The state of the random numbers: one 64-bit word, advanced in place.
State: TypeAlias = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)


@inlined
def _mixed(x: np.uint64) -> np.uint64:
    """Scatter the bits of x: the output function of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@inlined
def _below(bound: int, state: State) -> int:
    """Return a random integer from 0 to bound - 1, and advance the state."""
    state[0] += _GOLDEN
    # The product's upper half; its bias, bound / 2^32, is too small for any test to see.
    return int(((_mixed(state[0]) >> _HALF) * np.uint64(bound)) >> _HALF)


@inlined
def _wilson(start: IntArray, neighbours: IntArray, root: int, state: State) -> IntArray:
    """Return the parent of each node in a uniform spanning tree; the root is its own parent."""
    n_nodes = len(start) - 1
    parent = np.empty(n_nodes, dtype=np.int32)
    in_tree = np.zeros(n_nodes, dtype=np.bool_)
    parent[root] = root
    in_tree[root] = True
    for first in range(n_nodes):
        # Walk at random until the walk meets the tree; leaving a node again overwrites its exit,
        # which erases the loops of the walk.
        node = first
        while not in_tree[node]:
            degree = start[node + 1] - start[node]
            parent[node] = neighbours[start[node] + _below(degree, state)]
            node = parent[node]
        node = first
        while not in_tree[node]:
            in_tree[node] = True
            node = parent[node]
    return parent


@inlined
def _cut_edges(parent: IntArray, root: int, n_cuts: int, state: State) -> None:
    """Remove random edges of the tree, each from a node to its parent."""
    n_edges = len(parent) - 1
    below = np.empty(n_edges, dtype=np.int32)
    for edge in range(n_edges):
        below[edge] = edge if edge < root else edge + 1
    for cut in range(n_cuts):
        chosen = cut + _below(n_edges - cut, state)
        node = below[chosen]
        below[chosen] = below[cut]
        parent[node] = node


@inlined
def _number_blocks(parent: IntArray) -> IntArray:
    """Number the trees of a forest in the order of their first node."""
    n_nodes = len(parent)
    block_of = np.full(n_nodes, -1, dtype=np.int32)
    n_blocks = 0
    for first in range(n_nodes):
        top = first
        while block_of[top] < 0 and parent[top] != top:
            top = parent[top]
        if block_of[top] < 0:
            block_of[top] = n_blocks
            n_blocks += 1
        node = first
        while block_of[node] < 0:
            block_of[node] = block_of[top]
            node = parent[node]
    return block_of


@inlined
def _initial_state(seed: np.uint64, iteration: np.uint64) -> State:
    return np.array([_mixed(_mixed(seed + _GOLDEN) ^ (iteration + _GOLDEN))])


@kernel
def sample_spanning_tree(
    start: IntArray, neighbours: IntArray, root: int, seed: np.uint64, iteration: np.uint64
) -> IntArray:
    """Return the parent of each node in a uniformly drawn spanning tree.

    The neighbours of node v are ``neighbours[start[v]:start[v + 1]]``. The choice of the root does
    not change the distribution, only the time; random walks meet a node of high degree soon.
    """
    return _wilson(start, neighbours, root, _initial_state(seed, iteration))


@kernel
def sample_connected_blocks(
    start: IntArray,
    neighbours: IntArray,
    root: int,
    n_blocks: int,
    seed: np.uint64,
    iteration: np.uint64,
) -> IntArray:
    """Return the block of each node after n_blocks - 1 random edges of a spanning tree are cut."""
    state = _initial_state(seed, iteration)
    parent = _wilson(start, neighbours, root, state)
    _cut_edges(parent, root, n_blocks - 1, state)
    return _number_blocks(parent)
