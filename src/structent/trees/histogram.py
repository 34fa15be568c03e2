"""Histograms: the statistics of a node's rows, summed over every bin of every column.

The statistics of a row are a pair of numbers, or ``2 * LANES`` adjacent numbers, so that one or
four vector instructions add a row to a cell of the histogram. If the curvature is the magnitude of
the gradient, rows hold only the gradient g: the sum of |g| is the sum of g + 2 max(-g, 0). Only
the smaller of two siblings is counted; the larger one is the parent minus the smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structent._compiled import inlined, kernel
from structent.trees.vectors import (
    LANES,
    PAIR,
    add_pair,
    add_signed_row,
    add_wide_row,
    prefetch,
)

DIGEST_OF_VECTORS = "af2538d1bb250e30"  # Numba's cache does not see edits there

_AHEAD = 8  # how many rows ahead numbers are prefetched

_U = np.uint64


@kernel
def fill_histograms(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, work: Any, rows: Any, bins: Any, n_columns: int, statistics: Any,
    n_rows: int, n_row_lanes: int, n_lanes: int, first_cell: Any, histograms: Any,
) -> None:  # fmt: skip
    """Fill the histograms of some nodes, for the columns first to last - 1.

    Parameters
    ----------
    work
        One line per node to count, ``begin, end, slot, parent``, (nodes, 4): its rows are
        ``rows[begin:end]``, and its histogram is number ``slot``. If ``parent`` is not -1, the
        histogram is subtracted from that one, which then becomes the sibling's.
    bins
        The bins of all rows, flat, (n_rows, n_columns).
    statistics
        Flat, (chunks, n_rows, n_row_lanes).
    first_cell
        The first cell of each column, then the number of cells of a histogram.
    histograms
        Flat, (slots, chunks, cells, n_lanes).
    """
    n_chunks, n_cells = statistics.size // (n_rows * n_row_lanes), first_cell[-1]
    for w in range(work.shape[0]):
        begin, end, slot, parent = work[w, 0], work[w, 1], work[w, 2], work[w, 3]
        for chunk in range(n_chunks):
            at = (slot * n_chunks + chunk) * n_cells * n_lanes
            _clear(histograms, at, n_lanes, first_cell, first, last)
            _add_rows(
                begin, end, rows, bins, n_columns, statistics, chunk * n_rows * n_row_lanes,
                n_row_lanes, n_lanes, first_cell, first, last, histograms, at,
            )  # fmt: skip
            if n_row_lanes < n_lanes:
                _add_gradient_to_curvature(histograms, at, first_cell, first, last)
            if parent >= 0:
                of_parent = (parent * n_chunks + chunk) * n_cells * n_lanes
                _subtract(histograms, of_parent, at, n_lanes, first_cell, first, last)


@inlined
def _clear(histograms: Any, at: int, n_lanes: int, first_cell: Any, first: int, last: int) -> None:
    begin = _U(at + first_cell[first] * n_lanes)
    for p in range(_U((first_cell[last] - first_cell[first]) * n_lanes)):
        histograms[begin + p] = 0


@inlined
def _add_gradient_to_curvature(
    histograms: Any, at: int, first_cell: Any, first: int, last: int
) -> None:
    """Turn sums of negative parts into sums of magnitudes: |g| = g + 2 max(-g, 0)."""
    for cell in range(first_cell[first], first_cell[last]):
        begin = _U(at + cell * 2 * LANES)
        for lane in range(_U(LANES)):
            negative = histograms[begin + _U(LANES) + lane]
            histograms[begin + _U(LANES) + lane] = (
                histograms[begin + lane] + np.float32(2) * negative
            )


@inlined
def _subtract(
    histograms: Any, of_parent: int, at: int, n_lanes: int, first_cell: Any, first: int, last: int
) -> None:
    begin = first_cell[first] * n_lanes
    larger, smaller = _U(of_parent + begin), _U(at + begin)
    for p in range(_U((first_cell[last] - first_cell[first]) * n_lanes)):
        histograms[larger + p] -= histograms[smaller + p]


@inlined
def _add_rows(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    begin: int, end: int, rows: Any, bins: Any, n_columns: int, statistics: Any, of_chunk: int,
    n_row_lanes: int, n_lanes: int, first_cell: Any, first: int, last: int, histograms: Any,
    at: int,
) -> None:  # fmt: skip
    for r in range(begin, end):
        if r + _AHEAD < end:
            ahead = np.int64(rows[r + _AHEAD])
            prefetch(statistics, of_chunk + ahead * n_row_lanes)
            prefetch(statistics, of_chunk + ahead * n_row_lanes + n_row_lanes - 1)
            prefetch(bins, ahead * n_columns)
        row = np.int64(rows[r])
        of_row, bins_of_row = of_chunk + row * n_row_lanes, row * n_columns
        if n_lanes == PAIR:
            add_pair(statistics, of_row, bins, bins_of_row, first_cell, first, last, histograms, at)
        elif n_row_lanes == LANES:
            add_signed_row(
                statistics, of_row, bins, bins_of_row, first_cell, first, last, histograms, at
            )
        else:
            add_wide_row(
                statistics, of_row, bins, bins_of_row, first_cell, first, last, histograms, at
            )
