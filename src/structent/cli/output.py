"""What commands print: tables and sentences on a terminal, JSON for machines, progress."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from structent._files import save_bytes
from structent.errors import StructentError
from structent.studies.progress import OnProgress

_WRITERS = {".parquet": "write_parquet", ".csv": "write_csv"}
_LOOK_BACK = (
    3600.0  # seconds over which speed is measured for the time left: steps may be minutes apart
)


class Output:
    """Where a command prints: results to stdout, notes and progress to stderr.

    Parameters
    ----------
    as_json
        Whether the result is JSON, and nothing else.
    quiet
        Whether notes and progress are left out.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        # Names are shown as the user wrote them: no markup in "leaf [cm]", no emoji in ":leaf:".
        as_written: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        self.console = Console(**as_written)
        self.messages = Console(stderr=True, **as_written)

    def result(self, shown: Any, as_data: dict[str, Any]) -> None:
        """Print a result: as a person reads it, or as JSON."""
        if self.as_json:
            self.console.print_json(json.dumps(as_data, default=_plain))
        else:
            self.console.print(shown, crop=False)  # what does not wrap is shown whole

    def notes(self, *sentences: str, cautions: Sequence[str] = ()) -> None:
        """Print notes on what was done, and cautions, unless the command is quiet."""
        if not self.quiet and not self.as_json:
            for sentence in sentences:
                self.messages.print(sentence, style="dim")
            for line in caution_lines(cautions):
                self.messages.print(line, soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[OnProgress]:
        """Yield a function that moves a progress bar, if messages go to a terminal."""
        shown = self.messages.is_terminal and not self.quiet and not self.as_json
        description = TextColumn("{task.description}", markup=False)
        columns = (description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(
            *columns,
            console=self.messages,
            transient=True,
            disable=not shown,
            speed_estimate_period=_LOOK_BACK,
        ) as bar:
            task = bar.add_task("getting ready", total=1)

            def on_progress(what: str, done: int, total: int) -> None:
                bar.update(task, description=what, completed=done, total=total)

            yield on_progress


def command_line() -> str:
    """Return the command that is running, as a shell takes it."""
    return shlex.join(["structent", *sys.argv[1:]])


def caution_lines(cautions: Sequence[str]) -> list[Text]:
    """Return cautions as lines to print; they do not wrap, so that commands can be pasted."""
    return [Text(line, style="yellow", no_wrap=True, overflow="ignore") for line in cautions]


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read, before any work.

    Parameters
    ----------
    outputs
        The file of each option that names one to write.
    inputs
        The files that are read.
    """
    before = {path: f"{path}, which is read" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        _check_can_write(path)
        same = next((what for other, what in before.items() if _are_same(path, other)), None)
        if same is not None:
            raise StructentError(
                f"{option} {path} would replace {same}; name another file to write"
            )
        before[path] = f"the file that {option} writes"


def check_table(path: Path) -> None:
    """Refuse an output file that does not end in .parquet or .csv."""
    if path.suffix not in _WRITERS:
        raise StructentError(f"the output must end in .parquet or .csv, got {path.name}")


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table as CSV or Parquet, completely or not at all."""
    content = io.BytesIO()
    getattr(table, _WRITERS[path.suffix])(content)
    save_bytes(path, content.getvalue())


def _check_can_write(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StructentError(f"the output {path} cannot be written: there is no folder {folder}")
    if path.is_dir():
        raise StructentError(f"the output {path} cannot be written: it is a folder")
    # A file is replaced, not written over: what counts is permission for the folder.
    if not os.access(folder, os.W_OK):
        raise StructentError(f"the output {path} cannot be written: no permission for {folder}")


def _are_same(path: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever links."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
