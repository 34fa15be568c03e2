"""Files that are written completely or not at all, files of JSON lines, and JSON with limits."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from structent._interrupts import interrupts_postponed
from structent.errors import StructentError

if sys.platform != "win32":
    import fcntl

Value = TypeVar("Value")

DEEPEST = 100  # how deep arrays and objects of JSON may be nested
_TEXT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{}]++")


def save_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all: the old file stays until the new one is complete.

    Ctrl-C waits until then. The file gets the permissions that any new file of this process gets.
    """
    target = Path(path)
    _remove_leftovers(target)
    with interrupts_postponed(), _temporary(target) as file:
        file.write(content)


@contextmanager
def _temporary(target: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the target at the end, or is removed if that fails."""
    temporary, file = _new_file(target)
    try:
        with file:
            yield file
            file.flush()
            if sys.platform != "win32":
                temporary.replace(target)  # while it is locked
        if sys.platform == "win32":
            temporary.replace(target)  # an open file cannot be moved there
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new file beside the target, locked, so that other saves see that it is in use."""
    while True:
        # In the same folder, because a move is atomic only within one file system.
        path = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        file = path.open("xb")
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:
            return path, file
        file.close()  # another save saw it before it was locked, and removed it


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of saves that were killed: nobody holds a lock on these."""
    name = re.compile(re.escape(f".{target.name}.") + "[0-9a-f]{16}")
    with suppress(OSError), os.scandir(target.parent) as beside:
        for entry in beside:
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unless_in_use(Path(entry.path))


def _remove_unless_in_use(path: Path) -> None:
    # Files that another process is writing stay, and so do those that cannot be removed.
    with suppress(OSError):
        if sys.platform == "win32":
            path.unlink()  # refused while a process has it open
        else:
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def parsed_json(text: str) -> Any:
    """Return the value of JSON text; raise ValueError if it is not JSON or is nested too deeply.

    Without the check of the depth, Python would raise a RecursionError here, or later when a
    library walks through the value.

    Examples
    --------
    >>> parsed_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parsed_json("[" * 1000 + "]" * 1000)
    Traceback (most recent call last):
    ...
    ValueError: JSON must be nested at most 100 deep, got 1000
    """
    depth = _depth(text)
    if depth > DEEPEST:
        raise ValueError(f"JSON must be nested at most {DEEPEST} deep, got {depth}")
    return json.loads(text)


def json_line(content: bytes, longest: int) -> tuple[Any, bytes]:
    r"""Return the JSON in the first line of bytes and what follows it, or raise ValueError.

    Examples
    --------
    >>> json_line(b'{"a": 1}\nthe rest', longest=100)
    ({'a': 1}, b'the rest')
    """
    end = content.find(b"\n", 0, longest + 1)
    if end < 0:
        raise ValueError(f"the first line must have at most {longest} bytes, got more")
    return parsed_json(content[:end].decode()), content[end + 1 :]


def _depth(text: str) -> int:
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0  # or at least not too deep
    brackets = _NO_BRACKETS.sub("", _TEXT.sub("", text)).encode()
    is_opening = np.isin(np.frombuffer(brackets, np.uint8), list(b"[{"))
    steps = np.where(is_opening, np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


@dataclass(frozen=True)
class JsonLines:
    """A file of JSON lines that several commands may add to at the same time.

    Parameters
    ----------
    path
        The file; it need not exist yet.
    """

    path: Path

    def read(self, value_of: Callable[[Any], Value], *, what: str, then: str) -> list[Value]:
        """Return the value of every complete line, in the order in which they were added.

        Parameters
        ----------
        value_of
            Gives the value of a line's JSON; raises KeyError, TypeError or ValueError if the line
            holds something else.
        what
            What a line must do, as text for the error message: "hold the losses".
        then
            What to do otherwise, as text after "delete the line, " in the same message.
        """
        if not self.path.exists():
            return []
        values = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], 1):
            try:
                values.append(value_of(parsed_json(line.decode())))
            except (KeyError, TypeError, ValueError):
                raise StructentError(
                    f"line {number} of {self.path} must {what}, got {line[:60]!r}; delete the "
                    f"line, {then}"
                ) from None
        return values

    def mend(self) -> None:
        """Remove a last line that is incomplete because the process that wrote it ended."""
        if self.path.exists():
            with self._mended():
                pass

    def add(self, value: Any) -> None:
        """Append a value; when this returns, it is safely in the file."""
        with self._mended() as file, interrupts_postponed():
            file.write(json.dumps(value).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def change(self, changed: Callable[[Any], Any]) -> None:
        """Replace the value of every line by what a function returns for it; other commands wait.

        The file is changed in place: if it were replaced, a command that waits to add a line would
        add it to the deleted file.
        """
        if not self.path.exists():
            return
        with self._mended() as file, interrupts_postponed():
            file.seek(0)
            lines = [json.dumps(changed(parsed_json(line.decode()))) for line in file]
            file.truncate(0)
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _mended(self) -> Iterator[BinaryIO]:
        """Open the file for appending, by one command at a time, after its last complete line."""
        with self.path.open("a+b") as file:
            _lock(file)
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                file.truncate(whole)
            yield file


def _lock(file: BinaryIO) -> None:
    """Wait for other commands that write to the file; closing it lets them go on."""
    if sys.platform != "win32":
        # Some file systems have no locks. There a line is still written in one piece.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
