"""The commands: what ``structent --help`` lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from structent import __version__
from structent.cli import structures
from structent.cli.compare import compare
from structent.cli.models import evaluate, predict, train
from structent.cli.test import structure_significance
from structent.datasets import seattle_weather_file

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


def demo(
    report: Annotated[Path, typer.Option(help="Where to write the HTML report.")] = Path(
        "structent-demo.html"
    ),
) -> None:
    """Does it help to know that months form a circle? On 1,461 days of Seattle's weather."""
    compare(
        seattle_weather_file(),
        target="month",
        structure="circular:width=3",
        features="precipitation,temp_max,temp_min,wind",
        repeats=1,
        budget=0.75,
        report=report,
    )


for command in (compare, train, predict, evaluate, structures.entropy, demo):
    app.command()(command)
app.command("test")(structure_significance)
app.add_typer(structures.app, name="structure")
