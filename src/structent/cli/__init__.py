"""The ``structent`` command."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from structent._optional import require_optional
from structent.cli.interrupts import no_interrupt_lost
from structent.errors import StructentError

_BROKEN_OFF = 130  # the exit code that shells give to a program ended by Ctrl-C


def main() -> None:
    """Run the command line."""
    with errors_told_in_a_sentence("structent"), warnings_kept_back():
        for package in ("typer", "polars", "jinja2", "matplotlib", "sklearn"):
            require_optional(package, extra="cli", purpose="The structent command")
        from structent.cli.app import app  # noqa: PLC0415  needs what may be missing

        app()


@contextmanager
def warnings_kept_back() -> Iterator[None]:
    """Show no warning of a library: it is written for those who call it from Python.

    What a user of the command should know is told in its own words; ``STRUCTENT_DEBUG=1`` shows
    all warnings.
    """
    with warnings.catch_warnings():
        if not os.environ.get("STRUCTENT_DEBUG"):
            # scikit-learn's, of every text label that occurs once; numbers are refused before.
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            warnings.showwarning = lambda *_arguments, **_options: None
        yield


@contextmanager
def errors_told_in_a_sentence(program: str) -> Iterator[None]:
    """Let a program end with one sentence where it fails, never with a traceback.

    The exit code is 2 for wrong usage or input, 1 for what failed while running, 130 for Ctrl-C.
    """
    try:
        with no_interrupt_lost():
            yield
    except StructentError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        _break_off(program)
    except SystemExit as ended:
        if ended.code == _BROKEN_OFF:
            _break_off(program)
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


def _break_off(program: str) -> None:
    """End at once: threads that are growing trees could not be ended in an orderly way.

    Files are written whole or not at all, so that none is left half.
    """
    print(f"{program}: broken off; no file was left half written", file=sys.stderr, flush=True)
    os._exit(_BROKEN_OFF)
