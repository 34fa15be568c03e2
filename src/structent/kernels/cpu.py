"""The structured loss on the CPU: a Numba kernel that visits each row of logits once.

Rows are taken in tiles that stay in the nearest cache. In a tile: subtract each row's largest
logit, take exponentials, sum them over the row and over the blocks of its label, then write the
loss, the gradient and the curvature. Sums of blocks that are too small to trust are recomputed.

Functions take flat arrays and unsigned positions: a slice would cost more than the loop over a
short row, and a signed index costs a comparison with 0. All other compiled functions are in this
file, because Numba's cache does not see edits elsewhere: if ``bits`` or ``sums`` changes, so must
its digest.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]  # Numba has no types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from structent._compiled import inlined, kernel, within
from structent.kernels.bits import exp, log, ordered, unordered
from structent.kernels.sums import sum_of, sum_where

Array: TypeAlias = NDArray[Any]
Position: TypeAlias = Any  # np.uint64

DIGEST_OF_BITS = "ff9c5762eb7bd419"
DIGEST_OF_SUMS = "2e4240a3bb04f096"

NO_CURVATURE, BOUND, GRADIENT, FISHER = 0, 1, 2, 3

_U = np.uint64
_TILE = 4096  # entries of a tile
_PIXELS = 64  # pixels of a tile: whole lines of the cache
_SHORT = 512  # exponentials of shorter rows are taken together, without a remainder per row
_FLOOR = 1e-16  # the least curvature, so that a booster never divides by zero


@kernel
def visit_rows(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    logits: Array, labels: Array, row_weights: Array, scale: float,
    block_of: Array, start: Array, members: Array, is_range: Array, weights: Array,
    singleton_weight: float, losses: Array, gradient: Array, hessian: Array, curvature: int,
    n_classes: int, n_pixels: int, first: int, last: int,
) -> float:  # fmt: skip
    """Write the losses of the rows first to last - 1, their gradients and curvatures.

    Returns the sum of the losses.

    ``logits``, ``gradient`` and ``hessian`` are (images, classes, pixels), flat; a row is a pixel
    of an image. A gradient of size 0 is not written. Losses are multiplied by the row's weight,
    gradient and curvature by the scale too. ``block_of`` is flat.
    """
    k, step = _U(n_classes), _U(n_pixels)
    tile = max(1, _TILE // n_classes) if n_pixels == 1 else _PIXELS
    e, g = np.empty(tile * n_classes, logits.dtype), gradient
    if n_pixels > 1:
        g = np.empty(tile * n_classes, logits.dtype)
    largest, totals = np.empty(tile, logits.dtype), np.empty(tile, logits.dtype)
    log_totals, n_sums = np.empty(tile, logits.dtype), _U(weights.size)
    sums = np.ones(tile * weights.size, logits.dtype)
    logs = np.empty(tile * weights.size, logits.dtype)
    loss_total, begin, with_gradient = 0.0, first, gradient.size > 0
    total_weight = singleton_weight + sum_of(weights, _U(0), n_sums)
    while begin < last:
        # A tile stays within one image, so that its logits are a rectangle of memory.
        pixel = begin % n_pixels
        n_rows = min(tile, last - begin, n_pixels - pixel if n_pixels > 1 else tile)
        corner = _U(begin) * k if n_pixels == 1 else _U(begin - pixel) * k + _U(pixel)
        if n_pixels == 1:
            _exponentials(logits, corner, k, n_rows, e, largest, totals)
        else:
            _gather_pixels(logits, corner, step, k, _U(n_rows), g)
            _exponentials(g, _U(0), k, n_rows, e, largest, totals)
        for r in range(n_rows if n_sums > 0 else 0):
            if labels[begin + r] >= 0:
                _sum_blocks(
                    e, _U(r) * k, k, labels[begin + r],
                    block_of, start, members, is_range, sums, _U(r) * n_sums, n_sums,
                )  # fmt: skip
        _logarithms(totals, _U(n_rows), log_totals)
        _logarithms(sums, _U(n_rows) * n_sums, logs)
        for r in range(n_rows):
            i = begin + r
            x_at = corner + _U(r) * k if n_pixels == 1 else corner + _U(r)
            g_at = x_at if n_pixels == 1 else _U(r) * k
            if labels[i] < 0:
                losses[i] = 0
                for j in range(k if with_gradient else 0):
                    g[g_at + j] = 0
                continue
            losses[i] = row_weights[i] * _finish_row(
                e, _U(r) * k, k, totals[r], log_totals[r], largest[r],
                sums, logs, _U(r) * n_sums, labels[i], row_weights[i] * scale,
                logits, x_at, step, block_of, start, members, is_range, weights, singleton_weight,
                total_weight, g, g_at, with_gradient,
            )  # fmt: skip
            loss_total += losses[i]
        if curvature != NO_CURVATURE:
            # Per tile, not per row: a call with many arrays costs as much as a row of 12 classes.
            _curvatures(
                curvature, e, k, totals, row_weights, scale, begin, n_rows,
                start, members, weights, singleton_weight, gradient, hessian,
            )  # fmt: skip
        if n_pixels > 1 and with_gradient:
            _scatter_pixels(g, k, _U(n_rows), gradient, corner, step)
        begin += n_rows
    return loss_total


@kernel
def prepare_rows(
    codes: Array, code_weights: Array, ignored: int, n_codes: int, labels: Array, weights: Array
) -> tuple[float, int]:
    """Write each row's label, -1 where it is ignored, and its weight.

    Returns the sum of the weights, and the first row whose code is out of range (-1 if none is).
    """
    total = 0.0
    for i in range(codes.size):
        y = codes[i]
        labels[i], weights[i] = -1, 0
        if y != ignored:
            if y < 0 or y >= n_codes:
                return total, i
            labels[i] = y
            weights[i] = code_weights[y] if code_weights.size > 0 else 1
            total += weights[i]
    return total, -1


@kernel
def write_probabilities(logits: Array, n_classes: int, proba: Array) -> None:
    """Write the softmax of each row; both arrays are (n, classes), flat."""
    k, tile = _U(n_classes), max(1, _TILE // n_classes)
    largest, totals = np.empty(tile, logits.dtype), np.empty(tile, logits.dtype)
    for corner in range(0, logits.size, tile * n_classes):
        e = proba[corner : corner + tile * n_classes]
        _exponentials(logits, _U(corner), k, e.size // n_classes, e, largest, totals)
        for r in range(e.size // n_classes):
            _scaled(e, _U(r) * k, k, 1 / totals[r], e, _U(r) * k)


_visit, _prepare = within(visit_rows), within(prepare_rows)


@kernel
def loss_at_addresses(  # noqa: PLR0913, PLR0917  plain addresses, not an object of them
    logits_at: int, codes_at: int, class_weights_at: int, ignored: int, of_mean: bool,
    block_of: Array, start: Array, members: Array, is_range: Array, weights: Array,
    singleton_weight: float, losses_at: int, total_at: int, gradient_at: int, none: Array,
    n_classes: int, n_pixels: int, n_rows: int,
) -> int:  # fmt: skip
    """Do in one call what ``prepare_rows`` and ``visit_rows`` do, and add up the losses.

    Arrays of the batch are given by their addresses: making NumPy arrays of a framework's tensors
    and unpacking them here would take as long as a few dozen rows. ``none`` is an empty array of
    their type. An array with the address 0 is not given, or not wanted.

    Returns the first row whose code is out of range, and -1 if none is.
    """
    n_logits = n_rows * n_classes
    row_weights, labels = np.empty(n_rows, none.dtype), np.empty(n_rows, np.int64)
    class_weights = _array(class_weights_at, n_classes if class_weights_at else 0, none.dtype)
    total_weight, wrong = _prepare(
        _array(codes_at, n_rows, np.int64), class_weights, ignored, n_classes, labels, row_weights
    )
    if wrong >= 0:
        return wrong
    losses = np.empty(0 if losses_at else n_rows, none.dtype)
    if losses_at:
        losses = _array(losses_at, n_rows, none.dtype)
    total = _visit(
        _array(logits_at, n_logits, none.dtype), labels, row_weights,
        1 / total_weight if of_mean and total_weight > 0 else 1.0,
        block_of, start, members, is_range, weights, singleton_weight, losses,
        _array(gradient_at, n_logits if gradient_at else 0, none.dtype), none, NO_CURVATURE,
        n_classes, n_pixels, 0, n_rows,
    )  # fmt: skip
    if total_at:
        # A mean of no rows is 0 / 0, which is NaN, as it is in torch.
        _array(total_at, 1, none.dtype)[0] = total / total_weight if of_mean else total
    return -1


@inlined
def _array(address: int, size: int, dtype: Any) -> Array:
    array: Array = carray(_pointer(address), size, dtype)
    return array


def _pointer_of(_context: Any, address: Any) -> Any:
    """Return a pointer to an address."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], _cgutils.voidptr_t)

    return types.voidptr(address), build


_cgutils: Any = cgutils
_pointer: Any = intrinsic(_pointer_of)


@inlined
def _exponentials(
    x: Array, at: Position, k: Position, n_rows: int, e: Array, largest: Array, totals: Array
) -> None:
    """Write exp(x - largest) of each row, its largest entry, and the sum."""
    for r in range(n_rows):
        row = _U(r) * k
        largest[r] = _largest(x, at + row, k)
        if k < _SHORT:
            _subtract(x, at + row, k, largest[r], e, row)
        else:
            totals[r] = _exponentiate_and_sum(x, at + row, k, largest[r], e, row)
    if k < _SHORT:
        _exponentiate(e, _U(n_rows) * k)
        for r in range(n_rows):
            totals[r] = sum_of(e, _U(r) * k, k)


@inlined
def _sum_blocks(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    e: Array, e_at: Position, k: Position, label: int,
    block_of: Array, start: Array, members: Array, is_range: Array, sums: Array, at: Position,
    n_sums: Position,
) -> None:  # fmt: skip
    """Write the sum of each block that holds the label."""
    for t in range(n_sums):
        ids_at = _U(t) * k
        b = block_of[ids_at + _U(label)]
        own = _U(start[b])
        size = _U(start[b + 1]) - own
        if is_range[b]:
            sums[at + _U(t)] = sum_of(e, e_at + _U(members[own]), size)
        elif _is_large(size, k):
            sums[at + _U(t)] = sum_where(e, e_at, k, block_of, ids_at, b)
        else:
            sums[at + _U(t)] = _sum_at(e, e_at, members, own, size)


@inlined
def _finish_row(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    e: Array, e_at: Position, k: Position, total: float, log_total: float, largest: float,
    sums: Array, logs: Array, sums_at: Position, label: int, factor: float,
    x: Array, x_at: Position, x_step: Position,
    block_of: Array, start: Array, members: Array, is_range: Array, weights: Array,
    singleton_weight: float, total_weight: float, g: Array, g_at: Position, with_gradient: bool,
) -> float:  # fmt: skip
    """Return the loss of a row, and write its gradient times the factor."""
    y = _U(label)
    loss: float = singleton_weight * (log_total - (x[x_at + y * x_step] - largest))
    if with_gradient:
        _scaled(e, e_at, k, factor * total_weight / total, g, g_at)
        g[g_at + y] -= factor * singleton_weight
    for t in range(weights.size):
        ids_at, weight, inside = _U(t) * k, weights[t], sums[sums_at + _U(t)]
        b = block_of[ids_at + y]
        own = _U(start[b])
        size = _U(start[b + 1]) - own
        if inside < _trusted(e, k):
            own_largest = _largest_of_block(x, x_at, x_step, members, own, size)
            own_total = _sum_of_block(x, x_at, x_step, members, own, size, own_largest)
            loss += weight * (log_total - (own_largest - largest) - math.log(own_total))
            if with_gradient and own_total > 0:
                share = factor * weight / own_total
                for p in range(size):
                    c = _U(members[own + p])
                    g[g_at + c] -= share * math.exp(x[x_at + c * x_step] - own_largest)
            continue
        loss += weight * (log_total - logs[sums_at + _U(t)])
        if with_gradient:
            share, first = factor * weight / inside, _U(members[own])
            if is_range[b]:
                _subtract_scaled(e, e_at + first, size, share, g, g_at + first)
            elif _is_large(size, k):
                _subtract_scaled_where(e, e_at, k, block_of, ids_at, b, share, g, g_at)
            else:
                _subtract_scaled_at(e, e_at, members, own, size, share, g, g_at)
    return loss


@inlined
def _is_large(size: Position, k: Position) -> bool:
    """Whether comparing the ids of all classes is faster than reading a block's members."""
    return bool(size * _U(8) > k and size > _U(16))


@inlined
def _trusted(e: Array, k: Position) -> float:
    """Return the least sum in which terms cut off to 0 make no difference: k * smallest / eps."""
    return float((2e-31 if e.itemsize == 4 else 2e-292) * k)


# Blocks that are recomputed: rare, so exact rather than fast


@inlined
def _largest_of_block(
    x: Array, at: Position, step: Position, members: Array, own: Position, size: Position
) -> float:
    largest = -1e308  # not -inf: in a block of only -inf, differences would be NaN
    for p in range(own, own + size):
        largest = max(largest, x[at + _U(members[p]) * step])
    return largest


@inlined
def _sum_of_block(
    x: Array, at: Position, step: Position, members: Array, own: Position, size: Any, largest: float
) -> float:
    total = 0.0
    for p in range(size):
        total += math.exp(x[at + _U(members[own + p]) * step] - largest)
    return total


@inlined
def _curvatures(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    kind: int, e: Array, k: Position, totals: Array, row_weights: Array, scale: float,
    begin: int, n_rows: int,
    start: Array, members: Array, weights: Array, singleton_weight: float, g: Array, h: Array,
) -> None:  # fmt: skip
    """Write the curvatures of a tile: |gradient|, W q(1 - q) or sum_t w_t q (q / Q(B_t) - q)."""
    if kind == GRADIENT:
        _magnitudes(g, h, _U(begin) * k, _U(n_rows) * k)
        return
    weight = singleton_weight
    if kind == BOUND:
        weight += sum_of(weights, _U(0), _U(weights.size))
    for r in range(n_rows):
        e_at, at = _U(r) * k, _U(begin + r) * k
        factor, inverse = row_weights[begin + r] * scale, 1 / totals[r]
        _variances(e, e_at, k, inverse, factor * weight, h, at)
        if kind == FISHER:
            for b in range(start.size - 1):
                own = _U(start[b])
                size = _U(start[b + 1]) - own
                inside = _sum_at(e, e_at, members, own, size)
                share = factor * weights[own // k]  # each partition has k members
                # A block that underflowed adds less than the floor. Rounding must not subtract.
                if inside > _trusted(e, k):
                    for p in range(size):
                        c = _U(members[own + p])
                        q = e[e_at + c] * inverse
                        h[at + c] += share * q * max(e[e_at + c] / inside - q, 0.0)


# Loops over a row, each simple enough to be done eight numbers at a time


@inlined
def _gather_pixels(
    x: Array, at: Position, step: Position, k: Position, n_rows: Position, out: Array
) -> None:
    for j in range(k):
        for r in range(n_rows):
            out[r * k + j] = x[at + j * step + r]


@inlined
def _scatter_pixels(
    x: Array, k: Position, n_rows: Position, out: Array, at: Position, step: Position
) -> None:
    for j in range(k):
        for r in range(n_rows):
            out[at + j * step + r] = x[r * k + j]


@inlined
def _largest(x: Array, at: Position, n: Position) -> Any:
    """Return the largest entry, NaN if there is one: compared as integers, which vectorises."""
    largest = ordered(x[at])
    for j in range(n):
        key = ordered(x[at + j])
        largest = key if key > largest else largest
    return unordered(largest)


@inlined
def _subtract(x: Array, at: Position, n: Position, shift: float, out: Array, to: Position) -> None:
    for j in range(n):
        out[to + j] = x[at + j] - shift


@inlined
def _exponentiate(x: Array, n: Position) -> None:
    for j in range(n):
        x[j] = exp(x[j])


@inlined
def _exponentiate_and_sum(
    x: Array, at: Position, n: Position, shift: float, out: Array, to: Position
) -> Any:
    total, done = x.dtype.type(0), _U(0)
    while done < n:
        size = min(_U(_SHORT), n - done)  # few enough to be in the nearest cache when summed
        for j in range(done, done + size):
            out[to + j] = exp(x[at + j] - shift)
        total += sum_of(out, to + done, size)
        done += size
    return total


@inlined
def _logarithms(x: Array, n: Position, out: Array) -> None:
    for j in range(n):
        out[j] = log(x[j])


@inlined
def _scaled(x: Array, at: Position, n: Position, factor: float, out: Array, to: Position) -> None:
    factor = out.dtype.type(factor)
    for j in range(n):
        out[to + j] = x[at + j] * factor


@inlined
def _magnitudes(x: Array, out: Array, at: Position, n: Position) -> None:
    floor = out.dtype.type(_FLOOR)
    for j in range(n):
        out[at + j] = abs(x[at + j]) if abs(x[at + j]) > floor else floor


@inlined
def _variances(
    e: Array, e_at: Position, n: Position, inverse: float, factor: float, h: Array, at: Position
) -> None:
    real = h.dtype.type
    one, floor, inverse, factor = real(1), real(_FLOOR), real(inverse), real(factor)
    for j in range(n):
        q = e[e_at + j] * inverse
        q = factor * q * (one - q)
        h[at + j] = q if q > floor else floor


@inlined
def _subtract_scaled(
    x: Array, at: Position, n: Position, factor: float, out: Array, to: Position
) -> None:
    factor = out.dtype.type(factor)
    for j in range(n):
        out[to + j] -= x[at + j] * factor


@inlined
def _subtract_scaled_where(  # noqa: PLR0913, PLR0917  plain arrays, not an object of them
    x: Array, at: Position, n: Position, ids: Array, ids_at: Position, wanted: int,
    factor: float, out: Array, to: Position,
) -> None:  # fmt: skip
    factor, zero = out.dtype.type(factor), out.dtype.type(0)
    for j in range(n):
        out[to + j] -= x[at + j] * (factor if ids[ids_at + j] == wanted else zero)


@inlined
def _subtract_scaled_at(
    x: Array, at: Position, members: Array, own: Position, n: Position,
    factor: float, out: Array, to: Position,
) -> None:  # fmt: skip
    factor = out.dtype.type(factor)
    for p in range(n):
        j = _U(members[own + p])
        out[to + j] -= x[at + j] * factor


@inlined
def _sum_at(x: Array, at: Position, members: Array, own: Position, n: Position) -> Any:
    # Four sums side by side, so that no addition waits for the last one.
    a = b = c = d = x.dtype.type(0)
    p, end = own, own + n
    while p + _U(4) <= end:
        a += x[at + _U(members[p])]
        b += x[at + _U(members[p + _U(1)])]
        c += x[at + _U(members[p + _U(2)])]
        d += x[at + _U(members[p + _U(3)])]
        p += _U(4)
    while p < end:
        a += x[at + _U(members[p])]
        p += _U(1)
    return (a + b) + (c + d)
