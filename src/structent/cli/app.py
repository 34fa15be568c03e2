"""What ``structent --help`` lists; a command is imported when it is run."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

import structent


class _Command(NamedTuple):
    module: str
    function: str
    help: str
    examples: tuple[str, ...]


# The help repeats the first sentence of the function, so that --help need not import it.
COMMANDS = {
    "compare": _Command(
        "compare", "compare",
        "Train with and without the structure, and say whether to use it.",
        (
            "structent compare plants.csv --target species --structure hierarchy:columns=genus",
            "structent compare shirts.csv --target size --structure 'ordinal:order=S|M|L|XL'",
            "structent compare days.csv --target month --structure months --report report.html",
            "structent compare hours.csv --target hour --structure circular:width=6 --group date",
        ),
    ),
    "test": _Command(
        "test", "structure_significance",
        "Test whether the structure helps more than the same structure with its classes scrambled.",
        ("structent test plants.csv --target species --structure hierarchy:columns=genus",),
    ),
    "train": _Command(
        "models", "train",
        "Train a model with the structure on all rows that are not held out.",
        ("structent train days.csv --target month --structure months --save months.structent",),
    ),
    "predict": _Command(
        "models", "predict", "Write the predictions of a model for the rows of a table.",
        (
            "structent predict plants.structent new.csv -o predictions.csv",
            "structent predict plants.structent new.csv -o answers.csv --confidence 0.9",
        ),
    ),
    "evaluate": _Command(
        "models", "evaluate", "Score a model on the rows of a table, level by level.",
        ("structent evaluate plants.structent labelled.csv",),
    ),
    "structure": _Command(
        "structures", "app", "Look at structures, check and convert them.",
        (
            "structent structure show circular:width=2 --classes north,east,south,west",
            "structent structure check species.csv plants.csv --target species",
            "structent structure convert species.csv -o species.json",
        ),
    ),
    "entropy": _Command(
        "structures", "entropy",
        "Measure the entropy of the labels, and what each feature tells about them.",
        ("structent entropy plants.csv --target species --structure hierarchy:columns=genus",),
    ),
    "demo": _Command(
        "demo", "demo",
        "See compare answer two questions about real weather data.",
        ("structent demo", "structent demo --folder reports"),
    ),
}  # fmt: skip


class _Commands(TyperGroup):
    """A group that imports a command only when it is run."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, without a type in the help."""
        return _without_type(super().get_help_option(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command to run, the command itself, and its arguments."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in if name is None else loaded(name), rest


def loaded(name: str) -> Any:
    """Return a command by its name, importing what it needs."""
    found = COMMANDS[name]
    if sys.stderr.isatty():  # imports take seconds; the next output overwrites this line
        sys.stderr.write("Getting ready ...\r")
        sys.stderr.flush()
    function = getattr(import_module(f"structent.cli.{found.module}"), found.function)
    # Blank lines keep the examples on lines of their own.
    examples = "\n\n".join(("Examples:", *found.examples))
    if isinstance(function, typer.Typer):
        function.info.epilog = examples
        return without_types_of_flags(typer.main.get_command(function))
    alone = typer.Typer(add_completion=False)
    alone.command(name, epilog=examples)(function)
    return without_types_of_flags(typer.main.get_command(alone))


def without_types_of_flags(command: Any) -> Any:
    """Return a command whose help does not say ``<bool>`` beside options that take no value."""
    for each in (command, *getattr(command, "commands", {}).values()):
        for option in each.params:
            _without_type(option)
        help_option = each.get_help_option
        each.get_help_option = lambda ctx, made=help_option: _without_type(made(ctx))
    return command


def _without_type(option: Any) -> Any:
    """Return an option; if it is a flag, the help shows no type beside it."""
    if getattr(option, "is_flag", False):
        option.metavar = ""
    return option


app = typer.Typer(
    cls=_Commands,
    help="Teach classifiers how their labels are related.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"structent {structent.__version__}")
        raise typer.Exit


@app.callback()
def options_of_all(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            metavar="",
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Teach classifiers how their labels are related."""


def _stand_in() -> None:
    """Placeholder in the list for a command that is not imported yet."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help)(_stand_in)
