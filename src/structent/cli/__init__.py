"""The ``structent`` command."""

from structent.cli.interrupts import end_on_interrupt


def main() -> None:
    """Run the command line."""
    end_on_interrupt("structent")  # before the imports, which take seconds
    from structent._optional import require_optional  # noqa: PLC0415
    from structent.cli.failures import (  # noqa: PLC0415
        errors_told_in_a_sentence,
        warnings_kept_back,
    )

    with errors_told_in_a_sentence("structent"), warnings_kept_back():
        for package in ("typer", "polars", "jinja2", "matplotlib", "sklearn"):
            require_optional(package, extra="cli", purpose="The structent command")
        from structent.cli.app import app  # noqa: PLC0415  needs what may be missing

        app()
