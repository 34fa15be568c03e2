"""Prediction: rows walk through trees, and the values of their leaves are added to their logits.

In small trees no row walks. Instead all rows of a tile are compared with every node, 32 per
instruction, which takes about half the time of five steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structent._compiled import inlined, kernel
from structent.trees.vectors import add_four, add_numbers, part_rows, write_place

DIGEST_OF_VECTORS = "af2538d1bb250e30"  # Numba's cache does not see edits there

SMALL_TREE = 255  # nodes, so that the place of one is a byte
_TILE = 512  # rows that walk through a tree together; their logits stay in the cache
_U, _BYTE = np.uint64, np.uint8


@kernel
def write_steps(
    first_node: Any, column: Any, child: Any, step: Any, goes_right: Any, depth: Any
) -> None:
    """Write how rows walk through the trees: see ``Forest._steps``."""
    above = np.zeros(column.size, np.int64)  # splits above each node
    for tree in range(first_node.size - 1):
        for node in range(first_node[tree], first_node[tree + 1]):
            if column[node] < 0:
                step[node] = _U(node) << _U(32)
                goes_right[node] = _U(0)
                depth[tree] = max(depth[tree], above[node])
                continue
            left = first_node[tree] + np.int64(child[node])
            step[node] = (_U(left) << _U(32)) | _U(column[node])
            above[left] = above[left + 1] = above[node] + 1


@kernel
def add_trees(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, first_node: Any, step: Any, goes_right: Any, depth: Any, child: Any,
    values: Any, bins: Any, n_columns: int, n_classes: int, margins: Any,
) -> None:  # fmt: skip
    """Add the values of all trees to the logits of the rows first to last - 1."""
    nodes = np.empty(_TILE, np.uint64)
    for tile in range(first, last, _TILE):
        n_rows = min(_TILE, last - tile)
        for tree in range(first_node.size - 1):
            nodes[:n_rows] = _U(first_node[tree])
            # All rows take a step before the next one: the steps of one row depend on each other.
            for _ in range(depth[tree]):
                _take_step(step, goes_right, bins, tile * n_columns, n_columns, n_rows, nodes)
            for r in range(n_rows):
                of_leaf = np.int64(child[nodes[r]]) * n_classes
                add_numbers(values, of_leaf, n_classes, margins, (tile + r) * n_classes)


@kernel
def add_tree_to_some(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, rows: Any, step: Any, goes_right: Any, depth: Any, child: Any,
    values: Any, bins: Any, n_columns: int, n_classes: int, margins: Any,
) -> None:  # fmt: skip
    """Add the values of one tree to the logits of ``rows[first:last]``."""
    for place in range(first, last):
        node, at = _U(0), rows[place] * n_columns
        for _ in range(depth[0]):
            node = _next_node(step, goes_right, bins, at, node)
        of_leaf = np.int64(child[node]) * n_classes
        add_numbers(values, of_leaf, n_classes, margins, rows[place] * n_classes)


@inlined
def _take_step(
    step: Any, goes_right: Any, bins: Any, at: int, n_columns: int, n_rows: int, nodes: Any
) -> None:
    for r in range(n_rows):
        nodes[r] = _next_node(step, goes_right, bins, at + r * n_columns, nodes[r])


@inlined
def _next_node(step: Any, goes_right: Any, bins: Any, at: int, node: Any) -> Any:
    """Return the child that a row goes to, or the leaf itself; the row's bins begin at ``at``."""
    b = _U(bins[_U(at) + (step[node] & _U(0xFFFFFFFF))])
    bits = goes_right[(node << _U(2)) | (b >> _U(6))]
    return (step[node] >> _U(32)) + ((bits >> (b & _U(63))) & _U(1))


@kernel
def count_runs(column: Any, goes_left: Any, first_run: Any) -> None:
    """Write the first run of each node, and last the number of runs; leaves have none."""
    for node in range(column.size):
        n_runs, was_left = 0, False
        for b in range(256 if column[node] >= 0 else 0):
            is_left = _is_left(goes_left, node, b)
            n_runs += is_left and not was_left
            was_left = is_left
        first_run[node + 1] = first_run[node] + n_runs


@kernel
def write_runs(goes_left: Any, first_run: Any, low: Any, length: Any) -> None:
    """Write the first bin of each run of bins that go left, and how many follow it."""
    for node in range(first_run.size - 1):
        run, was_left = first_run[node] - 1, False
        for b in range(256 if first_run[node + 1] > first_run[node] else 0):
            is_left = _is_left(goes_left, node, b)
            if is_left and not was_left:
                run += 1
                low[run] = b
            if is_left:
                length[run] = b - low[run]
            was_left = is_left


@inlined
def _is_left(goes_left: Any, node: int, b: int) -> bool:
    return bool((goes_left[node, b >> 6] >> _U(b & 63)) & _U(1))


@kernel
def add_small_trees(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, first_node: Any, column: Any, child: Any, first_run: Any, low: Any,
    length: Any, values: Any, bins: Any, n_columns: int, n_classes: int, margins: Any,
) -> None:  # fmt: skip
    """Add the values of all trees, which are small, to the logits of the rows first to last - 1."""
    n_trees = first_node.size - 1
    by_column = np.zeros(n_columns * _TILE, np.uint8)
    reached = np.empty(SMALL_TREE * _TILE, np.uint8)
    leaves = np.empty(4 * _TILE, np.uint8)
    for tile in range(first, last, _TILE):
        n_rows = min(_TILE, last - tile)
        for j in range(n_columns):
            for r in range(n_rows):
                by_column[j * _TILE + r] = bins[(tile + r) * n_columns + j]
        for tree in range(0, n_trees, 4):
            n_together = min(4, n_trees - tree)
            for t in range(n_together):
                _find_leaves(
                    first_node[tree + t], first_node[tree + t + 1], column, child, first_run, low,
                    length, by_column, reached, leaves, t * _TILE,
                )  # fmt: skip
            _add_leaves(
                tree, n_together, tile, n_rows, first_node, child, leaves, values, n_classes,
                margins,
            )  # fmt: skip


@inlined
def _find_leaves(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    begin: int, end: int, column: Any, child: Any, first_run: Any, low: Any, length: Any,
    by_column: Any, reached: Any, leaves: Any, at: int,
) -> None:  # fmt: skip
    """Write the leaf of each row of a tile, as its place among the nodes of the tree.

    For every node, a byte per row marks whether the row reaches it: all bits set, or none.
    """
    for r in range(_TILE):
        reached[r] = 255
        leaves[at + r] = 0
    for node in range(begin, end):
        here = (node - begin) * _TILE
        if column[node] < 0:
            write_place(reached, here, _TILE, _BYTE(node - begin), leaves, at)
        else:
            part_rows(
                by_column, np.int64(column[node]) * _TILE, _TILE, low, length, first_run[node],
                first_run[node + 1], reached, here, np.int64(child[node]) * _TILE,
            )  # fmt: skip


@inlined
def _add_leaves(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    tree: int, n_together: int, tile: int, n_rows: int, first_node: Any, child: Any, leaves: Any,
    values: Any, n_classes: int, margins: Any,
) -> None:  # fmt: skip
    """Add the values of the leaves of up to four trees."""
    for r in range(n_rows):
        to = (tile + r) * n_classes
        if n_together == 4:
            add_four(
                values, _line(first_node[tree], leaves[r], child) * n_classes,
                _line(first_node[tree + 1], leaves[_TILE + r], child) * n_classes,
                _line(first_node[tree + 2], leaves[2 * _TILE + r], child) * n_classes,
                _line(first_node[tree + 3], leaves[3 * _TILE + r], child) * n_classes,
                n_classes, margins, to,
            )  # fmt: skip
        else:
            for t in range(n_together):
                line = _line(first_node[tree + t], leaves[t * _TILE + r], child)
                add_numbers(values, line * n_classes, n_classes, margins, to)


@inlined
def _line(root: int, place: int, child: Any) -> Any:
    """Return the row of a leaf's values, given its place among the nodes of its tree."""
    return np.int64(child[_U(root) + _U(place)])
