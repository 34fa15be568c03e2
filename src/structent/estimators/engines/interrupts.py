"""Ctrl-C, kept until a library is done with what must not be broken off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_postponed() -> Iterator[None]:
    """Raise an interrupt at the end of the block, if one came meanwhile.

    XGBoost asks Python for rows several times while it builds a matrix. An interrupt that falls
    into such a question is lost, XGBoost takes it for the end of the rows, and the memory of the
    process may be damaged.
    """
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
