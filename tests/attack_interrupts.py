"""An attack on commands by Ctrl-C: ``python -m tests.attack_interrupts --tries 300 --record``.

Commands are interrupted at random moments, by a seed, from the first line of their program to their
end. Each must end with exit code 130 and one sentence, without a traceback, and leave every file
whole: the one that was there before, or the new one, and nothing beside it.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structent.datasets import seattle_weather_file
from tests import reliability

SECONDS = 120  # a command that takes longer after the interrupt hangs
SENTENCE = "structent: interrupted; no file was left incomplete\n"
BROKEN_OFF, FINISHED = "broken off", "finished before"
WORST = ("hangs", "went on", "half a file", "traceback", "other ending")  # the worst first
# What the script ``structent`` does, after a line that says that Python itself has started.
# At the end it says when that was, so that a signal which came later is known.
_PROGRAM = """
import sys
print("up", flush=True)
try:
    from structent.cli import main
    sys.exit(main())
finally:
    import time
    print("down", time.monotonic(), flush=True)
"""
_ABOUT = (
    str(seattle_weather_file()), "--target", "month", "--structure", "circular:width=3",
    "--features", "precipitation,temp_max,temp_min,wind", "--jobs", "1",
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command that writes files, and these files."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


COMMANDS = (
    Command("train", ("train", *_ABOUT, "--save", "new.structent"), ("new.structent",)),
    Command(
        "compare",
        ("compare", *_ABOUT, "--folds", "3", "--repeats", "1", "--report", "new.html",
         "--save", "new.structent"),
        ("new.html", "new.structent"),
    ),
    Command(
        "predict", ("predict", "model.structent", _ABOUT[0], "-o", "new.parquet"), ("new.parquet",)
    ),
    Command("structure", ("structure", "convert", "months", "-o", "new.json"), ("new.json",)),
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the model that predictions are made with."""
    with start(Command("", ("train", *_ABOUT, "--save", "model.structent"), ()), folder) as made:
        if made.wait() != 0:
            raise RuntimeError("the model cannot be trained")


def start(command: Command, folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *command.arguments], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def seconds_of(command: Command, folder: Path) -> float:
    """Return how long a command takes that is not interrupted, from its first line on."""
    with start(command, folder) as process:
        process.stdout.readline()
        begin = time.monotonic()
        _, said = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{command.name} ended with {process.returncode}: {said}")
    return time.monotonic() - begin


def interrupted(command: Command, folder: Path, after: float) -> tuple[str, str]:
    """Interrupt a command, and return what came of it and what it said.

    The files that it writes hold something else before.
    """
    old = b"what was there before"
    for name in command.outputs:
        (folder / name).write_bytes(old)
    before = {path.name for path in folder.iterdir()}
    with start(command, folder) as process:
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        try:
            printed, said = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return "hangs", ""
    files = [folder / name for name in command.outputs]
    is_whole = all(path.read_bytes() == old or _is_whole(path) for path in files)
    if not is_whole or {path.name for path in folder.iterdir()} != before:
        return "half a file", said
    if process.returncode == 0:
        down = float(printed.split()[-1])
        return (FINISHED if down < sent else "went on"), said
    return _ending(process.returncode, said), said


def _ending(code: int, said: str) -> str:
    if "Traceback" in said or "Exception ignored" in said:
        return "traceback"
    # While Python shuts down the signal itself ends it, which shells call 130 as well.
    if code == -signal.SIGINT or (code == 130 and said.endswith(SENTENCE)):
        return BROKEN_OFF
    return "other ending"


def _is_whole(path: Path) -> bool:
    """Whether a file can be read to its end."""
    content = path.read_bytes()
    if path.suffix == ".html":
        return content.rstrip().endswith(b"</html>")
    if path.suffix == ".json":
        try:
            json.loads(content)
        except ValueError:
            return False
        return True
    if path.suffix == ".parquet":
        return content[:4] == content[-4:] == b"PAR1"
    return content[:4] == b"PK\x03\x04" and b"PK\x05\x06" in content[-22:]


def attack(folder: Path, seed: int, n_tries: int) -> list[dict[str, Any]]:
    """Return what came of every try; commands that had finished before are tried again."""
    rng = np.random.default_rng(seed)
    took = {command.name: seconds_of(command, folder) for command in COMMANDS}
    found: list[dict[str, Any]] = []
    while len(found) < n_tries:
        command = COMMANDS[len(found) % len(COMMANDS)]
        after = float(rng.uniform(0, took[command.name]))
        outcome, said = interrupted(command, folder, after)
        if outcome == FINISHED:
            continue
        found.append({"name": command.name, "after": after, "outcome": outcome, "said": said})
    return found


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table in Markdown: a line for each command."""
    tries = ((each["name"], each["outcome"]) for each in found)
    return reliability.table("command", tries, {BROKEN_OFF: "broken off"}, WORST)


def main() -> None:
    """Attack, and print the table and what failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        found = attack(folder, options.seed, options.tries)
    for each in found:
        if each["outcome"] in WORST:
            print(each)
    print("\n".join(table(found)))
    if options.record:
        packages = ("numba", "polars", "scikit-learn")
        reliability.record("attack by Ctrl-C", table(found), options.seed, packages)


if __name__ == "__main__":
    main()
