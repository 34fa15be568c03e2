"""Ctrl-C ends the command, wherever it falls."""

import os
import subprocess
import sys

import pytest

BEGIN = "import ctypes, signal, sys, time; from structent.cli.interrupts import end_on_interrupt\n"
INTERRUPT = "signal.raise_signal(signal.SIGINT)"
SENTENCE = "program: interrupted; no file was left incomplete\n"


def ended(*lines, launcher=()):
    """Return how a program ends that runs these lines once it takes care of Ctrl-C."""
    code = "\n".join([BEGIN, "end_on_interrupt('program')", *lines, "print('went on')"])
    done = subprocess.run(
        [*launcher, sys.executable, "-c", code], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        (INTERRUPT,),
        ("try:", f"    {INTERRUPT}", "except BaseException: pass"),
        (f"ctypes.CFUNCTYPE(None)(lambda: {INTERRUPT})()",),
        ("class Deleted:", f"    def __del__(self): {INTERRUPT}", "Deleted()"),
        ("sys.unraisablehook = lambda _about: None", "class Deleted:",
         f"    def __del__(self): {INTERRUPT}", "Deleted()"),
    ],
    ids=["anywhere", "where all exceptions are caught", "called by C", "deleted", "with a hook"],
)  # fmt: skip
def test_it_ends_the_program(lines):
    assert ended(*lines) == (130, "", SENTENCE)


def test_one_that_comes_while_something_is_printed_ends_the_program():
    loop = "while True: print('x', file=sys.stderr)"
    timer = "import threading; threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()"
    code, out, err = ended(timer, loop)
    assert (code, out) == (130, "")
    assert err.endswith(SENTENCE)
    assert "Traceback" not in err


def test_who_ignores_them_goes_on_to():
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    assert ended(INTERRUPT, launcher=ignoring) == (0, "went on\n", "")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_on_a_terminal_the_cursor_comes_back_that_a_progress_bar_hid():
    ours, theirs = os.openpty()
    code = f"{BEGIN}end_on_interrupt('program'); {INTERRUPT}"
    done = subprocess.run([sys.executable, "-c", code], stderr=theirs, check=False, timeout=60)
    os.close(theirs)
    told = os.read(ours, 1000)
    os.close(ours)
    assert done.returncode == 130
    assert told.startswith(b"\r\x1b[2K\x1b[?25h")


def test_the_command_takes_care_of_them_before_it_imports_anything_large():
    code = (
        "import sys; before = set(sys.modules)\n"
        "from structent.cli import main\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["structent", "structent.cli", "structent.cli.interrupts"]
