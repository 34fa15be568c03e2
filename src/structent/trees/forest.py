"""Grown trees as frozen arrays: predictions, the gain of each column, conversion to bytes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, within
from structent._files import json_line
from structent._threads import in_parts
from structent._typing import FloatArray, IndexArray
from structent.errors import StructentError
from structent.trees.bins import BinTable
from structent.trees.growing import Nodes
from structent.trees.walking import (
    SMALL_TREE,
    add_small_trees,
    add_tree_to_some,
    add_trees,
    count_runs,
    write_runs,
    write_steps,
)

DIGEST_OF_WALKING = "6e67f26317cd2a96"  # Numba's cache does not see edits there

_LEAST_ROWS = 1024  # per thread
_VISITS_OF_A_STEP = 50  # comparisons of a row with nodes and runs that take as long as one step
_U = np.uint64
_DTYPES = {
    "first_node": "<i8", "column": "<i4", "child": "<i4", "goes_left": "<u8", "gain": "<f4",
    "values": "<f4",
}  # fmt: skip
_TABLES = ("goes_left", "values")  # arrays of two axes
_LONGEST_HEADER = 1000  # bytes
ONE_ROOT = np.zeros(2, np.int64)  # the first node of a forest of one tree
_LARGEST = float(np.finfo(np.float32).max)
DEEPEST_TREE = 30  # max_depth of the estimator is at most this


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose values are summed, each with a vector of values in every leaf.

    Attributes
    ----------
    first_node
        The first node of each tree, which is its root, then the total number of nodes,
        (trees + 1,).
    column
        The column that each node is split by, -1 for a leaf, (nodes,).
    child
        The left child of each node, counted from the root of its tree; the right child comes next.
        For a leaf, its row of ``values``.
    goes_left
        Which bins of the column go left, as 256 bits, (nodes, 4).
    gain
        The gain of each split, (nodes,).
    values
        The values of each leaf, (leaves, classes).
    """

    first_node: IndexArray
    column: NDArray[np.int32]
    child: NDArray[np.int32]
    goes_left: NDArray[np.uint64]
    gain: NDArray[np.float32]
    values: NDArray[np.float32]

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.first_node) - 1

    def add_to(self, margins: NDArray[np.float32], bins: BinTable, n_threads: int = 1) -> None:
        """Add the values of all trees to the logits of each row, (n, classes)."""
        rest = (
            self.values.reshape(-1), bins.reshape(-1), bins.shape[1], margins.shape[1],
            margins.reshape(-1),
        )  # fmt: skip
        if self._is_small:
            in_parts(
                add_small_trees, len(bins), n_threads, self.first_node, self.column, self.child,
                *self._runs, *rest, least=_LEAST_ROWS,
            )  # fmt: skip
            return
        in_parts(
            add_trees, len(bins), n_threads, self.first_node, *self._steps, self.child, *rest,
            least=_LEAST_ROWS,
        )  # fmt: skip

    @cached_property
    def _is_small(self) -> bool:
        """Whether comparing all rows with all nodes is faster than walking through the trees.

        A set of categories may consist of many runs of bins, and all rows are compared with each.
        If two nodes share a child, as in a file that was tampered with, rows must walk.
        """
        size = np.diff(self.first_node)
        if self.n_trees == 1 or (size > SMALL_TREE).any():
            return False
        n_visits = len(self.column) + self._runs[0][-1]
        if n_visits > _VISITS_OF_A_STEP * self._steps[2].sum():
            return False
        left = (np.repeat(self.first_node[:-1], size) + self.child)[self.column >= 0]
        n_parents = np.bincount(np.concatenate([left, left + 1]), minlength=len(self.column))
        is_root = np.isin(np.arange(len(self.column)), self.first_node)
        return bool((n_parents == ~is_root).all())

    @cached_property
    def _runs(self) -> tuple[IndexArray, NDArray[np.uint8], NDArray[np.uint8]]:
        """The bins that go left at each node, as runs: first run, lowest bins, lengths - 1."""
        first_run = np.zeros(len(self.column) + 1, np.int64)
        count_runs(self.column, self.goes_left, first_run)
        low, length = np.empty((2, int(first_run[-1])), np.uint8)
        write_runs(self.goes_left, first_run, low, length)
        return first_run, low, length

    @cached_property
    def _steps(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], IndexArray]:
        """How a row walks through the trees: steps, which bins go right, and depths.

        The step of a node holds the column to look at and, from the 32nd bit on, the left child.
        Bins that go left add 0 to the child, bins that go right add 1. A leaf steps to itself,
        which is faster than checking whether a row has arrived.
        """
        step = np.empty(len(self.column), np.uint64)
        goes_right = ~self.goes_left
        depth = np.zeros(self.n_trees, np.int64)
        write_steps(self.first_node, self.column, self.child, step, goes_right, depth)
        return step, goes_right.reshape(-1), depth

    def gains(self, n_columns: int) -> FloatArray:
        """Return the total gain of the splits of each column, (columns,)."""
        is_split = self.column >= 0
        gains: FloatArray = np.zeros(n_columns)
        np.add.at(gains, self.column[is_split], self.gain[is_split].astype(np.float64))
        return gains

    def to_bytes(self) -> bytes:
        """Return the arrays one after the other, after a line of JSON with their shapes."""
        arrays = {name: getattr(self, name).astype(kind) for name, kind in _DTYPES.items()}
        header = json.dumps({name: array.shape for name, array in arrays.items()})
        return b"".join([header.encode(), b"\n", *(array.tobytes() for array in arrays.values())])

    @classmethod
    def from_bytes(cls, content: bytes, n_columns: int, n_classes: int) -> Forest:
        """Return the forest that :meth:`to_bytes` wrote, if every index in it is in range."""
        forest = cls(**_arrays(content))
        _check_shapes(forest, n_classes)
        _check_indices(forest, n_columns)
        return forest


class TreeArrays(NamedTuple):
    """Arrays to which compiled code writes trees: see :class:`Forest`, and ``Forest._steps``.

    Attributes
    ----------
    first_node, first_leaf
        The first node and the first leaf of each tree, and the end of the last tree.
    """

    first_node: IndexArray
    first_leaf: IndexArray
    column: NDArray[np.int32]
    child: NDArray[np.int32]
    goes_left: NDArray[np.uint64]
    gain: NDArray[np.float32]
    values: NDArray[np.float32]
    step: NDArray[np.uint64]
    goes_right: NDArray[np.uint64]
    depth: IndexArray


class GrowingForest:
    """Trees that are added one after the other, in arrays with room for more trees."""

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        self._first_node, self._first_leaf = [0], [0]
        self._column, self._child = np.empty((2, 0), np.int32)
        self._goes_left, self._gain = np.empty((0, 4), np.uint64), np.empty(0, np.float32)
        self._values = np.empty((0, n_classes), np.float32)
        # The steps of the last tree: see Forest._steps.
        self._step, self._depth = np.empty(0, np.uint64), np.zeros(1, np.int64)
        self._goes_right = np.empty((0, 4), np.uint64)

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self._first_node) - 1

    def add(self, nodes: Nodes, columns: IndexArray, gain_exponent: int = 0) -> NDArray[np.float32]:
        """Add a tree that was grown on some columns; return where to write its leaves' values.

        Its gains are multiplied by two to the power of ``gain_exponent``. It returns the values of
        its leaves in the order of the nodes, (leaves, classes).
        """
        n_nodes, node, leaf = len(nodes.left), self._first_node[-1], self._first_leaf[-1]
        last_leaf = leaf + (n_nodes + 1) // 2
        self._make_room(node + n_nodes, last_leaf)
        write_tree(
            nodes.left, nodes.column, nodes.gain, nodes.goes_left, columns, gain_exponent, node,
            leaf, self._column, self._child, self._goes_left, self._gain, self._step,
            self._goes_right, self._depth,
        )  # fmt: skip
        self._first_node.append(node + n_nodes)
        self._first_leaf.append(last_leaf)
        return self._values[leaf:last_leaf]

    def _make_room(self, n_nodes: int, n_leaves: int) -> None:
        if n_nodes > len(self._column):
            for name in ("_column", "_child", "_goes_left", "_gain", "_step", "_goes_right"):
                setattr(self, name, _longer(getattr(self, name), 2 * n_nodes))
        if n_leaves > len(self._values):
            self._values = _longer(self._values, 2 * n_leaves)

    def add_last_to(
        self, margins: NDArray[np.float32], bins: BinTable, n_threads: int = 1,
        some: IndexArray | None = None,
    ) -> None:  # fmt: skip
        """Add the values of the last tree to the logits of all rows, or some, (n, classes)."""
        arguments = (
            self._step, self._goes_right.reshape(-1), self._depth,
            self._child[self._first_node[-2] :], self._values.reshape(-1), bins.reshape(-1),
            bins.shape[1], margins.shape[1], margins.reshape(-1),
        )  # fmt: skip
        if some is None:
            in_parts(add_trees, len(bins), n_threads, ONE_ROOT, *arguments, least=_LEAST_ROWS)
        else:
            in_parts(add_tree_to_some, len(some), n_threads, some, *arguments, least=_LEAST_ROWS)

    def room_for(self, n_trees: int, most_nodes: int) -> TreeArrays:
        """Return arrays with room for more trees, each of at most ``most_nodes`` nodes."""
        node, leaf = self._first_node[-1], self._first_leaf[-1]
        self._make_room(node + n_trees * most_nodes, leaf + n_trees * (most_nodes + 1) // 2)
        return TreeArrays(
            np.full(n_trees + 1, node), np.full(n_trees + 1, leaf), self._column, self._child,
            self._goes_left, self._gain, self._values, self._step, self._goes_right, self._depth,
        )  # fmt: skip

    def take(self, trees: TreeArrays, n_trees: int) -> None:
        """Take over the first trees that were written to the arrays of :meth:`room_for`."""
        self._first_node += trees.first_node[1 : n_trees + 1].tolist()
        self._first_leaf += trees.first_leaf[1 : n_trees + 1].tolist()

    def first(self, n_trees: int) -> Forest:
        """Return the first trees."""
        n_nodes, n_leaves = self._first_node[n_trees], self._first_leaf[n_trees]
        return Forest(
            np.array(self._first_node[: n_trees + 1]),
            self._column[:n_nodes].copy(),
            self._child[:n_nodes].copy(),
            self._goes_left[:n_nodes].copy(),
            self._gain[:n_nodes].copy(),
            self._values[:n_leaves].copy(),
        )


def _longer(array: NDArray[Any], n: int) -> NDArray[Any]:
    longer = np.empty((n, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    try:
        shapes, rest = json_line(content, _LONGEST_HEADER)
        sizes = {name: [int(length) for length in shapes[name]] for name in _DTYPES}
    except (ValueError, TypeError, KeyError, OverflowError):
        raise damaged("its header is no JSON object of shapes") from None
    arrays, at = {}, 0
    for name, kind in _DTYPES.items():
        shape, most = sizes[name], len(rest) - at
        n_axes = 2 if name in _TABLES else 1
        if len(shape) != n_axes or not all(0 <= length <= most for length in shape):
            raise damaged(f"the array {name!r} has the shape {shape}")
        n_bytes = np.dtype(kind).itemsize * math.prod(shape)
        if n_bytes > most:
            raise damaged(f"the array {name!r} is longer than the file")
        arrays[name] = np.frombuffer(rest[at : at + n_bytes], dtype=kind).reshape(shape)
        at += n_bytes
    if at != len(rest):
        raise damaged(f"it has {len(rest) - at} bytes too many")
    return arrays


def _check_shapes(forest: Forest, n_classes: int) -> None:
    n_nodes = len(forest.column)
    shapes_fit = (
        len(forest.first_node) >= 2
        and len(forest.child) == len(forest.gain) == n_nodes
        and forest.goes_left.shape == (n_nodes, 4)
        and forest.values.shape[1] == n_classes
    )
    if not shapes_fit:
        raise damaged("the shapes of its arrays do not belong together")


def _check_indices(forest: Forest, n_columns: int) -> None:
    """Refuse a tree in which a walk could leave the arrays or never end.

    Children come after their parents, so every walk ends.
    """
    first, n_nodes = forest.first_node, len(forest.column)
    # Compared, not subtracted, because differences could overflow.
    if first[0] != 0 or first[-1] != n_nodes or (first[1:] <= first[:-1]).any():
        raise damaged("the order of its trees is wrong")
    if ((forest.column < -1) | (forest.column >= n_columns)).any():
        raise damaged(f"it splits by a column that is not one of the {n_columns}")
    is_leaf = forest.column < 0
    lines = forest.child[is_leaf]
    if ((lines < 0) | (lines >= len(forest.values))).any():
        raise damaged("a leaf has no values")
    size, root = np.diff(first), np.repeat(first[:-1], np.diff(first))
    place = np.arange(n_nodes) - root  # within the tree
    is_after = (forest.child > place) & (forest.child < np.repeat(size, size) - 1)
    if not is_after[~is_leaf].all():
        raise damaged("a node's children do not come after it in its tree")
    if not (np.isfinite(forest.values).all() and np.isfinite(forest.gain).all()):
        raise damaged("a number in it is not finite")


def check_children(splits: IndexArray, left: IndexArray, right: IndexArray, n_nodes: int) -> None:
    """Refuse a tree of another library if its nodes do not form a tree, or if it is too deep.

    Parameters
    ----------
    splits
        The nodes that have children, (splits,): with the root, 0, if there is another node.
    left, right
        Their children, (splits,).
    n_nodes
        How many nodes there are.
    """
    children = np.concatenate([left, right])
    are_behind = bool((left > splits).all() and (right > splits).all())
    is_each_once = n_nodes > 0 and np.array_equal(np.sort(children), np.arange(1, n_nodes))
    if not (are_behind and is_each_once):
        raise damaged("its nodes do not form a tree")
    child_of = np.zeros((2, n_nodes), np.int64)
    child_of[:, splits] = left, right
    at = np.zeros(1, np.int64)
    for _ in range(DEEPEST_TREE + 1):
        at = child_of[:, at].ravel()
        at = at[at > 0]
        if not at.size:
            return
    raise damaged(f"a tree is deeper than {DEEPEST_TREE}")


def damaged(why: str) -> StructentError:
    """Return the error for a file whose trees were changed after they were saved."""
    return StructentError(f"the trees in the file are damaged: {why}; save the model again")


@kernel
def write_tree(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    left: Any, column_of: Any, gain_of: Any, bins_left: Any, columns: Any, gain_exponent: int,
    first_node: int, first_leaf: int, column: Any, child: Any, goes_left: Any, gain: Any,
    step: Any, goes_right: Any, depth: Any,
) -> None:  # fmt: skip
    """Append the nodes of a tree, from ``first_node`` on, and write its steps."""
    leaf, last_node = first_leaf, first_node + left.size
    for node in range(left.size):
        at, is_leaf = first_node + node, left[node] == 0
        for word in range(4):
            # The split that was searched for a leaf is not part of the tree, and may be unset.
            goes_left[at, word] = _U(0) if is_leaf else _bits(bins_left, node, 64 * word)
            goes_right[node, word] = ~goes_left[at, word]
        if is_leaf:
            column[at], child[at], gain[at] = -1, leaf, 0
            leaf += 1
            continue
        column[at], child[at] = columns[column_of[node]], left[node]
        gain[at] = min(math.ldexp(float(gain_of[node]), gain_exponent), _LARGEST)
    depth[0] = 0
    _write_some_steps(
        np.array([0, left.size]), column[first_node:last_node], child[first_node:last_node], step,
        goes_right, depth,
    )  # fmt: skip


@inlined
def _bits(flags: Any, line: int, first: int) -> Any:
    """Return 64 flags as the bits of a number."""
    bits = _U(0)
    for place in range(64):
        bits |= _U(flags[line, first + place]) << _U(place)
    return bits


_write_some_steps = within(write_steps)
