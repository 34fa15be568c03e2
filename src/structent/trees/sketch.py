"""What splits are searched on: the whole gradient, its sums over blocks, or a random projection.

The values of leaves always come from the whole gradient: only where to split is decided by less.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, summing
from structent._threads import in_parts
from structent._typing import IntArray
from structent.trees.vectors import LANES, ROWS_AT_ONCE, project_rows

DIGEST_OF_VECTORS = "78b063fb52a95088"  # Numba's cache does not see edits there

Floats: TypeAlias = NDArray[np.float32]

_LEAST_ROWS = 4096  # for a thread


def wide_shape(n_rows: int, n_gradients: int) -> tuple[int, int, int]:
    """Return the shape of statistics that have a curvature for each gradient."""
    return -(-int(n_gradients) // LANES), n_rows, 2 * LANES


def signed_shape(n_rows: int, n_gradients: int) -> tuple[int, int, int]:
    """Return the shape of statistics whose curvature is the magnitude of the gradient."""
    return -(-int(n_gradients) // LANES), n_rows, LANES


def narrow_shape(n_rows: int) -> tuple[int, int, int]:
    """Return the shape of statistics that share one curvature."""
    return 1, n_rows, LANES


def write_full(gradient: Floats, hessian: Floats, statistics: Floats, n_threads: int) -> None:
    """Write gradient and curvature of each class, 16 classes a chunk.

    Without a hessian the curvature is the magnitude of the gradient, which alone is written.
    """
    in_parts(_write_full, len(gradient), n_threads, gradient, hessian, statistics,
             least=_LEAST_ROWS)  # fmt: skip


def write_blocks(
    gradient: Floats,
    hessian: Floats,
    block_of: IntArray,
    statistics: Floats,
    n_threads: int,
) -> None:
    """Write the sums of gradient and curvature over each block of a partition."""
    in_parts(_write_blocks, len(gradient), n_threads, gradient, hessian, block_of, statistics,
             least=_LEAST_ROWS)  # fmt: skip


def write_projection(
    gradient: Floats,
    hessian: Floats,
    projection: Floats,
    statistics: Floats,
    n_threads: int,
) -> None:
    """Write the projection of each gradient, and the mean curvature."""
    in_parts(
        _write_projection, len(gradient), n_threads, gradient.reshape(-1), hessian.reshape(-1),
        projection.reshape(-1), statistics.reshape(-1), least=_LEAST_ROWS,
    )  # fmt: skip


def random_projection(n_classes: int, rng: np.random.Generator) -> Floats:
    """Return 15 directions among gradients, which sum to 0 over the classes, (classes, 16).

    A basis of all such gradients where there are at most 16 classes, so that lengths are kept; else
    random orthogonal directions, scaled so that lengths are kept on average. The last column is 0.
    With its lines in another order it is another one that was just as likely, and quickly had.
    """
    n_directions = max(1, min(n_classes - 1, LANES - 1))
    drawn = rng.normal(size=(n_classes, n_directions))
    drawn -= drawn.mean(axis=0)
    basis, _ = np.linalg.qr(drawn)
    projection = np.zeros((n_classes, LANES), np.float32)
    projection[:, :n_directions] = basis * np.sqrt((n_classes - 1) / n_directions)
    return projection


@kernel
def _write_full(first: int, last: int, gradient: Any, hessian: Any, statistics: Any) -> None:
    n_classes = gradient.shape[1]
    for chunk in range(statistics.shape[0]):
        begin = chunk * LANES
        n = min(LANES, n_classes - begin)
        for i in range(first, last):
            for c in range(n):
                statistics[chunk, i, c] = gradient[i, begin + c]
            for c in range(n, LANES):
                statistics[chunk, i, c] = 0
            if hessian.size:
                for c in range(n):
                    statistics[chunk, i, LANES + c] = hessian[i, begin + c]
                for c in range(n, LANES):
                    statistics[chunk, i, LANES + c] = 0


@kernel
def _write_blocks(
    first: int, last: int, gradient: Any, hessian: Any, block_of: Any, statistics: Any
) -> None:
    for i in range(first, last):
        for chunk in range(statistics.shape[0]):
            for c in range(2 * LANES):
                statistics[chunk, i, c] = 0
        for c in range(gradient.shape[1]):
            chunk, place = block_of[c] // LANES, block_of[c] % LANES
            g = gradient[i, c]
            statistics[chunk, i, place] += g
            statistics[chunk, i, LANES + place] += hessian[i, c] if hessian.size else abs(g)


@kernel
def _write_projection(
    first: int, last: int, gradient: Any, hessian: Any, projection: Any, statistics: Any
) -> None:
    """Write the projections of the rows first to last - 1, and their mean curvatures."""
    n_classes = projection.size // LANES
    if last - first < ROWS_AT_ONCE:
        few = np.zeros(ROWS_AT_ONCE * n_classes, np.float32)
        few[: (last - first) * n_classes] = gradient[first * n_classes : last * n_classes]
        projected = np.empty(ROWS_AT_ONCE * LANES, np.float32)
        project_rows(few, 0, n_classes, projection, projected, 0)
        statistics[first * LANES : last * LANES] = projected[: (last - first) * LANES]
        _write_mean_curvatures(first, last, gradient, hessian, n_classes, statistics)
        return
    for i in range(first, last, ROWS_AT_ONCE):
        row = min(i, last - ROWS_AT_ONCE)  # the last ones may be done twice
        project_rows(gradient, row * n_classes, n_classes, projection, statistics, row * LANES)
        # While the rows are in the nearest cache.
        _write_mean_curvatures(row, row + ROWS_AT_ONCE, gradient, hessian, n_classes, statistics)


@inlined
def _write_mean_curvatures(
    first: int, last: int, gradient: Any, hessian: Any, n_classes: int, statistics: Any
) -> None:
    share = np.float32(1 / n_classes)
    for row in range(first, last):
        if hessian.size:
            total = _sum(hessian, row * n_classes, n_classes)
        else:
            total = _sum_of_magnitudes(gradient, row * n_classes, n_classes)
        statistics[row * LANES + LANES - 1] = total * share


@summing
def _sum(x: Any, at: int, n: int) -> Any:
    total = np.float32(0)
    for j in range(n):
        total += x[at + j]
    return total


@summing
def _sum_of_magnitudes(x: Any, at: int, n: int) -> Any:
    total = np.float32(0)
    for j in range(n):
        total += abs(x[at + j])
    return total
