"""The file of losses: one JSON line for every structure that was scored, so that none is twice."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structent._typing import FloatArray
from structent.errors import StructentError


@dataclass(frozen=True)
class KeptLosses:
    """The losses of structures, in a file that one process at a time adds to.

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
        if self.path is None or not self.path.exists():
            return {}
        found = {}
        for number, line in enumerate(_mended(self.path).splitlines(), 1):
            try:
                kept = json.loads(line)
                question, structure, losses = kept["question"], kept["structure"], kept["losses"]
            except (ValueError, TypeError, KeyError):
                raise StructentError(
                    f"line {number} of {self.path} must hold the losses of a structure, got "
                    f"{line[:60]!r}; delete the line, or keep the losses in another file"
                ) from None
            if question == self.question:
                found[structure] = np.array(losses, dtype=np.float64)
        return found

    def add(self, structure: str, losses: FloatArray) -> None:
        """Write down the losses of a structure."""
        if self.path is None:
            return
        line = {"question": self.question, "structure": structure, "losses": losses.tolist()}
        with self.path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _mended(path: Path) -> bytes:
    """Return what the file holds, without a last line that broke off with its process."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return whole
