"""The file of losses: one line for every structure that was scored, so that none is twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structent._json_lines import JsonLines
from structent._typing import FloatArray


@dataclass(frozen=True)
class KeptLosses:
    """The losses of structures, in a file that several commands may add to.

    Attributes
    ----------
    path
        The file, or None to keep nothing; it need not exist yet.
    question
        Stands for data, folds and model. Lines of other questions are left alone.
    """

    path: Path | None
    question: str

    def read(self) -> dict[str, FloatArray]:
        """Return the losses of each structure that was scored, by its identity."""
        if self.path is None:
            return {}
        lines = JsonLines(self.path).read(
            _parts, what="hold the losses of a structure", then="or keep the losses in another file"
        )
        return {
            structure: losses for question, structure, losses in lines if question == self.question
        }

    def add(self, structure: str, losses: FloatArray) -> None:
        """Write down the losses of a structure."""
        if self.path is not None:
            JsonLines(self.path).add(
                {"question": self.question, "structure": structure, "losses": losses.tolist()}
            )


def _parts(line: Any) -> tuple[str, str, FloatArray]:
    return line["question"], line["structure"], np.array(line["losses"], dtype=np.float64)
