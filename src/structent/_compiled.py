"""Numba compilation that works wherever the package is installed.

Numba caches machine code beside the source or in the user's cache folder. Where neither can be
written (a read-only image, a full disk), it raises; here the code is compiled in memory instead.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

# error_model="numpy": division by zero gives inf or nan, as everywhere else in NumPy code.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled functions of the same file call."""
    compiled: Callable[P, R] = njit(**_OPTIONS)(function)
    return compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, and cache its machine code if a cache can be had."""
    in_memory: Callable[P, R] = njit(**_OPTIONS)(function)
    try:
        cached: Callable[P, R] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # "no locator available": no cache folder can be written
        return in_memory

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return cached(*args, **kwargs)
        except OSError:  # the cache was there at import and has since become unusable
            return in_memory(*args, **kwargs)

    return call
