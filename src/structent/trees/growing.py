"""One tree, grown level by level or best split first, from the statistics of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._threads import in_parts
from structent._typing import IndexArray
from structent.trees.bins import BinTable
from structent.trees.histogram import fill_histograms
from structent.trees.splits import search_splits
from structent.trees.vectors import LANES, PAIR

RowArray: TypeAlias = NDArray[np.int32]
Statistics: TypeAlias = NDArray[np.float32]

_WORTH_A_THREAD = 100_000  # additions: fewer are done sooner than a second thread is woken
_MOST = 1e37  # of what float32 holds, with room for a sum
_MOST_MEMORY = 2**29  # bytes of all histograms; beyond it no parent's histogram is kept


@dataclass(frozen=True)
class Limits:
    """Where a tree ends.

    Attributes
    ----------
    max_depth, max_leaves
        The most splits above a leaf, and the most leaves. Without ``max_leaves`` all nodes of a
        level are split that can be; with it the node that gains most is split next.
    min_child_weight
        The least curvature of the rows of a leaf, summed over the rows, mean over the classes.
    reg_lambda
        What is added to every sum of curvatures: the L2 penalty on the values of leaves.
    """

    max_depth: int
    max_leaves: int | None = None
    min_child_weight: float = 0.0
    reg_lambda: float = 1.0

    def scaled(self, exponent: int) -> Limits:
        """Return the limits for rows whose weights are multiplied by two to an exponent."""
        with np.errstate(over="ignore"):
            weight, lam = np.ldexp([self.min_child_weight, self.reg_lambda], exponent).tolist()
        return replace(self, min_child_weight=min(weight, _MOST), reg_lambda=min(lam, _MOST))


@dataclass(frozen=True, eq=False)
class BinnedTable:
    """The bins of all rows, and what the search for splits has to know of the columns.

    Attributes
    ----------
    bins
        The bin of each value, (n, columns).
    first_cell
        The first cell of each column in a histogram, and the number of all cells: a column has a
        cell for each bin, and a last one for missing values.
    is_categorical, has_missing
        Whether a column holds categories, and whether it has missing values, (columns,).
    """

    bins: BinTable
    first_cell: IndexArray
    is_categorical: NDArray[np.bool_]
    has_missing: NDArray[np.bool_]

    @classmethod
    def of(
        cls, bins: BinTable, n_bins: IndexArray, is_categorical: NDArray[np.bool_]
    ) -> BinnedTable:
        """Return the table of bins, given the number of each column's bins."""
        first_cell = np.concatenate([[0], np.cumsum(n_bins + 1)])
        return cls(bins, first_cell, is_categorical, (bins == n_bins).any(axis=0))

    def take(self, columns: IndexArray) -> BinnedTable:
        """Return the table of some of the columns."""
        n_bins = np.diff(self.first_cell)[columns]
        return BinnedTable(
            np.ascontiguousarray(self.bins[:, columns]),
            np.concatenate([[0], np.cumsum(n_bins)]),
            self.is_categorical[columns],
            self.has_missing[columns],
        )


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a tree; the children of a node are beside each other.

    Attributes
    ----------
    begin, end
        The rows of each node are ``rows[begin:end]``, (nodes,).
    left
        The left child of each node, 0 where it is a leaf, (nodes,); the right one is the next.
    column, gain
        The column that each node is best split by, and what that gains, (nodes,).
    goes_left
        Which bins of the column go left, (nodes, 256).
    depth, slot
        How many splits are above each node, and where its histogram is, (nodes,).
    """

    begin: IndexArray
    end: IndexArray
    left: IndexArray
    column: IndexArray
    gain: NDArray[np.float32]
    goes_left: NDArray[np.bool_]
    depth: IndexArray
    slot: IndexArray

    @classmethod
    def room_for(cls, n: int) -> Nodes:
        """Return room for so many nodes, all without rows."""
        begin, end, left, column, depth, slot = np.zeros((6, n), np.int64)
        return cls(
            begin, end, left, column, np.zeros(n, np.float32), np.zeros((n, 256), np.bool_), depth,
            slot,
        )  # fmt: skip

    def first(self, n: int) -> Nodes:
        """Return the first n nodes."""
        return Nodes(*(getattr(self, name)[:n] for name in self.__dataclass_fields__))


class Room:
    """Memory that trees of one size use one after the other."""

    def __init__(self) -> None:
        self._histograms: Statistics = np.empty(0, np.float32)
        self._spare: RowArray = np.empty(0, np.int32)

    def histograms(self, size: int) -> Statistics:
        """Return memory for so many numbers."""
        if self._histograms.size < size:
            self._histograms = np.empty(size, np.float32)
        return self._histograms

    def spare(self, n_rows: int) -> RowArray:
        """Return memory for the numbers of so many rows."""
        if self._spare.size < n_rows:
            self._spare = np.empty(n_rows, np.int32)
        return self._spare


def grow_tree(
    table: BinnedTable,
    statistics: Statistics,
    rows: RowArray,
    limits: Limits,
    room: Room,
    n_classes: int,
    n_threads: int = 1,
    *,
    is_signed: bool = False,
) -> Nodes:
    """Return the nodes of a tree; rows are put in the order of its leaves.

    Parameters
    ----------
    table
        The bins of all rows.
    statistics
        The statistics of all rows, (chunks, n, lanes): see :mod:`structent.trees.splits`.
    rows
        The rows to grow the tree on, ascending. They are put into another order.
    limits
        Where the tree ends.
    room
        Memory to use.
    n_classes
        How many classes the statistics are about.
    n_threads
        How many threads to use; the tree does not depend on it.
    is_signed
        Whether the statistics are gradients only, with their magnitudes for curvatures.
    """
    most = min(2 ** min(limits.max_depth, 24), len(rows), limits.max_leaves or len(rows))
    growth = _Growth(
        table, statistics, rows, limits, room, n_threads, max(most, 1), n_classes,
        is_signed=is_signed,
    )  # fmt: skip
    growth.begin()
    while True:
        chosen = growth.best_next() if limits.max_leaves else growth.level_next()
        if not len(chosen):
            return growth.nodes.first(growth.n_nodes)
        growth.split(chosen)


class _Growth:
    """A tree that is being grown."""

    def __init__(  # noqa: PLR0913  what grow_tree is given
        self, table: BinnedTable, statistics: Statistics, rows: RowArray, limits: Limits,
        room: Room, n_threads: int, most_leaves: int, n_classes: int, *, is_signed: bool,
    ) -> None:  # fmt: skip
        self.table, self.statistics, self.rows = table, statistics, rows
        self.limits, self.n_threads, self.most_leaves = limits, n_threads, most_leaves
        self.nodes, self.n_nodes = Nodes.room_for(2 * most_leaves - 1), 1
        n_chunks, _, n_row_lanes = statistics.shape
        self.n_lanes = 2 * LANES if is_signed else n_row_lanes
        size = int(n_chunks * table.first_cell[-1] * self.n_lanes)
        # Every split whose children are searched takes one more.
        n_slots = most_leaves
        if limits.max_leaves is None:
            n_slots = min(n_slots, 2 ** max(limits.max_depth - 1, 0))
        self.keeps_parents = n_slots * size * 4 <= _MOST_MEMORY
        self.n_slots = n_slots if self.keeps_parents else max(1, _MOST_MEMORY // (4 * size))
        self.histograms = room.histograms(self.n_slots * size)
        self.spare = room.spare(len(rows))
        self.fresh = np.zeros(0, np.int64)
        n_columns = table.bins.shape[1]
        self.gains = np.zeros((self.n_slots, n_columns), np.float32)
        self.borders = np.zeros((self.n_slots, n_columns), np.int64)
        self.goes_left = np.zeros((self.n_slots, int(table.first_cell[-1])), np.bool_)
        self.n_used = 1
        self.share = 1.0 if self.n_lanes == PAIR else 1.0 / n_classes

    def begin(self) -> None:
        """Search the split of the root."""
        self.nodes.end[0] = len(self.rows)
        if self.most_leaves > 1:
            self._search(np.array([[0, len(self.rows), 0, -1]]), np.array([0]))

    def level_next(self) -> IndexArray:
        """Return the nodes of the last level that gain from a split."""
        return self.fresh[self.nodes.gain[self.fresh] > 0]

    def best_next(self) -> IndexArray:
        """Return the leaf that gains most from a split, as long as there may be more leaves."""
        if (self.n_nodes + 1) // 2 >= self.most_leaves:
            return self.fresh[:0]
        gains = np.where(self.nodes.left == 0, self.nodes.gain, 0)[: self.n_nodes]
        best = int(gains.argmax())
        return np.array([best] if gains[best] > 0 else [], dtype=np.int64)

    def split(self, chosen: IndexArray) -> None:
        """Split the nodes, and search the splits of their children."""
        nodes, limits = self.nodes, self.limits
        left_ends = np.empty(len(chosen), np.int64)
        in_parts(
            _partition_rows, len(chosen), self._threads_for(len(self.rows) * 8), chosen,
            nodes.begin, nodes.end, nodes.column, nodes.goes_left, self.table.bins,
            np.diff(self.table.first_cell) - 1, self.table.is_categorical, self.rows, self.spare,
            left_ends,
        )  # fmt: skip
        work, fresh = np.empty((2 * len(chosen), 4), np.int64), np.empty(2 * len(chosen), np.int64)
        self.n_nodes, self.n_used, n_work, n_fresh = _open_children(
            chosen, left_ends, nodes.begin, nodes.end, nodes.left, nodes.gain, nodes.depth,
            nodes.slot, self.n_nodes, self.n_used, limits.max_depth, self.keeps_parents, work,
            fresh,
        )  # fmt: skip
        self._search(work[:n_work], fresh[:n_fresh])

    def _search(self, work: IndexArray, fresh: IndexArray) -> None:
        """Fill the histograms that are new, and search the best split of the fresh nodes."""
        self.fresh = fresh
        if self.keeps_parents:
            self._search_some(work, fresh)
            return
        for at in range(0, len(work), self.n_slots):
            some = work[at : at + self.n_slots]
            some[:, 2] = np.arange(len(some))
            self.nodes.slot[fresh[at : at + self.n_slots]] = some[:, 2]
            self._search_some(some, fresh[at : at + self.n_slots])

    def _search_some(self, work: IndexArray, fresh: IndexArray) -> None:
        if not len(fresh):
            return
        table, nodes, limits = self.table, self.nodes, self.limits
        n_chunks, n_rows, n_row_lanes = self.statistics.shape
        n_columns = table.bins.shape[1]
        n_counted = int((work[:, 1] - work[:, 0]).sum())
        in_parts(
            fill_histograms, n_columns, self._threads_for(n_counted * n_columns * n_chunks), work,
            self.rows, table.bins.reshape(-1), n_columns, self.statistics.reshape(-1), n_rows,
            n_row_lanes, self.n_lanes, table.first_cell, self.histograms,
        )  # fmt: skip
        slots = nodes.slot[fresh]
        in_parts(
            search_splits, n_columns,
            self._threads_for(len(fresh) * int(table.first_cell[-1]) * n_chunks), slots,
            self.histograms, n_chunks, self.n_lanes, self.share, table.first_cell,
            table.is_categorical, table.has_missing, limits.reg_lambda, limits.min_child_weight,
            self.gains, self.borders, self.goes_left,
        )  # fmt: skip
        _choose_columns(
            fresh, self.gains, self.borders, self.goes_left, table.first_cell,
            table.is_categorical, nodes.gain, nodes.column, nodes.goes_left,
        )  # fmt: skip

    def _threads_for(self, n_additions: int) -> int:
        return max(1, min(self.n_threads, n_additions // _WORTH_A_THREAD))


@kernel
def _choose_columns(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    fresh: Any, gains: Any, borders: Any, goes_left: Any, first_cell: Any, is_categorical: Any,
    gain: Any, column: Any, bins_left: Any,
) -> None:  # fmt: skip
    """Write the best split of each node: of equal ones the first column, the first border."""
    for place in range(fresh.size):
        node, best = fresh[place], 0
        for j in range(1, gains.shape[1]):
            if gains[place, j] > gains[place, best]:
                best = j
        gain[node], column[node] = gains[place, best], best
        cell, n_bins = first_cell[best], first_cell[best + 1] - first_cell[best] - 1
        for b in range(n_bins):
            is_left = b <= borders[place, best]
            bins_left[node, b] = goes_left[place, cell + b] if is_categorical[best] else is_left
        bins_left[node, n_bins] = goes_left[place, cell + n_bins]


@kernel
def _partition_rows(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, chosen: Any, begin: Any, end: Any, column: Any, goes_left: Any,
    bins: Any, n_bins: Any, is_categorical: Any, rows: Any, spare: Any, left_ends: Any,
) -> None:  # fmt: skip
    """Put the rows that go left before the others, for the nodes ``chosen[first:last]``.

    Where no row of a node has a missing value, missing values go with the larger part; categories
    that no row has go where missing values go.
    """
    has_rows = np.empty(256, np.bool_)
    for place in range(first, last):
        node = chosen[place]
        j, start, stop = column[node], begin[node], end[node]
        left, right = start, start
        has_rows[:] = False
        for r in range(start, stop):
            row = rows[r]
            b = bins[row, j]
            has_rows[b] = True
            is_left = goes_left[node, b]
            rows[left], spare[right] = row, row  # one of the two is written over
            left += is_left
            right += not is_left
        for r in range(right - start):
            rows[left + r] = spare[start + r]
        left_ends[place] = left
        missing = n_bins[j]
        if not has_rows[missing]:
            goes_left[node, missing] = left - start > stop - left
        for b in range(missing if is_categorical[j] else 0):
            if not has_rows[b]:
                goes_left[node, b] = goes_left[node, missing]


@kernel
def _open_children(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    chosen: Any, left_ends: Any, begin: Any, end: Any, left: Any, gain: Any, depth: Any,
    slot: Any, n_nodes: int, n_used: int, max_depth: int, keeps_parents: bool, work: Any,
    fresh: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Write the children of the nodes that are split, and which histograms they need.

    Returns how many nodes and histograms there are, how many are to be counted, and how many nodes
    are to be searched.
    """
    n_work, n_fresh = 0, 0
    for place in range(chosen.size):
        node, child = chosen[place], n_nodes
        # In bins without rows, rounding may leave a gain where there is none.
        if left_ends[place] == begin[node] or left_ends[place] == end[node]:
            gain[node] = 0
            continue
        left[node] = child
        n_nodes += 2
        begin[child], end[child] = begin[node], left_ends[place]
        begin[child + 1], end[child + 1] = left_ends[place], end[node]
        depth[child] = depth[child + 1] = depth[node] + 1
        if depth[child] >= max_depth:
            continue
        for side in range(2):
            fresh[n_fresh + side] = child + side
        n_fresh += 2
        if keeps_parents:
            smaller = (
                child
                if end[child] - begin[child] <= end[child + 1] - begin[child + 1]
                else child + 1
            )
            slot[smaller], slot[2 * child + 1 - smaller] = n_used, slot[node]
            work[n_work, 0], work[n_work, 1] = begin[smaller], end[smaller]
            work[n_work, 2], work[n_work, 3] = n_used, slot[node]
            n_work, n_used = n_work + 1, n_used + 1
        else:
            for side in range(2):
                work[n_work, 0], work[n_work, 1] = begin[child + side], end[child + side]
                work[n_work, 2], work[n_work, 3] = 0, -1
                n_work += 1
    return n_nodes, n_used, n_work, n_fresh
