"""Ctrl-C: the command ends at once, wherever it is.

Until this file is loaded, Ctrl-C prints a traceback. So it is loaded first and imports almost
nothing: the module ``signal`` alone takes ten times as long as everything before it.
"""

import _signal as signal
import os

BROKEN_OFF = 130  # the exit code that shells give to a program ended by Ctrl-C
_BAR_AWAY = b"\r\x1b[2K\x1b[?25h"  # clears the line of a progress bar and shows the cursor again


def end_on_interrupt(program: str) -> None:
    """Let Ctrl-C end the process from now on, with one sentence and exit code 130.

    An exception is not enough. It is lost when a C library calls Python or when an object is
    deleted, and imports of compiled modules turn it into other errors. Interrupts that are ignored
    stay ignored.
    """
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, lambda _number, _frame: break_off(program))


def break_off(program: str) -> None:
    """End at once: threads that are growing trees could not be ended in an orderly way.

    Files are written whole or not at all, and an interrupt waits for a write that is under way.
    """
    sentence = f"{program}: interrupted; no file was left incomplete\n".encode()
    # print would fail if the interrupt came during another print.
    os.write(2, _BAR_AWAY + sentence if os.isatty(2) else sentence)
    os._exit(BROKEN_OFF)
