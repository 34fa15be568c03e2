"""Trials in another process, because some of them may end it; where one does, the next goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MARK = "attack: "  # of the lines that tell what came of a try


def say(about: dict[str, Any]) -> None:
    """Tell what is tried, with its ``number``, or what its ``outcome`` was."""
    sys.stdout.write(f"{_MARK}{json.dumps(about)}\n")
    sys.stdout.flush()


def run_trials(command: Sequence[str], n_tries: int, seconds: int) -> list[dict[str, Any]]:
    """Return what came of every try.

    Parameters
    ----------
    command
        The arguments of Python that make tries. The first number, the number after the last, and
        the seconds after which a try hangs are added to them.
    n_tries
        How many there are.
    seconds
        How long a try may take. The process must end itself by SIGALRM then.
    """
    found: list[dict[str, Any]] = []
    while len(found) < n_tries:
        with subprocess.Popen(
            [sys.executable, *command, str(len(found)), str(n_tries), str(seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=Path(__file__).parent.parent,
        ) as process:  # fmt: skip
            under_way = None
            for line in process.stdout or ():
                if not line.startswith(_MARK):
                    continue  # said by a library
                said = json.loads(line.removeprefix(_MARK))
                if "number" in said:
                    under_way = said
                elif under_way is not None:
                    found.append({**under_way, **said})
                    under_way = None
        if under_way is not None:
            hangs = process.returncode == -signal.SIGALRM
            ended = "hangs" if hangs else "process ended"
            found.append({**under_way, "outcome": ended, "why": f"exit {process.returncode}"})
        elif process.returncode:
            raise RuntimeError(f"the process of the tries ended with {process.returncode}")
    return found
