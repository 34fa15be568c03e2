"""Ctrl-C: the command ends at once, wherever it is.

This file is loaded before all others, and until then Python would print a traceback. So it imports
next to nothing: the module ``signal`` itself takes ten times as long as all that comes before.
"""

import _signal as signal
import os

BROKEN_OFF = 130  # the exit code that shells give to a program ended by Ctrl-C
_BAR_AWAY = b"\r\x1b[2K\x1b[?25h"  # clears the line of a progress bar and shows the cursor again


def end_on_interrupt(program: str) -> None:
    """Let Ctrl-C end the process from now on, with one sentence and exit code 130.

    An exception is not enough: it is lost where a library written in C calls Python or where an
    object is deleted, and imports of compiled modules make other errors of it. Where interrupts are
    ignored, they stay ignored.
    """
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, lambda _number, _frame: break_off(program))


def break_off(program: str) -> None:
    """End at once: threads that are growing trees could not be ended in an orderly way.

    Files are written whole or not at all, and an interrupt waits for a write that is under way.
    """
    sentence = f"{program}: broken off; no file was left half written\n".encode()
    # Not by print, which fails if the interrupt fell into another print.
    os.write(2, _BAR_AWAY + sentence if os.isatty(2) else sentence)
    os._exit(BROKEN_OFF)
