"""Numba compilation that works wherever the package is installed.

Numba caches machine code beside the source or in the user's cache folder. Where neither can be
written (a read-only image, a full disk), it raises; here the code is compiled in memory instead.

Numba renews the cache of a kernel only when the kernel's own file changes. So a kernel and all
compiled functions that it calls are in one file.
"""

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

# error_model="numpy": division by zero gives inf or nan, as everywhere else in NumPy code.
# fastmath={"contract"}: a * b + c may be one instruction, which only makes it more exact.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled functions of the same file call."""
    compiled: Callable[P, R] = njit(forceinline=True, **OPTIONS)(function)
    return compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, and cache its machine code where that is possible."""
    in_memory: Callable[P, R] = njit(**OPTIONS)(function)
    try:
        cached: Callable[P, R] = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # "no locator available": no cache folder can be written
        return in_memory

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return cached(*args, **kwargs)
        except OSError:  # the cache was there at import and has since become unusable
            return in_memory(*args, **kwargs)

    return call


def within(function: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel in the form that other kernels call: it is compiled and cached with them.

    It may be in another file if a digest of that file guards the cache.
    """
    compiled: Callable[P, R] = njit(**OPTIONS)(unwrap(function))
    return compiled
