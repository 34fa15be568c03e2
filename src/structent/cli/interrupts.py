"""Ctrl-C, where Python would print it and go on."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SOON = 0.01  # seconds


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Raise Ctrl-C after all if it fell where Python cannot raise it.

    That is where a library written in C calls Python, or an object is deleted. The library goes on,
    or fails because it was not given what it had asked for: either way this ends with a
    ``KeyboardInterrupt``.
    """
    before = sys.unraisablehook
    again: threading.Timer | None = None

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        nonlocal again
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # Not at once: it would be raised in here, and be lost like the first.
            again = threading.Timer(_SOON, _interrupt, [threading.get_ident()])
            again.start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
        if again is not None:
            raise KeyboardInterrupt
    except Exception as error:
        if again is not None:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before
        if again is not None:
            again.cancel()
            again.join()


def _interrupt(thread: int) -> None:
    """Interrupt the main thread, even if it sleeps, where that is possible."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()
