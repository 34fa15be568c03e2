"""One tree, grown level by level or best split first, from the statistics of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, within
from structent._threads import in_parts
from structent._typing import IndexArray
from structent.trees.bins import BinTable
from structent.trees.histogram import fill_histograms
from structent.trees.splits import search_splits
from structent.trees.vectors import LANES, PAIR

# Numba's cache does not see edits there
DIGEST_OF_HISTOGRAM = "5aefa493d1fa0486"
DIGEST_OF_SPLITS = "86f400b177dd25f9"

RowArray: TypeAlias = NDArray[np.int32]
Statistics: TypeAlias = NDArray[np.float32]

_WORTH_A_THREAD = 100_000  # additions; fewer take less time than waking a second thread
_MOST = 1e37  # close to the largest float32, with room for a sum
_MOST_MEMORY = 2**29  # bytes of all histograms; beyond it no parent's histogram is kept

# The steps of growing a tree; the second to the fourth can be shared by threads.
_BEGIN, _PARTITION, _FILL, _SEARCH, _END = range(5)
# Places in the counts of ``_Plan``
N_NODES, _N_SLOTS, _N_CHOSEN, _N_WORK, _N_FRESH = range(5)  # counts
_FIRST_WORK, _LAST_WORK, _FIRST_FRESH, _LAST_FRESH = range(5, 9)  # the range in progress


@dataclass(frozen=True)
class Limits:
    """Where a tree ends.

    Attributes
    ----------
    max_depth, max_leaves
        The most splits above a leaf, and the most leaves. Without ``max_leaves`` every node of a
        level is split if possible; with it, the node with the largest gain is split next.
    min_child_weight
        The least curvature of a leaf: summed over its rows, averaged over the classes.
    reg_lambda
        The L2 penalty on leaf values: it is added to every sum of curvatures.
    """

    max_depth: int
    max_leaves: int | None = None
    min_child_weight: float = 0.0
    reg_lambda: float = 1.0

    def scaled(self, exponent: int) -> Limits:
        """Return the limits for rows whose weights are multiplied by two to this exponent."""
        with np.errstate(over="ignore"):
            weight, lam = np.ldexp([self.min_child_weight, self.reg_lambda], exponent).tolist()
        return replace(self, min_child_weight=min(weight, _MOST), reg_lambda=min(lam, _MOST))


@dataclass(frozen=True, eq=False)
class BinnedTable:
    """The bins of all rows, and what the search for splits needs to know about the columns.

    Attributes
    ----------
    bins
        The bin of each value, (n, columns).
    first_cell
        The first cell of each column in a histogram, then the number of all cells. A column has
        one cell per bin, and a last one for missing values.
    is_categorical, has_missing
        Whether a column holds categories, and whether it has missing values, (columns,).
    """

    bins: BinTable
    first_cell: IndexArray
    is_categorical: NDArray[np.bool_]
    has_missing: NDArray[np.bool_]

    @cached_property
    def n_bins(self) -> IndexArray:
        """The number of bins of each column, without the one for missing values, (columns,)."""
        return np.diff(self.first_cell) - 1

    @classmethod
    def of(
        cls, bins: BinTable, n_bins: IndexArray, is_categorical: NDArray[np.bool_]
    ) -> BinnedTable:
        """Return the table of bins, given the number of each column's bins."""
        first_cell = np.concatenate([[0], np.cumsum(n_bins + 1)])
        return cls(bins, first_cell, is_categorical, (bins == n_bins).any(axis=0))

    def take(self, columns: IndexArray) -> BinnedTable:
        """Return the table of some of the columns."""
        return BinnedTable(
            np.ascontiguousarray(self.bins[:, columns]),
            np.concatenate([[0], np.cumsum(self.n_bins[columns] + 1)]),
            self.is_categorical[columns],
            self.has_missing[columns],
        )


class Nodes(NamedTuple):
    """The nodes of a tree; the two children of a node are next to each other.

    Attributes
    ----------
    begin, end
        The rows of each node are ``rows[begin:end]``, (nodes,).
    left
        The left child of each node, 0 for a leaf, (nodes,); the right child comes next.
    column, gain
        The best column to split each node by, and its gain, (nodes,).
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
        """Return room for ``n`` nodes."""
        begin, end, left, column, depth, slot = np.empty((6, n), np.int64)
        gain, goes_left = np.empty(n, np.float32), np.empty((n, 256), np.bool_)
        return cls(begin, end, left, column, gain, goes_left, depth, slot)

    def first(self, n: int) -> Nodes:
        """Return the first n nodes."""
        arrays: Any = (array[:n] for array in self)
        return Nodes(*arrays)


class _Plan(NamedTuple):
    """The work to do next.

    Attributes
    ----------
    counts
        The number of nodes and other counts: see ``N_NODES`` to ``_LAST_FRESH``.
    chosen, left_ends
        The nodes that are split, and where the rows of their left children end.
    work
        Which histograms to fill, (nodes, 4): see :func:`fill_histograms`.
    fresh, slots
        The nodes whose best split is searched, and where their histograms are.
    """

    counts: IndexArray
    chosen: IndexArray
    left_ends: IndexArray
    work: IndexArray
    fresh: IndexArray
    slots: IndexArray


class _Found(NamedTuple):
    """The best split of the fresh nodes in each column: see :func:`search_splits`."""

    gains: NDArray[np.float32]
    borders: IndexArray
    goes_left: NDArray[np.bool_]


class Room:
    """Memory that is reused for every tree: the next tree overwrites the nodes of the last."""

    def __init__(self) -> None:
        self._histograms: Statistics = np.empty(0, np.float32)
        self._spare: RowArray = np.empty(0, np.int32)
        self._lists: dict[tuple[int, ...], tuple[Nodes, _Plan, _Found]] = {}

    def histograms(self, size: int) -> Statistics:
        """Return memory for ``size`` numbers."""
        if self._histograms.size < size:
            self._histograms = np.empty(size, np.float32)
        return self._histograms

    def spare(self, n_rows: int) -> RowArray:
        """Return memory for the numbers of ``n_rows`` rows."""
        if self._spare.size < n_rows:
            self._spare = np.empty(n_rows, np.int32)
        return self._spare

    def lists(
        self, n_leaves: int, n_slots: int, n_columns: int, n_cells: int
    ) -> tuple[Nodes, _Plan, _Found]:
        """Return memory for a tree with these numbers of leaves and of nodes searched at once."""
        key = (n_leaves, n_slots, n_columns, n_cells)
        if key not in self._lists:
            chosen, left_ends, fresh = np.empty((3, 2 * n_leaves), np.int64)
            counts, slots = np.empty(_LAST_FRESH + 1, np.int64), np.empty(n_slots, np.int64)
            work = np.empty((2 * n_leaves, 4), np.int64)
            gains = np.empty((n_slots, n_columns), np.float32)
            borders = np.empty((n_slots, n_columns), np.int64)
            goes_left = np.empty((n_slots, n_cells), np.bool_)
            self._lists = {  # only the size of the last tree is kept
                key: (
                    Nodes.room_for(2 * n_leaves - 1),
                    _Plan(counts, chosen, left_ends, work, fresh, slots),
                    _Found(gains, borders, goes_left),
                )
            }
        return self._lists[key]


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
    """Return the nodes of a tree; ``rows`` are reordered by leaf.

    Parameters
    ----------
    table
        The bins of all rows.
    statistics
        The statistics of all rows, (chunks, n, lanes): see :mod:`structent.trees.splits`.
    rows
        The rows to grow the tree on, ascending. They are reordered in place.
    limits
        Where the tree ends.
    room
        Memory to use, also for the nodes: the next tree overwrites them.
    n_classes
        How many classes the statistics are about.
    n_threads
        How many threads to use; the tree does not depend on it.
    is_signed
        Whether the statistics are gradients only, whose magnitudes are the curvatures.
    """
    growth, nodes, plan, found, ends = prepared(
        table, statistics, rows, limits, room, n_classes, is_signed=is_signed
    )
    n_added = len(rows) * table.bins.shape[1] * len(statistics)
    if n_threads > 1 and n_added >= 2 * _WORTH_A_THREAD:
        _grow_in_threads(n_threads, growth, nodes, plan, found, ends)
    else:
        grow(growth, nodes, plan, found, *ends)
    return nodes.first(int(plan.counts[N_NODES]))


class Prepared(NamedTuple):
    """The inputs of growing a tree, the memory for it, and where it ends."""

    growth: Growth
    nodes: Nodes
    plan: _Plan
    found: _Found
    ends: tuple[int, int, bool, bool]


def prepared(
    table: BinnedTable, statistics: Statistics, rows: RowArray, limits: Limits, room: Room,
    n_classes: int, *, is_signed: bool,
) -> Prepared:  # fmt: skip
    """Return the arguments of :func:`grow`: see :func:`grow_tree`."""
    n_chunks, _, n_row_lanes = statistics.shape
    n_lanes = 2 * LANES if is_signed else n_row_lanes
    n_columns, n_cells = table.bins.shape[1], int(table.first_cell[-1])
    most_leaves, n_slots, keeps_parents = _sizes(
        limits, len(rows), 4 * n_chunks * n_cells * n_lanes
    )
    nodes, plan, found = room.lists(most_leaves, n_slots, n_columns, n_cells)
    histograms = room.histograms(n_slots * n_chunks * n_cells * n_lanes)
    share = 1.0 if n_lanes == PAIR else 1.0 / n_classes
    growth = Growth(
        rows, room.spare(len(rows)), table.bins, table.first_cell, table.n_bins,
        table.is_categorical, table.has_missing, statistics, n_lanes, share, limits.reg_lambda,
        limits.min_child_weight, histograms,
    )  # fmt: skip
    ends = (limits.max_depth, most_leaves, limits.max_leaves is not None, keeps_parents)
    return Prepared(growth, nodes, plan, found, ends)


def _sizes(limits: Limits, n_rows: int, n_bytes: int) -> tuple[int, int, bool]:
    """Return the most leaves, the most histograms, and whether parents' histograms are kept.

    A histogram has ``n_bytes`` bytes.
    """
    most_leaves = max(min(2 ** min(limits.max_depth, 24), n_rows, limits.max_leaves or n_rows), 1)
    # Every split needs one more histogram if its children are searched.
    n_slots = most_leaves
    if limits.max_leaves is None:
        n_slots = min(n_slots, 2 ** max(limits.max_depth - 1, 0))
    if n_slots * n_bytes <= _MOST_MEMORY:
        return most_leaves, n_slots, True
    return most_leaves, max(1, _MOST_MEMORY // n_bytes), False


class Growth(NamedTuple):
    """The inputs of growing a tree, see :func:`grow_tree`, and its histograms."""

    rows: RowArray
    spare: RowArray
    bins: BinTable
    first_cell: IndexArray
    n_bins: IndexArray
    is_categorical: NDArray[np.bool_]
    has_missing: NDArray[np.bool_]
    statistics: Statistics
    n_lanes: int
    share: float
    reg_lambda: float
    min_child_weight: float
    histograms: Statistics


@kernel
def grow(
    growth: Any, nodes: Any, plan: Any, found: Any, max_depth: int, most_leaves: int,
    is_best_first: bool, keeps_parents: bool,
) -> None:  # fmt: skip
    """Grow a tree in one thread, without calls from Python, which are slow if rows are few."""
    counts, n_columns, step = plan.counts, growth.bins.shape[1], _BEGIN
    n_chunks, n_rows, n_row_lanes = growth.statistics.shape
    bins, statistics = growth.bins.reshape(-1), growth.statistics.reshape(-1)
    while step != _END:
        if step == _PARTITION:
            _partition_some(
                0, counts[_N_CHOSEN], plan.chosen, plan.left_ends, growth.rows, growth.spare,
                growth.bins, growth.n_bins, growth.is_categorical, nodes,
            )  # fmt: skip
        elif step == _FILL:
            _fill_some(
                0, n_columns, plan.work[counts[_FIRST_WORK] : counts[_LAST_WORK]], growth.rows,
                bins, n_columns, statistics, n_rows, n_row_lanes, growth.n_lanes,
                growth.first_cell, growth.histograms,
            )  # fmt: skip
        elif step == _SEARCH:
            _search_some(
                0, n_columns, plan.slots[: counts[_LAST_FRESH] - counts[_FIRST_FRESH]],
                growth.histograms, n_chunks, growth.n_lanes, growth.share, growth.first_cell,
                growth.is_categorical, growth.has_missing, growth.reg_lambda,
                growth.min_child_weight, found.gains, found.borders, found.goes_left,
            )  # fmt: skip
        step = _plan_some(
            step, growth.rows.size, growth.first_cell, growth.is_categorical, nodes, plan, found,
            max_depth, most_leaves, is_best_first, keeps_parents,
        )  # fmt: skip


def _grow_in_threads(
    n_threads: int, growth: Growth, nodes: Nodes, plan: _Plan, found: _Found,
    ends: tuple[int, int, bool, bool],
) -> None:  # fmt: skip
    """Grow a tree in several threads that share the work of every step."""
    (n_chunks, n_rows, n_row_lanes), counts = growth.statistics.shape, plan.counts
    n_columns, n_lanes, first_cell = growth.bins.shape[1], growth.n_lanes, growth.first_cell
    bins, statistics = growth.bins.reshape(-1), growth.statistics.reshape(-1)
    step = _BEGIN
    while step != _END:
        if step == _PARTITION:
            in_parts(
                _partition_rows, int(counts[_N_CHOSEN]), _threads(n_threads, 8 * len(growth.rows)),
                plan.chosen, plan.left_ends, growth.rows, growth.spare, growth.bins,
                growth.n_bins, growth.is_categorical, nodes,
            )  # fmt: skip
        elif step == _FILL:
            work = plan.work[counts[_FIRST_WORK] : counts[_LAST_WORK]]
            n_added = int((work[:, 1] - work[:, 0]).sum()) * n_columns * n_chunks
            in_parts(
                fill_histograms, n_columns, _threads(n_threads, n_added), work, growth.rows, bins,
                n_columns, statistics, n_rows, n_row_lanes, n_lanes, first_cell, growth.histograms,
            )  # fmt: skip
        elif step == _SEARCH:
            slots = plan.slots[: counts[_LAST_FRESH] - counts[_FIRST_FRESH]]
            n_added = len(slots) * int(first_cell[-1]) * n_chunks
            in_parts(
                search_splits, n_columns, _threads(n_threads, n_added), slots, growth.histograms,
                n_chunks, n_lanes, growth.share, first_cell, growth.is_categorical,
                growth.has_missing, growth.reg_lambda, growth.min_child_weight, *found,
            )  # fmt: skip
        step = _plan_step(
            step, len(growth.rows), first_cell, growth.is_categorical, nodes, plan, found, *ends
        )


def _threads(n_threads: int, n_additions: int) -> int:
    return max(1, min(n_threads, n_additions // _WORTH_A_THREAD))


@kernel
def _plan_step(  # noqa: PLR0913, PLR0917  plain values, which Numba knows
    done: int, n_rows: int, first_cell: Any, is_categorical: Any, nodes: Any, plan: Any,
    found: Any, max_depth: int, most_leaves: int, is_best_first: bool, keeps_parents: bool,
) -> int:  # fmt: skip
    """Return the step that follows a finished one, and write its work into the plan."""
    counts = plan.counts
    if done == _FILL:
        return _SEARCH
    if done == _BEGIN:
        _begin(n_rows, nodes, plan, most_leaves)
    elif done == _PARTITION:
        _open_children(nodes, plan, max_depth, keeps_parents)
    else:
        fresh = plan.fresh[counts[_FIRST_FRESH] : counts[_LAST_FRESH]]
        _choose_columns(fresh, first_cell, is_categorical, nodes, found)
    if counts[_LAST_FRESH] < counts[_N_FRESH]:
        _take_some(nodes, plan, keeps_parents)
        return _FILL
    if is_best_first:
        _choose_best(nodes, plan, most_leaves)
    else:
        _choose_level(nodes, plan)
    return _PARTITION if counts[_N_CHOSEN] > 0 else _END


@inlined
def _begin(n_rows: int, nodes: Any, plan: Any, most_leaves: int) -> None:
    """Write the root, and plan the search for its split."""
    counts = plan.counts
    counts[:] = 0
    _write_node(nodes, 0, 0, n_rows, 0)
    counts[N_NODES] = counts[_N_SLOTS] = 1
    if most_leaves > 1:
        counts[_N_WORK] = counts[_N_FRESH] = 1
        _write_work(plan.work, 0, 0, n_rows, 0, -1)
        plan.fresh[0] = 0


@inlined
def _write_node(nodes: Any, node: int, begin: int, end: int, depth: int) -> None:
    """Write a leaf whose split has not been searched yet."""
    nodes.begin[node], nodes.end[node], nodes.depth[node] = begin, end, depth
    nodes.left[node] = nodes.column[node] = nodes.slot[node] = 0
    nodes.gain[node] = 0
    nodes.goes_left[node, :] = False


@inlined
def _write_work(work: Any, place: int, begin: int, end: int, slot: int, parent: int) -> None:
    work[place, 0], work[place, 1], work[place, 2], work[place, 3] = begin, end, slot, parent


@inlined
def _take_some(nodes: Any, plan: Any, keeps_parents: bool) -> None:
    """Take the next fresh nodes: all, or as many as there is memory for histograms."""
    counts, fresh = plan.counts, plan.fresh
    first, last = counts[_LAST_FRESH], counts[_N_FRESH]
    counts[_LAST_WORK] = counts[_N_WORK]
    if not keeps_parents:
        last = min(last, first + plan.slots.size)
        counts[_FIRST_WORK], counts[_LAST_WORK] = first, last
        for place in range(first, last):
            plan.work[place, 2] = nodes.slot[fresh[place]] = place - first
    counts[_FIRST_FRESH], counts[_LAST_FRESH] = first, last
    for place in range(first, last):
        plan.slots[place - first] = nodes.slot[fresh[place]]


@inlined
def _choose_level(nodes: Any, plan: Any) -> None:
    """Choose the nodes of the last level that gain from a split."""
    n_chosen = 0
    for place in range(plan.counts[_N_FRESH]):
        node = plan.fresh[place]
        if nodes.gain[node] > 0:
            plan.chosen[n_chosen] = node
            n_chosen += 1
    plan.counts[_N_CHOSEN] = n_chosen


@inlined
def _choose_best(nodes: Any, plan: Any, most_leaves: int) -> None:
    """Choose the leaf that gains most from a split, unless the tree has enough leaves."""
    n_nodes, best, gain = plan.counts[N_NODES], -1, np.float32(0)
    if (n_nodes + 1) // 2 < most_leaves:
        for node in range(n_nodes):
            if nodes.left[node] == 0 and nodes.gain[node] > gain:
                best, gain = node, nodes.gain[node]
    plan.chosen[0] = best
    plan.counts[_N_CHOSEN] = 1 if best >= 0 else 0


@inlined
def _choose_columns(
    fresh: Any, first_cell: Any, is_categorical: Any, nodes: Any, found: Any
) -> None:
    """Write the best split of each node; among equal ones, the first column and border."""
    gains, borders, goes_left = found.gains, found.borders, found.goes_left
    for place in range(fresh.size):
        node, best = fresh[place], 0
        for j in range(1, gains.shape[1]):
            if gains[place, j] > gains[place, best]:
                best = j
        nodes.gain[node], nodes.column[node] = gains[place, best], best
        cell, n_bins = first_cell[best], first_cell[best + 1] - first_cell[best] - 1
        for b in range(n_bins):
            is_left = b <= borders[place, best]
            nodes.goes_left[node, b] = (
                goes_left[place, cell + b] if is_categorical[best] else is_left
            )
        nodes.goes_left[node, n_bins] = goes_left[place, cell + n_bins]


@kernel
def _partition_rows(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, chosen: Any, left_ends: Any, rows: Any, spare: Any, bins: Any,
    n_bins: Any, is_categorical: Any, nodes: Any,
) -> None:  # fmt: skip
    """Put the rows that go left before the others, for the nodes ``chosen[first:last]``.

    If no row of a node has a missing value, missing values go with the larger part. Categories that
    no row has go where missing values go.
    """
    has_rows, goes_left = np.empty(256, np.bool_), nodes.goes_left
    for place in range(first, last):
        node = chosen[place]
        j, start, stop = nodes.column[node], nodes.begin[node], nodes.end[node]
        left, right = start, start
        has_rows[:] = False
        for r in range(start, stop):
            row = rows[r]
            b = bins[row, j]
            has_rows[b] = True
            is_left = goes_left[node, b]
            rows[left], spare[right] = row, row  # one of the two is overwritten later
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


@inlined
def _open_children(nodes: Any, plan: Any, max_depth: int, keeps_parents: bool) -> None:
    """Write the children of the nodes that are split, and which histograms they need."""
    counts, work = plan.counts, plan.work
    n_nodes, n_slots, n_work, n_fresh = counts[N_NODES], counts[_N_SLOTS], 0, 0
    for place in range(counts[_N_CHOSEN]):
        node, child, middle = plan.chosen[place], n_nodes, plan.left_ends[place]
        begin, end, depth = nodes.begin[node], nodes.end[node], nodes.depth[node] + 1
        # Rounding in bins without rows may show a gain although one side has no rows.
        if middle in (begin, end):
            nodes.gain[node] = 0
            continue
        nodes.left[node] = child
        n_nodes += 2
        _write_node(nodes, child, begin, middle, depth)
        _write_node(nodes, child + 1, middle, end, depth)
        if depth >= max_depth:
            continue
        plan.fresh[n_fresh], plan.fresh[n_fresh + 1] = child, child + 1
        n_fresh += 2
        if not keeps_parents:
            _write_work(work, n_work, begin, middle, 0, -1)
            _write_work(work, n_work + 1, middle, end, 0, -1)
            n_work += 2
            continue
        smaller = child if middle - begin <= end - middle else child + 1
        nodes.slot[smaller], nodes.slot[2 * child + 1 - smaller] = n_slots, nodes.slot[node]
        _write_work(
            work, n_work, nodes.begin[smaller], nodes.end[smaller], n_slots, nodes.slot[node]
        )
        n_work, n_slots = n_work + 1, n_slots + 1
    counts[N_NODES], counts[_N_SLOTS] = n_nodes, n_slots
    counts[_N_WORK], counts[_N_FRESH], counts[_FIRST_WORK] = n_work, n_fresh, 0
    counts[_FIRST_FRESH] = counts[_LAST_FRESH] = 0


_partition_some, _fill_some = within(_partition_rows), within(fill_histograms)
_search_some, _plan_some = within(search_splits), within(_plan_step)
