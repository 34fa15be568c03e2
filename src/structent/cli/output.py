"""What commands print: tables and sentences on a terminal, JSON for machines, progress."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from structent.errors import StructentError
from structent.studies.progress import OnProgress

_LOOK_BACK = 3600.0  # seconds by which the time left is reckoned: steps may be minutes apart


class Output:
    """Where a command prints: results to stdout, what is under way to stderr.

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
            self.console.print(shown)

    def notes(self, *sentences: str) -> None:
        """Print sentences on what was done, where notes are wanted."""
        if not self.quiet and not self.as_json:
            for sentence in sentences:
                self.messages.print(sentence, style="dim")

    @contextmanager
    def progress(self) -> Iterator[OnProgress]:
        """Give what shows a progress bar, if messages go to a terminal."""
        shown = self.messages.is_terminal and not self.quiet and not self.as_json
        description = TextColumn("{task.description}", markup=False)
        columns = (description, BarColumn(), TimeRemainingColumn())
        with Progress(
            *columns,
            console=self.messages,
            transient=True,
            disable=not shown,
            speed_estimate_period=_LOOK_BACK,
        ) as bar:
            task = bar.add_task("", total=1)

            def on_progress(what: str, done: int, total: int) -> None:
                bar.update(task, description=what, completed=done, total=total)

            yield on_progress


def check_can_write(path: Path | None) -> None:
    """Refuse an output that could not be written, before the work is done."""
    if path is None:
        return
    folder = path.parent
    if not folder.is_dir():
        raise StructentError(f"the output {path} cannot be written: there is no folder {folder}")
    if path.is_dir():
        raise StructentError(f"the output {path} cannot be written: it is a folder")
    # A file is replaced, not written over: what counts is permission for the folder.
    if not os.access(folder, os.W_OK):
        raise StructentError(f"the output {path} cannot be written: no permission for {folder}")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
