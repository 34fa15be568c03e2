"""Questions that go beyond the paper: what is learned, tested, labelled and answered on real data.

Each module answers one: ``python -m paper NAME --data FOLDER``. It has ``experiments(asked)``, what
is run for the answer, and ``page(asked)``, the page that is made of the finished runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paper.experiment import Kept


class Asked(NamedTuple):
    """How a question is asked.

    Attributes
    ----------
    data
        The folder of the weather, the images and the network.
    results
        The folder of results.
    command
        The command, as the page tells it.
    problems
        Of coarse labels: those of its problems that are wanted; all if None.
    """

    data: Path
    results: Path
    command: str
    problems: tuple[str, ...] | None = None

    def kept(self, name: str) -> Kept:
        """Return the finished runs of an experiment."""
        return Kept(self.results / f"{name}.jsonl")
