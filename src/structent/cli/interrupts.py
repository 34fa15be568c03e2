"""Ctrl-C, where Python would print it and go on, or take it for something else."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SOON = 0.01  # seconds


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """End with a ``KeyboardInterrupt`` if Ctrl-C was pressed, wherever it fell.

    Where a library written in C calls Python, or an object is deleted, Python cannot raise it: the
    library goes on, or fails because it was not given what it had asked for. Where Python calls
    compiled code, it may come out as an error of that call.
    """
    hook_before, handler_before = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    # Else interrupts are ignored, or another thread has them.
    is_told = callable(handler_before) and threading.current_thread() is threading.main_thread()
    came = False
    again: threading.Timer | None = None

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        if callable(handler_before):
            handler_before(number, frame)

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        nonlocal again
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # Not at once: it would be raised in here, and be lost like the first.
            again = threading.Timer(_SOON, _interrupt, [threading.get_ident()])
            again.start()
        else:
            hook_before(unraisable)

    sys.unraisablehook = hook
    if is_told:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
        if came:
            raise KeyboardInterrupt
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        if again is not None:
            again.cancel()
            again.join()
        sys.unraisablehook = hook_before
        if is_told:
            signal.signal(signal.SIGINT, handler_before)


def _interrupt(thread: int) -> None:
    """Interrupt the main thread, even if it sleeps, where that is possible."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()
