"""The results file: one JSON line for every finished run, so that nothing is done twice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

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
        The file; it need not exist yet.
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
            whole = sum(len(line) + 1 for line in self._whole_lines())
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)

    def add(self, run: Finished) -> None:
        """Write down a finished run, in one piece: other commands may write to the same file."""
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(asdict(run)).encode() + b"\n")
            os.fsync(file.fileno())

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
