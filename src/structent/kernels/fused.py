"""The fused kernel as Python calls it: it checks the labels, and shares the rows among threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent.errors import LabelError
from structent.kernels import cpu
from structent.kernels.layout import Layout

Array: TypeAlias = NDArray[Any]

CURVATURES = {"bound": cpu.BOUND, "gradient": cpu.GRADIENT, "fisher": cpu.FISHER}

# Fewer entries than this are done sooner than a second thread is woken.
_WORTH_A_THREAD = 50_000


def checked_rows(
    targets: Array, layout: Layout, *, class_weights: Array | None, ignored: int, dtype: Any
) -> tuple[Array, Array, float]:
    """Return the labels (-1 where ignored) and weights of the rows, and the sum of the weights."""
    labels = np.empty(targets.size, dtype=np.int64)
    rows = np.empty(targets.size, dtype=dtype)
    no_weights = np.empty(0, dtype=dtype) if class_weights is None else class_weights
    total, wrong = cpu.prepare_rows(
        targets.reshape(-1), no_weights, ignored, layout.n_classes, labels, rows
    )
    if wrong >= 0:
        raise LabelError(
            f"labels must be between 0 and {layout.n_classes - 1}, got {targets.flat[wrong]} in "
            f"row {wrong}"
        )
    return labels, rows, total


def loss_and_gradient(
    logits: Array,
    labels: Array,
    row_weights: Array,
    layout: Layout,
    *,
    losses: Array,
    gradient: Array | None,
    scale: float = 1.0,
    n_threads: int = 1,
) -> None:
    """Write the weighted loss of each row, and the gradient times the scale unless it is None.

    ``logits`` and ``gradient`` are contiguous, (n, classes) or (images, classes, ...); ``labels``
    and ``losses`` have one entry for each pixel of each image.
    """
    unwanted = np.empty(0, logits.dtype)
    outputs = (losses, unwanted if gradient is None else gradient.reshape(-1), unwanted)
    _visit(logits, labels, row_weights, scale, layout, outputs, cpu.NO_CURVATURE, n_threads)


def gradient_and_curvature(
    logits: Array,
    labels: Array,
    row_weights: Array,
    layout: Layout,
    *,
    curvature: str,
    gradient: Array,
    hessian: Array,
    n_threads: int = 1,
) -> None:
    """Write gradient and curvature of each row for a booster, (n, classes) each."""
    losses = np.empty(labels.size, logits.dtype)
    outputs = (losses, gradient.reshape(-1), hessian.reshape(-1))
    _visit(logits, labels, row_weights, 1.0, layout, outputs, CURVATURES[curvature], n_threads)


def _visit(
    logits: Array,
    labels: Array,
    row_weights: Array,
    scale: float,
    layout: Layout,
    outputs: tuple[Array, Array, Array],
    curvature: int,
    n_threads: int,
) -> None:
    n_rows = labels.size
    n_pixels = n_rows // logits.shape[0] if logits.ndim > 2 and n_rows else 1
    flat = logits.reshape(-1)
    block_of = layout.block_of.reshape(-1)

    def visit(first: int, last: int) -> None:
        cpu.visit_rows(
            flat, labels, row_weights, scale,
            block_of, layout.start, layout.members, layout.is_range, layout.weights,
            layout.singleton_weight, *outputs, curvature,
            layout.n_classes, n_pixels, first, last,
        )  # fmt: skip

    n_parts = max(1, min(n_threads, logits.size // _WORTH_A_THREAD))
    if n_parts == 1:
        visit(0, n_rows)
    else:
        _in_parallel(visit, n_rows, n_parts)


def _in_parallel(visit: Callable[[int, int], None], n_rows: int, n_parts: int) -> None:
    """Run the parts of the rows at once: the kernel releases the interpreter's lock.

    Threads of our own rather than Numba's, whose pools abort the process when two Python threads
    or a fork meet in them.
    """
    bounds = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    pool = _threads(n_parts - 1, os.getpid())
    others = [pool.submit(visit, *bounds[p : p + 2]) for p in range(1, n_parts)]
    visit(*bounds[:2])
    for other in others:
        other.result()


@lru_cache(maxsize=4)
def _threads(n_threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  a fork has none
    return ThreadPoolExecutor(n_threads, thread_name_prefix="structent")
