"""``structent demo``: the comparison on data that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from structent.cli.compare import compare
from structent.datasets import seattle_weather_file


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
