"""The ``structent`` command."""

import os
import sys

from structent._optional import load_optional
from structent.errors import StructentError


def main() -> None:
    """Run the command line: every error is one sentence, never a traceback.

    The exit code is 2 for what the user can mend, 1 for what failed while running.
    """
    try:
        for package in ("typer", "polars", "jinja2", "matplotlib", "xgboost"):
            load_optional(package, extra="cli", purpose="The structent command")
        from structent.cli.app import app  # noqa: PLC0415  needs what may be missing

        app()
    except StructentError as error:
        print(f"structent: {error}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if os.environ.get("STRUCTENT_DEBUG"):
            raise
        print(
            f"structent: failed while running: {type(error).__name__}: {error} "
            "(STRUCTENT_DEBUG=1 shows where)",
            file=sys.stderr,
        )
        sys.exit(1)
