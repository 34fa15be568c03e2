"""Files: written whole or not at all, or line by line as JSON, so that nothing is done twice."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from structent.errors import StructentError

if sys.platform != "win32":
    import fcntl

Value = TypeVar("Value")


def save_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all: what was there before stays until the new one is whole.

    The file gets the permissions that any new file of this process gets.
    """
    target = Path(path)
    # In the same folder, because a file can be moved at once only within a file system.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
        """Return what every whole line stands for, in the order in which they were added.

        Parameters
        ----------
        value_of
            Gives the value of a line's JSON; raises KeyError, TypeError or ValueError if the line
            holds something else.
        what
            What a line must be, for the error message about one that is not.
        then
            What happens if the line is deleted, for the same message.
        """
        if not self.path.exists():
            return []
        values = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], 1):
            try:
                values.append(value_of(json.loads(line)))
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
        """Write down a value: when this returns, it is in the file, and stays there."""
        with self._mended() as file:
            file.write(json.dumps(value).encode() + b"\n")
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


def _lock(file: BinaryIO) -> None:
    """Wait for other commands that write to the file; closing it lets them go on."""
    if sys.platform != "win32":
        # Some file systems have no locks. There a line is still written in one piece.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
