"""Random tables of bins and statistics for tests of the trees."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from structent.trees import sketch
from structent.trees.growing import BinnedTable, Limits, Room, grow_tree
from structent.trees.histogram import fill_histograms
from structent.trees.splits import search_splits


@dataclass
class Problem:
    """Gradient and curvature of each class, (n, classes) each; of one direction, where a pair.

    Where it is signed, the curvature is the magnitude of the gradient, and the engine is not
    given it.
    """

    table: BinnedTable
    gradient: np.ndarray
    curvature: np.ndarray
    is_signed: bool = False
    is_pair: bool = False

    @property
    def statistics(self):
        n, n_gradients = self.gradient.shape
        if self.is_pair:
            pairs = np.concatenate([self.gradient, self.curvature], axis=1)
            return pairs.astype(np.float32).reshape(sketch.pair_shape(n))
        statistics = np.empty(sketch.wide_shape(n, n_gradients), np.float32)
        as_floats = (x.astype(np.float32) for x in (self.gradient, self.curvature))
        sketch.write_full(*as_floats, statistics, 1)
        return statistics

    @property
    def given(self):
        """The statistics that the engine is given."""
        if not self.is_signed:
            return self.statistics
        statistics = np.empty(sketch.signed_shape(*self.gradient.shape), np.float32)
        none = np.empty((0, 0), np.float32)
        sketch.write_full(self.gradient.astype(np.float32), none, statistics, 1)
        return statistics

    @property
    def rows(self):
        return np.arange(len(self.gradient), dtype=np.int32)

    def grown(self, limits, n_threads=1, rows=None):
        """The nodes of the engine's tree, and the rows in their order."""
        rows = self.rows if rows is None else rows.astype(np.int32)
        return self.grown_in(Room(), rows, limits, n_threads), rows

    def grown_in(self, room, rows, limits, n_threads=1):
        n_classes = self.gradient.shape[1]
        return grow_tree(
            self.table, self.given, rows, limits, room, n_classes, n_threads,
            is_signed=self.is_signed,
        )  # fmt: skip


def table_of(bins, n_bins, is_categorical=None):
    bins = np.asarray(bins, np.uint8)
    n_bins = np.asarray(n_bins, np.int64)
    if is_categorical is None:
        is_categorical = np.zeros(len(n_bins), bool)
    return BinnedTable.of(bins, n_bins, np.asarray(is_categorical))


def exact_problem(  # noqa: PLR0913, PLR0917
    seed, n=30, n_columns=3, n_bins=5, n_classes=3, missing=0.0, categories=0, pair=False,
    signed=False,
):  # fmt: skip
    """Statistics are multiples of 1/64 below 16: their sums are exact in float32."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_bins + 1, size=n_columns)
    bins = rng.integers(sizes, size=(n, n_columns))
    bins = np.where(rng.random(bins.shape) < missing, sizes, bins)
    gradient = rng.integers(-1000, 1000, size=(n, n_classes)) / 64
    curvature = rng.integers(1, 1000, size=(n, n_classes)) / 64
    table = table_of(bins, sizes, np.arange(n_columns) < categories)
    return Problem(table, gradient, abs(gradient) if signed else curvature, signed, pair)


def filled(problem, work, rows=None, parts=None, n_slots=2):
    """The histograms that the engine fills, (slots, chunks, cells, lanes)."""
    statistics, n_lanes = problem.given, problem.statistics.shape[2]
    n_chunks, n, n_row_lanes = statistics.shape
    n_columns, n_cells = problem.table.bins.shape[1], problem.table.first_cell[-1]
    histograms = np.full((n_slots, n_chunks, n_cells, n_lanes), np.float32(-77))
    bounds = [0, *sorted(parts or ()), n_columns]
    for first, last in pairwise(bounds):
        fill_histograms(
            first, last, np.asarray(work, np.int64).reshape(-1, 4),
            problem.rows if rows is None else rows.astype(np.int32),
            problem.table.bins.reshape(-1), n_columns, statistics.reshape(-1), n, n_row_lanes,
            n_lanes, problem.table.first_cell, histograms.reshape(-1),
        )  # fmt: skip
    return histograms


def summed(table, statistics, rows):
    """The histogram of the rows in float64, one addition after the other."""
    statistics, first_cell = statistics.astype(np.float64), table.first_cell
    n_chunks, _, n_lanes = statistics.shape
    histogram = np.zeros((n_chunks, first_cell[-1], n_lanes))
    for column in range(table.bins.shape[1]):
        cells = first_cell[column] + table.bins[rows, column]
        for chunk in range(n_chunks):
            np.add.at(histogram[chunk], cells, statistics[chunk, rows])
    return histogram


@dataclass
class Searched:
    gains: np.ndarray  # (columns,)
    borders: np.ndarray
    goes_left: list  # of each column a place for each bin, and for missing values


def searched(problem, reg_lambda=1.0, min_child_weight=0.0, statistics=None):
    """What the engine finds in each column for a node of all rows."""
    statistics = problem.statistics if statistics is None else statistics
    table, (n_chunks, _, n_lanes) = problem.table, statistics.shape
    share = 1 / problem.curvature.shape[1]  # of the sum of all curvatures: their mean
    histogram = summed(table, statistics, problem.rows).astype(np.float32)
    n_columns, n_cells = table.bins.shape[1], int(table.first_cell[-1])
    gains, borders = np.full((1, n_columns), np.float32(-1)), np.full((1, n_columns), -1)
    goes_left = np.zeros((1, n_cells), bool)
    search_splits(
        0, n_columns, np.zeros(1, np.int64), histogram.reshape(-1), n_chunks, n_lanes, share,
        table.first_cell, table.is_categorical, table.has_missing, reg_lambda, min_child_weight,
        gains, borders, goes_left,
    )  # fmt: skip
    ways = []
    for j in range(n_columns):
        way = goes_left[0, table.first_cell[j] : table.first_cell[j + 1]].copy()
        if not table.is_categorical[j]:
            way[:-1] = np.arange(len(way) - 1) <= borders[0, j]
        ways.append(way)
    return Searched(gains[0], borders[0], ways)


class RoomWithFence(Room):
    """Memory with some more behind it that nobody asked for."""

    def histograms(self, size):
        self.whole = np.full(8 * size, np.float32(7))
        self.fence = self.whole[size:]
        return self.whole[:size]


def overflows_its_memory(max_leaves=None):
    """Whether a tree that cuts off one of 8 rows after the other writes behind its histograms."""
    gradient = 8.0 ** np.arange(8)[:, None]
    problem = Problem(table_of(np.arange(8)[:, None], [8]), gradient, np.ones((8, 1)))
    room, limits = RoomWithFence(), Limits(8, max_leaves)
    nodes = problem.grown_in(room, problem.rows, limits)
    assert nodes.depth.max() == 7
    return bool((room.fence != 7).any())
