"""Digests of data: a finished run keeps the digests of the files that it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from structent.errors import StructentError

# What a run reads: the files of each source, by its name. A source without files is downloaded by
# Keras, which checks the download.
Sources: TypeAlias = Mapping[str, tuple[Path, ...]]
# The digest of each source, by its name.
Digests: TypeAlias = dict[str, str]

FROM_KERAS = "from Keras"
_LENGTH = 16  # hexadecimal digits of SHA-256


def digest(content: bytes) -> str:
    """Return a short name for content, different for different content.

    >>> digest(b"abc")  # the first 16 digits of SHA-256
    'ba7816bf8f01cfea'
    """
    return hashlib.sha256(content).hexdigest()[:_LENGTH]


def digest_of_file(file: Path) -> str:
    """Return the digest of a file, which is read once in a process unless it changes."""
    try:
        status = file.stat()
        return _digest_of_version(file, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise StructentError(
            f"a run needs {file}, which cannot be read ({error.strerror}); give --data the folder "
            "that has it"
        ) from None


def digests_of(sources: Sources) -> Digests:
    """Return the digest of each source; for several files, the digest of their digests."""
    found = {}
    for name, files in sources.items():
        each = [digest_of_file(file) for file in files]
        found[name] = _of_several(each) if each else FROM_KERAS
    return found


def _of_several(each: list[str]) -> str:
    return each[0] if len(each) == 1 else digest(" ".join(each).encode())


@cache
def _digest_of_version(file: Path, size: int, changed: int) -> str:  # noqa: ARG001  they are the key
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:_LENGTH]


def check_same_data(recorded: Iterable[Digests | None], given: Digests, where: Path) -> None:
    """Refuse data that differs from what recorded runs were made from.

    Parameters
    ----------
    recorded
        The digests of each recorded run; None for a run that was recorded before digests existed.
    given
        The digests of the data that is to be used now.
    where
        The file of the recorded runs.
    """
    for each in recorded:
        if each is None:
            raise StructentError(
                f"every run in {where} must have digests of its data, got one without; if they "
                "were made from the data that is there now, `python -m paper.stamping --data DATA "
                f"--out {where.parent}` adds them, else give another --out"
            )
        for name in sorted(each.keys() & given.keys()):
            if each[name] != given[name]:
                raise StructentError(
                    f"the runs in {where} were made from {name} with digest {each[name]}, got "
                    f"{given[name]}; give --data the files that they had, or another --out"
                )


def check_one_data(runs: Iterable[Digests | None]) -> None:
    """Refuse runs that were made from different data; runs without digests are not checked."""
    seen: Digests = {}
    for each in runs:
        for name, value in (each or {}).items():
            if seen.setdefault(name, value) != value:
                raise StructentError(
                    f"runs that are compared must be made from the same data, got {name} with "
                    f"digests {seen[name]} and {value}; keep the runs of each in a folder of their "
                    "own"
                )
