"""The ``structent`` command."""

import os
import sys

from structent._optional import require_optional
from structent.cli.interrupts import no_interrupt_lost
from structent.errors import StructentError

_BROKEN_OFF = 130  # the exit code that shells give to a program ended by Ctrl-C


def main() -> None:
    """Run the command line: every error is one sentence, never a traceback.

    The exit code is 2 for wrong usage or input, 1 for what failed while running, 130 for Ctrl-C.
    """
    try:
        with no_interrupt_lost():
            for package in ("typer", "polars", "jinja2", "matplotlib", "xgboost"):
                require_optional(package, extra="cli", purpose="The structent command")
            from structent.cli.app import app  # noqa: PLC0415  needs what may be missing

            app()
    except StructentError as error:
        print(f"structent: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        _break_off()
    except SystemExit as ended:
        if ended.code == _BROKEN_OFF:
            _break_off()
        raise
    except Exception as error:
        if os.environ.get("STRUCTENT_DEBUG"):
            raise
        print(
            f"structent: failed while running: {type(error).__name__}: {error} "
            "(STRUCTENT_DEBUG=1 shows where)",
            file=sys.stderr,
        )
        sys.exit(1)


def _break_off() -> None:
    """End at once: threads that are growing trees could not be ended in an orderly way.

    Files are written whole or not at all, so that none is left half.
    """
    print("structent: broken off; no file was left half written", file=sys.stderr, flush=True)
    os._exit(_BROKEN_OFF)
