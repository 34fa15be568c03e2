"""The fused kernel as Python calls it: labels are checked, and rows are shared among threads.

As little as possible is done here: for a small batch it takes as long as the kernel itself.
"""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structent._threads import thread_pool
from structent.errors import LabelError
from structent.kernels import cpu
from structent.kernels.coarse import CoarseLayouts, weights_of_sets
from structent.kernels.layout import Layout

Array: TypeAlias = NDArray[Any]

CURVATURES = {"bound": cpu.BOUND, "gradient": cpu.GRADIENT, "fisher": cpu.FISHER}

# With fewer logits than this, waking a second thread takes longer than the work.
_WORTH_A_THREAD = 50_000
# An array that is not given, or not wanted.
NONE = {np.dtype(kind): np.empty(0, dtype=kind) for kind in (np.float32, np.float64)}


class Losses(NamedTuple):
    """The losses of the rows times their weights, (n,), their sum, and the sum of the weights."""

    rows: Array
    total: float
    total_weight: float


def loss_and_gradient(  # noqa: PLR0913  plain arrays, not an object of them
    logits: Array,
    codes: Array,
    layout: Layout,
    *,
    gradient: Array | None,
    class_weights: Array | None = None,
    ignored: int = -1,
    of_mean: bool = False,
    n_threads: int = 1,
    coarse: CoarseLayouts | None = None,
) -> Losses:
    """Return the losses, and write the gradient of each (of their mean if asked for) unless None.

    Parameters
    ----------
    logits, gradient
        Contiguous, (n, classes) or (n, classes, pixels).
    codes
        The class of each row, or pixel, as int64, flat; ``ignored`` where it has none.
    class_weights
        One weight per class, all 1 if None; the weight of a set is the mean of its classes'.
    coarse
        The sets of classes that codes from ``n_classes`` on stand for; None if there are none.
    """
    dtype, n_rows, n_codes = logits.dtype, codes.size, layout.n_classes
    labels, weights = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=dtype)
    none = NONE[dtype]
    code_weights = none if class_weights is None else class_weights
    if coarse is not None:
        n_codes += len(coarse.sets)
        if class_weights is not None:
            code_weights = np.append(class_weights, weights_of_sets(class_weights, coarse.sets))
    total_weight, wrong = cpu.prepare_rows(codes, code_weights, ignored, n_codes, labels, weights)
    if wrong >= 0:
        raise wrong_label(codes[wrong], wrong, n_codes)
    losses = np.empty(n_rows, dtype=dtype)
    visit = _visit if coarse is None else partial(_visit_with_sets, coarse)
    total = visit(
        logits, labels, weights, 1.0 / total_weight if of_mean and total_weight > 0 else 1.0,
        layout, losses, none if gradient is None else gradient.reshape(-1), none,
        cpu.NO_CURVATURE, n_threads,
    )  # fmt: skip
    return Losses(losses, total, total_weight)


def is_for_one_thread(n_logits: int, n_threads: int) -> bool:
    """Return whether a batch is too small for a second thread, or there is none."""
    return n_threads == 1 or n_logits < 2 * _WORTH_A_THREAD


def wrong_label(code: int, row: int, n_codes: int) -> LabelError:
    """Return the error of a code that is no class and no set of classes."""
    return LabelError(f"labels must be between 0 and {n_codes - 1}, got {code} in row {row}")


def gradient_and_curvature(  # noqa: PLR0913  plain arrays, not an object of them
    logits: Array,
    labels: Array,
    row_weights: Array,
    layout: Layout,
    *,
    losses: Array,
    gradient: Array | None = None,
    hessian: Array | None = None,
    curvature: str = "gradient",
    n_threads: int = 1,
    coarse: CoarseLayouts | None = None,
) -> None:
    """Write gradient and curvature of each row for a booster, (n, classes) each, and its loss.

    What is None is not written. Labels from ``n_classes`` on mean the sets of ``coarse``.
    """
    none = NONE[losses.dtype]
    visit = _visit if coarse is None else partial(_visit_with_sets, coarse)
    visit(
        logits, labels, row_weights, 1.0, layout, losses,
        none if gradient is None else gradient.reshape(-1),
        none if hessian is None else hessian.reshape(-1),
        cpu.NO_CURVATURE if hessian is None else CURVATURES[curvature],
        n_threads,
    )  # fmt: skip


def probabilities(logits: Array) -> Array:
    """Return the softmax of each row, (n, classes)."""
    proba = np.empty(logits.shape, logits.dtype)
    rows = np.ascontiguousarray(logits)
    cpu.write_probabilities(rows.reshape(-1), logits.shape[1], proba.reshape(-1))
    return proba


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
    # The kernel releases the interpreter's lock.
    bounds = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    pool = thread_pool(n_parts - 1)
    others = [
        pool.submit(cpu.visit_rows, *arguments, *bounds[p : p + 2]) for p in range(1, n_parts)
    ]
    return cpu.visit_rows(*arguments, *bounds[:2]) + sum(other.result() for other in others)


def _visit_with_sets(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    coarse: CoarseLayouts, logits: Array, codes: Array, row_weights: Array, scale: float,
    layout: Layout, losses: Array, gradient: Array, hessian: Array, curvature: int, n_threads: int,
) -> float:  # fmt: skip
    """Visit the rows of classes in place, and gather the rows of each set."""
    n_classes = layout.n_classes
    labels = np.where(codes < n_classes, codes, -1)
    total = _visit(
        logits, labels, row_weights, scale, layout, losses, gradient, hessian, curvature, n_threads
    )
    rows = np.flatnonzero(codes >= n_classes)
    if not len(rows):
        return total
    rows = rows[np.argsort(codes[rows], kind="stable")]
    n_pixels = codes.size // logits.shape[0]
    shape = (-1, n_classes, n_pixels)
    for of_set in np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1):
        s = int(codes[of_set[0]]) - n_classes
        at = (of_set // n_pixels, slice(None), of_set % n_pixels)
        taken = logits.reshape(shape)[at]  # (rows of the set, classes)
        members = np.array(coarse.sets[s])
        # Any class of the set gives the loss, but an impossible one gives 0 times infinity.
        likeliest = members[taken[:, members].argmax(axis=1)]
        own_losses = np.empty(len(of_set), dtype=losses.dtype)
        own_gradient, own_hessian = (
            np.empty(taken.size if out.size else 0, dtype=out.dtype) for out in (gradient, hessian)
        )
        total += _visit(
            taken, likeliest, row_weights[of_set], scale, coarse.layout_of(s),
            own_losses, own_gradient, own_hessian, curvature, n_threads,
        )  # fmt: skip
        losses[of_set] = own_losses
        for out, own in ((gradient, own_gradient), (hessian, own_hessian)):
            if out.size:
                out.reshape(shape)[at] = own.reshape(taken.shape)
    return total
