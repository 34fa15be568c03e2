"""The results file: one line for every finished run, so that nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from structent._files import JsonLines
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
        return JsonLines(self.path).read(
            lambda line: Finished(**line),
            what="be a finished run",
            then="and the run will be done again",
        )

    def finished_of(self, runs: Iterable[Settings]) -> list[Finished]:
        """Return those of the given runs that are finished, in the order of the runs."""
        by_key = {key(run.settings): run for run in self.finished()}
        return [by_key[key(run)] for run in runs if key(run) in by_key]

    def mend(self) -> None:
        """Cut off a last line that was broken off with the process that wrote it."""
        JsonLines(self.path).mend()

    def add(self, run: Finished) -> None:
        """Write down a finished run; other commands may write to the same file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        JsonLines(self.path).add(asdict(run))
