"""``structent demo``: two questions about real weather, and the commands for your own table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.text import Text

from structent.cli.options import Columns, read_question
from structent.cli.output import Output, check_outputs, command_line
from structent.datasets import jfk_weather_file, seattle_weather_file
from structent.studies import compare

_MODEL = "boosting"


class _Act(NamedTuple):
    """A question: its words, the table, and what ``structent compare`` would be given."""

    name: str
    question: str
    data: Path
    target: str
    structure: str
    columns: Columns
    group: str | None = None
    repeats: int | None = None

    @property
    def command(self) -> str:
        given = {"--model": _MODEL, "--group": self.group, "--repeats": self.repeats}
        more = [f"{option} {value}" for option, value in given.items() if value is not None]
        start = f"structent compare {self.data.name} --target {self.target}"
        return " ".join([start, f"--structure {self.structure}", *more])


_ACTS = (
    _Act(
        "hours",
        "Can the weather at New York's JFK airport tell the hour of the day? Hours form a "
        "circle: 23 is next to 0.",
        jfk_weather_file(),
        "hour",
        "circular:width=6",
        Columns(None, None, None),
        group="date",  # neighbouring hours are alike
        repeats=1,  # enough here, and the demonstration is short
    ),
    _Act(
        "months",
        "Can the weather of a day in Seattle tell the month? Months form a circle, too.",
        seattle_weather_file(),
        "month",
        "circular:width=3",
        Columns("precipitation,temp_max,temp_min,wind", None, None),
    ),
)
_NEXT = """With your own table:
  structent compare table.csv --target label --structure ordinal --report report.html
  structent compare table.csv --target label --structure ordinal --save model.structent
  structent predict model.structent new.csv -o predictions.csv
In place of ordinal: circular:width=3, hierarchy:columns=genus,family, graph:edges.csv, ..."""


def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the two HTML reports.")] = Path(),
) -> None:
    """See compare answer two questions about real weather data."""
    output = Output(as_json=False, quiet=False)
    reports = {act.name: folder / f"structent-demo-{act.name}.html" for act in _ACTS}
    check_outputs({f"the report on {name}": path for name, path in reports.items()}, [])
    for number, act in enumerate(_ACTS, start=1):
        _play(number, act, reports[act.name], output)
    output.console.print(Text(_NEXT), soft_wrap=True)


def _play(number: int, act: _Act, report: Path, output: Output) -> None:
    """Ask one question, print the answer, and write the report."""
    asked = read_question(act.data, act.target, act.structure, act.columns, act.group)
    print_line = output.console.print
    print_line(Text(f"{number}. {act.question}", style="bold"))
    with output.progress() as on_progress:
        found = compare(
            asked.table.features, asked.table.labels, asked.specified.structure, model=_MODEL,
            groups=asked.table.groups, random_state=0, n_repeats=act.repeats, progress=on_progress,
        )  # fmt: skip
    found.to_html(
        report, data=act.data.name, target=act.target, structure_name=act.structure,
        group=act.group, notes=asked.notes, cautions=asked.cautions, command=command_line(),
    )  # fmt: skip
    print_line(Text(f"   {act.command}"), soft_wrap=True)
    rows = f"{found.task.n_rows:,} rows, {len(found.task.classes)} classes"
    print_line(Text(f"   {rows}, {found.plan.cross_validation}, {found.seconds:.0f} seconds"))
    print_line(Text(f"   {found.verdict.sentence}", style="green"))
    print_line(Text(f"   The report: {report}\n"))
