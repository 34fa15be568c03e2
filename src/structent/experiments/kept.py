"""The results file: one JSON line for every finished run, so that nothing is done twice."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

from structent.errors import StructentError
from structent.experiments.experiment import Result, Settings, key


@dataclass(frozen=True)
class Finished:
    """A run that was done: its settings and result, how long it took, when and where."""

    settings: Settings
    result: Result
    seconds: float
    date: str
    machine: str


@dataclass(frozen=True)
class Kept:
    """The finished runs of an experiment, in a file.

    Parameters
    ----------
    path
        The file; neither it nor its folder need exist yet.
    """

    path: Path

    def finished(self) -> list[Finished]:
        """Return all finished runs, in the order in which they were finished."""
        if not self.path.exists():
            return []
        return [self._read(number, line) for number, line in enumerate(self._whole_lines(), 1)]

    def finished_of(self, runs: Iterable[Settings]) -> list[Finished]:
        """Return those of the given runs that are finished, in the order of the runs."""
        by_key = {key(run.settings): run for run in self.finished()}
        return [by_key[key(run)] for run in runs if key(run) in by_key]

    def mend(self) -> None:
        """Cut off a last line that was broken off with the process that wrote it."""
        if self.path.exists():
            with self._mended():
                pass

    def add(self, run: Finished) -> None:
        """Write down a finished run; other commands may write to the same file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._mended() as file:
            file.write(json.dumps(asdict(run)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _mended(self) -> Iterator[BinaryIO]:
        """Give the file, to be added to, to one command at a time; it ends with a whole line."""
        with self.path.open("a+b") as file:
            _lock(file)
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                file.truncate(whole)
            yield file

    def _whole_lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1]

    def _read(self, number: int, line: bytes) -> Finished:
        try:
            return Finished(**json.loads(line))
        except (ValueError, TypeError):
            raise StructentError(
                f"line {number} of {self.path} must be a finished run, got {line[:60]!r}; "
                "delete the line, and the run will be done again"
            ) from None


def _lock(file: BinaryIO) -> None:
    """Wait for other commands that write to the file; closing it lets them go on."""
    if sys.platform != "win32":
        # Some file systems have no locks. There a line is still written in one piece.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
