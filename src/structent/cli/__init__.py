"""The ``structent`` command."""

import sys

from structent._optional import load_optional
from structent.errors import StructentError


def main() -> None:
    """Run the command line: every error of the user's is one sentence, never a traceback."""
    try:
        load_optional("typer", extra="cli", purpose="The structent command")
        from structent.cli.app import app  # noqa: PLC0415  needs typer, which may be missing

        app()
    except StructentError as error:
        print(f"structent: {error}", file=sys.stderr)
        sys.exit(2)
