"""Arithmetic on the bits of float32 and float64 numbers, for loops that must not branch."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.extending import overload

from structent._compiled import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])


def _for_each_type(stub: Callable[..., Any]) -> Callable[[F], F]:
    """Let the decorated function choose the compiled version of the stub by its argument's type."""
    decorator: Any = overload
    chosen: Callable[[F], F] = decorator(stub, jit_options=OPTIONS)
    return chosen


def exp(x: Any) -> Any:
    """Return exp(x) for x <= 0, or 0 if that is not a normal number, without a branch."""
    return math.exp(x)


def log(x: Any) -> Any:
    """Return log(x) for normal x > 0; in float32 without a branch."""
    return math.log(x)


def ordered(x: Any) -> Any:
    """Return the bits of a number as an integer that is ordered as the numbers are."""
    return x


def unordered(x: Any) -> Any:
    """Return the number whose ordered bits these are."""
    return x


def _exp32(x: Any) -> Any:
    # x = n log 2 + r. Adding and subtracting 1.5 * 2^23 rounds to the whole number n, and leaves n
    # in the lowest bits, from where it is shifted to the place of an exponent.
    smallest, magic = np.float32(-87.33654), np.float32(12582912.0)
    c = smallest if x < smallest else x
    shifted = c * np.float32(1.4426950408889634) + magic
    n = shifted - magic
    r = c - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    # The series of exp(r) up to r^7 / 7!, |r| <= log(2) / 2: its error is 5e-9.
    p = np.float32(1 / 5040) * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(1 / 2)
    p = p * r + np.float32(1)
    p = p * r + np.float32(1)
    bits = (np.float32(shifted).view(np.int32) << np.int32(23)) + np.int32(0x3F800000)
    return np.float32(0) if x < smallest else p * np.int32(bits).view(np.float32)


def _exp64(x: Any) -> Any:
    smallest, magic = -708.39, 6755399441055744.0
    c = smallest if x < smallest else x
    shifted = c * 1.4426950408889634 + magic
    n = shifted - magic
    r = c - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10
    # The series up to r^13 / 13!: its error is 4e-18.
    p = 1 / 6227020800 * r + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 1 / 2
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(shifted).view(np.int64) << np.int64(52)) + np.int64(0x3FF0000000000000)
    return 0.0 if x < smallest else p * np.int64(bits).view(np.float64)


def _log32(x: Any) -> Any:
    # x = 2^n * m with m between sqrt(1/2), whose bits are 0x3F3504F3, and sqrt(2).
    bits = np.int32(np.float32(x).view(np.int32) - np.int32(0x3F3504F3))
    n = np.float32(bits >> np.int32(23))
    m = np.int32((bits & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32)
    r = m - np.float32(1)
    # log(1 + r) = r - r^2 / 2 + r^3 p(r), the polynomial p from the Cephes library.
    p = np.float32(7.0376836292e-2) * r + np.float32(-1.1514610310e-1)
    p = p * r + np.float32(1.1676998740e-1)
    p = p * r + np.float32(-1.2420140846e-1)
    p = p * r + np.float32(1.4249322787e-1)
    p = p * r + np.float32(-1.6668057665e-1)
    p = p * r + np.float32(2.0000714765e-1)
    p = p * r + np.float32(-2.4999993993e-1)
    p = p * r + np.float32(3.3333331174e-1)
    square = r * r
    tail = r * square * p + n * np.float32(-2.12194440e-4) - np.float32(0.5) * square
    return r + tail + n * np.float32(0.693359375) if x == x else x  # noqa: PLR0124  NaN stays


def _log64(x: Any) -> Any:
    return math.log(x)


def _ordered32(x: Any) -> Any:
    bits = np.float32(x).view(np.int32)
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


def _ordered64(x: Any) -> Any:
    bits = np.float64(x).view(np.int64)
    return np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)))


def _unordered32(x: Any) -> Any:
    return np.int32(x ^ ((x >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


def _unordered64(x: Any) -> Any:
    return np.int64(x ^ ((x >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@_for_each_type(exp)
def _exp_for(x: Any) -> Any:
    return _exp32 if x == types.float32 else _exp64


@_for_each_type(log)
def _log_for(x: Any) -> Any:
    return _log32 if x == types.float32 else _log64


@_for_each_type(ordered)
def _ordered_for(x: Any) -> Any:
    return _ordered32 if x == types.float32 else _ordered64


@_for_each_type(unordered)
def _unordered_for(x: Any) -> Any:
    return _unordered32 if x == types.int32 else _unordered64
