"""The best split of a node: every bin of every column is tried as a border.

Let G be the sum of the gradients of a child's rows, and H the sum of their curvatures. The gain of
a split is

    sum_c  G_left,c^2 / (H_left,c + lambda)  +  G_right,c^2 / (H_right,c + lambda)

minus the same sum for the node without the split. The statistics of a row are either wide, gradient
and curvature of 16 classes (in as many chunks as needed), or a pair: the gradient along one
direction among the classes, and the mean curvature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structent._compiled import inlined, kernel
from structent.trees.vectors import LANES, PAIR, add_border_scores

DIGEST_OF_VECTORS = "af2538d1bb250e30"  # Numba's cache does not see edits there

_MOST_CELLS = 256
_POWER_STEPS = 8  # of the power method: an order of categories needs no exact direction
_LEAST_GAIN = 1e-6  # as a share of a node's own score: less is rounding
_U = np.uint64
_LEAST_LAMBDA = 1e-7  # as a share of a node's curvature: avoids division by 0 if lambda is 0


@kernel
def search_splits(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    first: int, last: int, slots: Any, histograms: Any, n_chunks: int, n_lanes: int,
    share: float, first_cell: Any, is_categorical: Any, has_missing: Any, reg_lambda: float,
    min_child_weight: float, gains: Any, borders: Any, goes_left: Any,
) -> None:  # fmt: skip
    """Find the best split of some nodes in each of the columns first to last - 1.

    Parameters
    ----------
    slots
        The number of each node's histogram, (nodes,).
    histograms
        Flat, (slots, chunks, cells, n_lanes).
    share
        The factor that turns the sum of all curvatures into their mean over the classes.
    first_cell
        The first cell of each column, then the number of all cells; the last cell of a column is
        for missing values.
    gains, borders
        The gain of the best split of each node in each column, 0 if there is no split, and the
        last bin that goes left, (nodes, columns).
    goes_left
        For columns of categories, which bins go left; for numbers only whether missing values do,
        at the cell of missing values, (nodes, cells).
    """
    n_cells = first_cell[-1]
    totals = np.empty(n_chunks * n_lanes, np.float32)
    scores = np.empty(_MOST_CELLS, np.float32)
    least = np.float32(min_child_weight / share)
    for node in range(slots.size):
        at = slots[node] * n_chunks * n_cells * n_lanes
        _sum_first_column(histograms, at, n_chunks, n_cells, n_lanes, first_cell[1], totals)
        curvature = _curvature(totals, 0, n_chunks, n_lanes, n_lanes)
        lam = np.float32(max(reg_lambda, _LEAST_LAMBDA * share * curvature))
        alone = _score_of(totals, n_lanes, lam)
        for j in range(first, last):
            cell, n_bins = first_cell[j], first_cell[j + 1] - first_cell[j] - 1
            gains[node, j], borders[node, j] = np.float32(0), 0
            if is_categorical[j]:
                _search_categories(
                    histograms, at, cell, n_bins, n_chunks, n_cells, n_lanes, alone, lam, least,
                    gains, goes_left, node, j,
                )  # fmt: skip
                continue
            best, border, left = np.float32(0), -1, False
            for missing_left in range(2 if has_missing[j] else 1):
                # The last border has all values on one side, and the missing values on the other.
                n = n_bins if has_missing[j] and missing_left == 0 else n_bins - 1
                _score_borders(
                    histograms, at, cell, n, n_bins if missing_left else -1, n_chunks, n_cells,
                    n_lanes, totals, lam, least, scores,
                )  # fmt: skip
                for b in range(n):
                    if scores[b] > best:
                        best, border, left = scores[b], b, missing_left == 1
            if best > alone * np.float32(1 + _LEAST_GAIN):
                gains[node, j], borders[node, j] = best - alone, border
            goes_left[node, cell + n_bins] = left


@inlined
def _sum_first_column(
    histograms: Any, at: int, n_chunks: int, n_cells: int, n_lanes: int, n: int, totals: Any
) -> None:
    """Write the sums of all statistics over a node's rows: every row is in the first column."""
    for p in range(totals.size):
        totals[p] = 0
    for chunk in range(n_chunks):
        for cell in range(n):
            from_ = at + (chunk * n_cells + cell) * n_lanes
            for lane in range(n_lanes):
                totals[chunk * n_lanes + lane] += histograms[from_ + lane]


@inlined
def _score_of(totals: Any, n_lanes: int, lam: Any) -> Any:
    """Return the score of a node that is not split; rounding may leave a curvature below 0."""
    score, zero = np.float32(0), np.float32(0)
    if n_lanes == PAIR:
        return totals[0] * totals[0] / (max(totals[1], zero) + lam)
    for chunk in range(totals.size // n_lanes):
        at = chunk * n_lanes
        for lane in range(LANES):
            g, h = totals[at + lane], max(totals[at + LANES + lane], zero)
            score += g * g / (h + lam)
    return score


@inlined
def _score_borders(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    histograms: Any, at: int, cell: int, n: int, missing: int, n_chunks: int, n_cells: int,
    n_lanes: int, totals: Any, lam: Any, least: Any, scores: Any,
) -> None:  # fmt: skip
    """Write the score of a split after each of the first n bins of a column.

    Missing values, in the bin ``missing``, go left unless ``missing`` is -1.
    """
    if n_lanes == PAIR:
        begin = at + cell * n_lanes
        start = begin + missing * n_lanes if missing >= 0 else -1
        _score_pairs(histograms, begin, n, start, totals, lam, scores)
    else:
        for b in range(n):
            scores[b] = 0
        for chunk in range(n_chunks):
            begin = at + (chunk * n_cells + cell) * n_lanes
            start = begin + missing * n_lanes if missing >= 0 else -1
            add_border_scores(histograms, begin, n, start, totals, chunk * n_lanes, lam, scores)
    if least > 0:
        _refuse_light(
            histograms, at, cell, n, missing, n_chunks, n_cells, n_lanes, totals, least, scores
        )


@inlined
def _score_pairs(
    histograms: Any, begin: int, n: int, start: int, totals: Any, lam: Any, scores: Any
) -> None:
    """Write the score of the border after each of n pairs; sums begin with the pair at start."""
    zero, place = np.float32(0), _U(begin)
    left_g = histograms[start] if start >= 0 else zero
    left_h = histograms[start + 1] if start >= 0 else zero
    for b in range(_U(n)):
        left_g += histograms[place + _U(PAIR) * b]
        left_h += histograms[place + _U(PAIR) * b + _U(1)]
        right_g = totals[0] - left_g
        of_left = max(left_h, zero) + lam
        of_right = max(totals[1] - left_h, zero) + lam
        # One division for both: a/b + c/d = (a d + c b) / (b d).
        above = left_g * left_g * of_right + right_g * right_g * of_left
        scores[b] = above / (of_left * of_right)


@inlined
def _refuse_light(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    histograms: Any, at: int, cell: int, n: int, missing: int, n_chunks: int, n_cells: int,
    n_lanes: int, totals: Any, least: Any, scores: Any,
) -> None:  # fmt: skip
    """Set the score of a split to 0 if a child has less curvature than required."""
    total = _curvature(totals, 0, n_chunks, n_lanes, n_lanes)
    left = np.float32(0)
    for b in range(-1, n):
        bin_ = b if b >= 0 else missing
        if bin_ >= 0:
            place = at + (cell + bin_) * n_lanes
            left += _curvature(histograms, place, n_chunks, n_cells * n_lanes, n_lanes)
        if b >= 0 and (left < least or total - left < least):
            scores[b] = 0


@inlined
def _curvature(statistics: Any, at: int, n_chunks: int, step: int, n_lanes: int) -> Any:
    """Return the sum of all curvatures; a pair has only one."""
    if n_lanes == PAIR:
        return statistics[at + 1]
    total = np.float32(0)
    for chunk in range(n_chunks):
        for lane in range(LANES, 2 * LANES):
            total += statistics[at + chunk * step + lane]
    return total


@inlined
def _search_categories(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    histograms: Any, at: int, cell: int, n_bins: int, n_chunks: int, n_cells: int, n_lanes: int,
    alone: Any, lam: Any, least: Any, gains: Any, goes_left: Any, node: int, j: int,
) -> None:  # fmt: skip
    """Find the best set of categories to go left, among the first ones of an order.

    For one class and without lambda, the best set is the first categories in the order of G / H
    (Fisher 1958). For several classes, the order is along the direction in which the vectors G / H
    differ most.
    """
    g, h = _cells_of_column(histograms, at, cell, n_bins + 1, n_chunks, n_cells, n_lanes)
    n = g.shape[1]
    sums = np.zeros((6, n), np.float32)
    total_g, total_h, left_g, left_h, right_g, right_h = sums
    for b in range(n_bins + 1):
        _add(g[b], total_g)
        _add(h[b], total_h)
    least_there = np.float32(_LEAST_GAIN) * _sum(total_h)
    order = _order_of_categories(g[:n_bins], h[:n_bins], total_g, total_h, lam)
    best, n_left, missing_left = alone * np.float32(1 + _LEAST_GAIN), 0, False
    for with_missing in range(2 if _sum(h[n_bins]) > least_there else 1):
        for c in range(n):
            left_g[c] = g[n_bins, c] if with_missing else 0
            left_h[c] = h[n_bins, c] if with_missing else 0
        for place in range(n_bins):
            b = order[place]
            if not _sum(h[b]) > least_there:
                continue
            _add(g[b], left_g)
            _add(h[b], left_h)
            for c in range(n):
                right_g[c] = total_g[c] - left_g[c]
                # Rounding may leave a negative sum on the right.
                right_h[c] = max(total_h[c] - left_h[c], np.float32(0))
            if _sum(left_h) < least or _sum(right_h) < least:
                continue
            score = np.float32(0)
            for c in range(n):
                of_left = left_g[c] * left_g[c] / (left_h[c] + lam)
                score += of_left + right_g[c] * right_g[c] / (right_h[c] + lam)
            if score > best:
                best, n_left, missing_left = score, place + 1, with_missing == 1
    if n_left > 0:
        gains[node, j] = best - alone
    for place in range(n_bins):
        b = order[place]
        # A category without rows in this node goes where missing values go.
        is_there = _sum(h[b]) > least_there
        goes_left[node, cell + b] = place < n_left if is_there else missing_left
    goes_left[node, cell + n_bins] = missing_left


@inlined
def _add(numbers: Any, to: Any) -> None:
    for c in range(to.size):
        to[c] += numbers[c]


@inlined
def _sum(numbers: Any) -> Any:
    total = np.float32(0)
    for c in range(numbers.size):
        total += numbers[c]
    return total


@inlined
def _cells_of_column(
    histograms: Any, at: int, cell: int, n: int, n_chunks: int, n_cells: int, n_lanes: int
) -> Any:
    """Return gradient and curvature of the bins of a column, (bins, gradients) each."""
    n_together = n_lanes // 2  # gradients in a chunk, followed by as many curvatures
    n_gradients = n_chunks * n_together
    g, h = np.empty((n, n_gradients), np.float32), np.empty((n, n_gradients), np.float32)
    for b in range(n):
        for chunk in range(n_chunks):
            place = at + (chunk * n_cells + cell + b) * n_lanes
            for lane in range(n_together):
                g[b, chunk * n_together + lane] = histograms[place + lane]
                h[b, chunk * n_together + lane] = max(
                    histograms[place + n_together + lane], np.float32(0)
                )
    return g, h


@inlined
def _order_of_categories(g: Any, h: Any, total_g: Any, total_h: Any, lam: Any) -> Any:
    """Return the categories in the order of G / H along their leading direction.

    Written as loops, because Numba takes seconds to compile operations on whole arrays.
    """
    n_bins, n = g.shape
    values, products = np.empty((n_bins, n), np.float32), np.empty(n, np.float32)
    direction, turned = np.zeros(n, np.float32), np.empty(n, np.float32)
    longest = np.float32(-1)
    for b in range(n_bins):
        for c in range(n):
            values[b, c] = g[b, c] / (h[b, c] + lam) - total_g[c] / (total_h[c] + lam)
        length = _sum(h[b]) * _product(values[b], values[b], products)
        if length > longest:
            direction[:], longest = values[b], length
    for _ in range(_POWER_STEPS):
        turned[:] = 0
        for b in range(n_bins):
            times = _sum(h[b]) * _product(values[b], direction, products)
            for c in range(n):
                products[c] = values[b, c] * times
            _add(products, turned)
        norm = np.sqrt(_product(turned, turned, products))
        if norm > 0:
            for c in range(n):
                direction[c] = turned[c] / norm
    along, order = np.empty(n_bins, np.float32), np.empty(n_bins, np.int64)
    for b in range(n_bins):
        along[b] = _product(values[b], direction, products)
        place = b
        while place > 0 and along[order[place - 1]] > along[b]:  # at most 255 times
            order[place] = order[place - 1]
            place -= 1
        order[place] = b
    return order


@inlined
def _product(x: Any, y: Any, products: Any) -> Any:
    """Return the sum of products; each product is rounded before it is added."""
    for c in range(x.size):
        products[c] = x[c] * y[c]
    return _sum(products)
