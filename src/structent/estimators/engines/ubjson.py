"""A safe reader of UBJSON as XGBoost writes it: arrays of numbers become NumPy arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_DEEPEST = 20  # objects and arrays within one another
# Mean bytes per object or array in XGBoost's files, and per other value. An object may have only
# two bytes, but take fifty times as many in memory.
_OF_CONTAINER, _OF_VALUE, _OF_ALL = 25, 10, 2500
_NUMBERS = {"i": "i1", "U": "u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"T": True, "F": False, "Z": None}


def from_ubjson(content: bytes) -> Any:
    r"""Return the value of UBJSON; raise ValueError for bytes that XGBoost would not write.

    Every value can be written in only one way: lengths are 64-bit numbers, arrays have a length,
    and keys differ. So two readers cannot read different values.

    Examples
    --------
    >>> from_ubjson(b"{L\0\0\0\0\0\0\0\1a[#L\0\0\0\0\0\0\0\2Ti\7}")
    {'a': [True, 7]}
    """
    reader = _Reader(content)
    value = reader.value(0)
    if reader.at != len(content):
        raise ValueError(f"it has {len(content) - reader.at} bytes too many")
    return value


class _Reader:
    """The position of a reader in the bytes, and how many values it may still read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self._left = _OF_ALL + len(content)

    def value(self, depth: int) -> Any:
        """Return the value that begins here."""
        marker = self._marker()
        self._left -= _OF_CONTAINER if marker in "{[" else _OF_VALUE
        if depth > _DEEPEST or self._left < 0:
            raise ValueError("it has too many values")
        if marker in "{[":
            return self._object(depth + 1) if marker == "{" else self._array(depth + 1)
        if marker == "S":
            return self._text()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        return self._numbers(marker, 1)[0].item()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.content[self.at : self.at + 1] != b"}":
            key = self._text()
            if key in found:
                raise ValueError(f"it has the field {key[:60]!r} twice")
            found[key] = self.value(depth)
        self.at += 1
        return found

    def _array(self, depth: int) -> Any:
        marker = self._marker()
        if marker == "$":
            kind = self._marker()
            if self._marker() != "#":
                raise ValueError("an array has no length")
            return self._numbers(kind, self._length())
        if marker != "#":
            raise ValueError("an array has no length")
        return [self.value(depth) for _ in range(self._length())]

    def _numbers(self, kind: str, count: int) -> np.ndarray[Any, Any]:
        if kind not in _NUMBERS:
            raise ValueError(f"it has a value of the kind {kind!r}")
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self._bytes(dtype.itemsize * count), dtype)

    def _text(self) -> str:
        return self._bytes(self._length()).decode()

    def _length(self) -> int:
        if self._marker() != "L":
            raise ValueError("a length is not a 64-bit number")
        (length,) = struct.unpack(">q", self._bytes(8))
        # Even an array of constants has a byte for each of them.
        if not 0 <= length <= len(self.content) - self.at:
            raise ValueError(f"it has a length of {length}, beyond its end")
        return int(length)

    def _marker(self) -> str:
        return self._bytes(1).decode("latin-1")

    def _bytes(self, count: int) -> bytes:
        if count > len(self.content) - self.at:
            raise ValueError("it ends too early")
        self.at += count
        return self.content[self.at - count : self.at]
