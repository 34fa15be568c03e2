"""Postpones Ctrl-C until a file is written, or until a library in C returns."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_postponed() -> Iterator[None]:
    """Raise an interrupt at the end of the block, if one came during it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # interrupts are raised in the main thread, if at all
        return
    came: list[tuple[Any, Any]] = []
    signal.signal(signal.SIGINT, lambda *about: came.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])
