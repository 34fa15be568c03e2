"""How a failed command ends: with one sentence, and an exit code for the kind of failure."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from structent.cli.interrupts import BROKEN_OFF, break_off
from structent.errors import StructentError


@contextmanager
def warnings_kept_back() -> Iterator[None]:
    """Hide warnings of libraries, which are written for people who call them from Python.

    The command tells its users what they should know in its own words. ``STRUCTENT_DEBUG=1``
    shows all warnings.
    """
    with warnings.catch_warnings():
        if not os.environ.get("STRUCTENT_DEBUG"):
            # scikit-learn warns about text labels that occur once; numbers are refused earlier.
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            warnings.showwarning = lambda *_arguments, **_options: None
        yield


@contextmanager
def errors_told_in_a_sentence(program: str) -> Iterator[None]:
    """End a program that fails with one sentence, never with a traceback.

    The exit code is 2 for wrong usage or input, 1 for what failed while running, 130 for Ctrl-C.
    """
    try:
        yield
    except StructentError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # of a library that looks out for Ctrl-C itself
        break_off(program)
    except SystemExit as ended:
        if ended.code == BROKEN_OFF:  # Typer's way to pass an interrupt on
            break_off(program)
        raise
    except Exception as error:
        if os.environ.get("STRUCTENT_DEBUG"):
            raise
        print(
            f"{program}: failed while running: {type(error).__name__}: {error} "
            "(STRUCTENT_DEBUG=1 shows where)",
            file=sys.stderr,
        )
        sys.exit(1)
