"""Keep the memory that arrays give back, instead of asking the system for it anew."""

from __future__ import annotations

import ctypes
import sys

# Of glibc's malloc.h; another C library has no mallopt, or takes no notice.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER = 2**31 - 1
_ASKED_AT_A_TIME = 64 * 2**20  # bytes


def keep_freed_memory() -> None:
    """Let this process keep what it frees.

    A network makes large arrays at every layer of every step. By default each of them is mapped
    and unmapped, and the system clears every page of it: on a virtual machine that took longer
    than the arithmetic (a small network then trains 0.8 times, and predicts half as fast).
    """
    if sys.platform != "linux":  # where glibc is
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, _NEVER)
        mallopt(_TOP_PAD, _ASKED_AT_A_TIME)
