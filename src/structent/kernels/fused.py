"""The fused kernel as Python calls it: it checks the labels, and shares the rows among threads.

Little is done here, and that at once: for a small batch it takes as long as the kernel itself.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent.errors import LabelError
from structent.kernels import cpu
from structent.kernels.labels import prepare_rows
from structent.kernels.layout import Layout

Array: TypeAlias = NDArray[Any]

CURVATURES = {"bound": cpu.BOUND, "gradient": cpu.GRADIENT, "fisher": cpu.FISHER}

# Fewer entries than this are done sooner than a second thread is woken.
_WORTH_A_THREAD = 50_000
_NONE = {np.dtype(kind): np.empty(0, dtype=kind) for kind in (np.float32, np.float64)}


class Losses(NamedTuple):
    """The losses of the rows times their weights, (rows,), their sum, and that of the weights."""

    rows: Array
    total: float
    total_weight: float


def loss_and_gradient(
    logits: Array,
    targets: Array,
    layout: Layout,
    *,
    gradient: Array | None,
    class_weights: Array | None = None,
    ignored: int = -1,
    of_mean: bool = False,
    n_threads: int = 1,
) -> Losses:
    """Return the losses, and write the gradient of each (of their mean if asked for) unless None.

    Parameters
    ----------
    logits, gradient
        Contiguous, (n, classes) or (n, classes, pixels).
    targets
        The class of each row, or pixel, as int64, flat; ``ignored`` where it has none.
    class_weights
        One weight a class, all 1 if None.
    """
    dtype, n_rows = logits.dtype, targets.size
    labels, weights = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=dtype)
    none = _NONE[dtype]
    total_weight, wrong = prepare_rows(
        targets,
        none if class_weights is None else class_weights,
        ignored,
        layout.n_classes,
        labels,
        weights,
    )
    if wrong >= 0:
        raise LabelError(
            f"labels must be between 0 and {layout.n_classes - 1}, got {targets[wrong]} "
            f"in row {wrong}"
        )
    losses = np.empty(n_rows, dtype=dtype)
    total = _visit(
        logits, labels, weights, 1.0 / total_weight if of_mean and total_weight > 0 else 1.0,
        layout, losses, none if gradient is None else gradient.reshape(-1), none,
        cpu.NO_CURVATURE, n_threads,
    )  # fmt: skip
    return Losses(losses, total, total_weight)


def gradient_and_curvature(  # noqa: PLR0913  plain arrays, not an object of them
    logits: Array,
    labels: Array,
    row_weights: Array,
    layout: Layout,
    *,
    curvature: str,
    gradient: Array,
    hessian: Array,
    losses: Array,
    n_threads: int = 1,
) -> None:
    """Write gradient and curvature of each row for a booster, (n, classes) each, and its loss."""
    _visit(
        logits, labels, row_weights, 1.0, layout, losses,
        gradient.reshape(-1), hessian.reshape(-1), CURVATURES[curvature], n_threads,
    )  # fmt: skip


def _visit(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    logits: Array, labels: Array, row_weights: Array, scale: float, layout: Layout,
    losses: Array, gradient: Array, hessian: Array, curvature: int, n_threads: int,
) -> float:  # fmt: skip
    n_rows, n_classes = labels.size, layout.n_classes
    n_pixels = 1 if logits.ndim == 2 or n_rows == 0 else n_rows // logits.shape[0]
    arguments = (
        logits.reshape(-1), labels, row_weights, scale, *layout.arrays,
        losses, gradient, hessian, curvature, n_classes, n_pixels,
    )  # fmt: skip
    n_parts = min(n_threads, logits.size // _WORTH_A_THREAD)
    if n_parts <= 1:
        return cpu.visit_rows(*arguments, 0, n_rows)
    # The kernel releases the interpreter's lock. Threads of our own rather than Numba's, whose
    # pools abort the process when two Python threads or a fork meet in them.
    bounds = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    pool = _threads(n_parts - 1, os.getpid())
    others = [
        pool.submit(cpu.visit_rows, *arguments, *bounds[p : p + 2]) for p in range(1, n_parts)
    ]
    return cpu.visit_rows(*arguments, *bounds[:2]) + sum(other.result() for other in others)


@lru_cache(maxsize=4)
def _threads(n_threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  a fork has none
    return ThreadPoolExecutor(n_threads, thread_name_prefix="structent")
