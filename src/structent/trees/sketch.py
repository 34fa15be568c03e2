"""Statistics for the search of splits: the whole gradient, its sums over blocks, or one direction.

Leaf values always come from the whole gradient; only the choice of splits uses less.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._compiled import kernel
from structent._threads import in_parts
from structent._typing import IntArray
from structent.trees.vectors import LANES, PAIR, product, product_of_magnitudes

DIGEST_OF_VECTORS = "af2538d1bb250e30"  # Numba's cache does not see edits there

Floats: TypeAlias = NDArray[np.float32]

_LEAST_ROWS = 4096  # per thread


def wide_shape(n_rows: int, n_gradients: int) -> tuple[int, int, int]:
    """Return the shape of statistics that have a curvature for each gradient."""
    return -(-int(n_gradients) // LANES), n_rows, 2 * LANES


def signed_shape(n_rows: int, n_gradients: int) -> tuple[int, int, int]:
    """Return the shape of statistics whose curvature is the magnitude of the gradient."""
    return -(-int(n_gradients) // LANES), n_rows, LANES


def pair_shape(n_rows: int) -> tuple[int, int, int]:
    """Return the shape of statistics along one direction."""
    return 1, n_rows, PAIR


def write_full(gradient: Floats, hessian: Floats, statistics: Floats, n_threads: int) -> None:
    """Write gradient and curvature of each class, 16 classes per chunk.

    Without a hessian, the curvature is the magnitude of the gradient, and only the gradient is
    written.
    """
    in_parts(write_some_whole, len(gradient), n_threads, gradient, hessian, statistics,
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


def write_direction(
    gradient: Floats,
    hessian: Floats,
    direction: Floats,
    statistics: Floats,
    n_threads: int,
) -> None:
    """Write the gradient along a direction, and the mean curvature.

    The curvature along the direction was no better, because then a few classes dominate.
    """
    in_parts(
        write_some_along, len(gradient), n_threads, gradient.reshape(-1), hessian.reshape(-1),
        direction, statistics.reshape(-1), least=_LEAST_ROWS,
    )  # fmt: skip


def random_direction(n_classes: int, rng: np.random.Generator) -> Floats:
    """Return a direction of length 1 among gradients, which sum to 0 over the classes.

    For a single class there is no such direction, and 0 is returned.
    """
    drawn = rng.normal(size=n_classes)
    drawn -= np.add.reduce(drawn) / n_classes  # ndarray.mean takes twice as long
    length = math.sqrt(drawn @ drawn)
    direction: Floats = (drawn / (length if length > 0 else 1.0)).astype(np.float32)
    return direction


@kernel
def write_some_whole(first: int, last: int, gradient: Any, hessian: Any, statistics: Any) -> None:
    """Do the work of :func:`write_full` for some of the rows."""
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
def write_some_along(
    first: int, last: int, gradient: Any, hessian: Any, direction: Any, statistics: Any
) -> None:
    """Do the work of :func:`write_direction` for some of the rows."""
    n_classes = direction.size
    shares = np.full(n_classes, np.float32(1 / n_classes))
    for row in range(first, last):
        at = row * n_classes
        statistics[PAIR * row] = product(gradient, at, n_classes, direction)
        if hessian.size:
            statistics[PAIR * row + 1] = product(hessian, at, n_classes, shares)
        else:
            statistics[PAIR * row + 1] = product_of_magnitudes(gradient, at, n_classes, shares)
