"""Questions that go beyond the paper: what is learned, tested, labelled and answered on real data.

Each module answers one: ``python -m paper NAME --data FOLDER``. It has ``experiments(asked)``,
which returns what is run, and ``page(asked)``, which makes the page from the finished runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paper.experiment import Kept
from structent.errors import StructentError


class Asked(NamedTuple):
    """How a question is asked.

    Attributes
    ----------
    data
        The folder of the weather, the images and the network.
    results
        The folder of results.
    command
        The command, as the page shows it.
    problems
        For coarse labels and the prior: which of their problems to run; all if None.
    backbone
        For the learning rate: the pre-trained network, as in 1C.
    """

    data: Path
    results: Path
    command: str
    problems: tuple[str, ...] | None = None
    backbone: str | None = None

    def kept(self, name: str) -> Kept:
        """Return the finished runs of an experiment."""
        return Kept(self.results / f"{name}.jsonl")

    def problems_among(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of the known problems are wanted."""
        unknown = [problem for problem in self.problems or () if problem not in known]
        if unknown:
            raise StructentError(f"--problem must be {' or '.join(known)}, got {unknown[0]!r}")
        return self.problems or known
