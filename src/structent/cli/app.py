"""The commands: what ``structent --help`` lists."""

from typing import Annotated

import typer
from rich.console import Console

from structent import __version__
from structent.cli.demo import show_hospital

app = typer.Typer(
    help="Teach classifiers how their labels are related.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"structent {__version__}")
        raise typer.Exit


@app.callback()
def structent(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Teach classifiers how their labels are related."""


@app.command()
def demo() -> None:
    """Show structured entropy on the hospital example of the paper."""
    show_hospital(Console())
