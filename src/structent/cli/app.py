"""The commands: what ``structent --help`` lists."""

from typing import Annotated

import typer

from structent import __version__
from structent.cli import structures
from structent.cli.compare import compare
from structent.cli.demo import demo
from structent.cli.models import evaluate, predict, train
from structent.cli.reproduce import reproduce
from structent.cli.significance import structure_significance

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


for command in (compare, train, predict, evaluate, structures.entropy, demo, reproduce):
    app.command()(command)
app.command("test")(structure_significance)
app.add_typer(structures.app, name="structure")
