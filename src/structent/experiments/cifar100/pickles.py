"""The pickles that CIFAR-100 comes in, read without running anything that they ask for.

A pickle may call any function that the unpickler finds for it. The one here finds stand-ins for the
four names that an array in such a pickle needs, and no others: not even NumPy's own code sees what
is in the file.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structent.errors import StructentError

# What loading may raise where the bytes are damaged; StructentError is a ValueError too.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError,
    OverflowError, MemoryError,
)  # fmt: skip


def load_pickle(content: bytes, source: str) -> dict[str, Any]:
    """Return a pickled dictionary of plain values and arrays of bytes, by Python 2 or 3.

    Parameters
    ----------
    content
        The pickle.
    source
        Where it is from, for messages.

    Examples
    --------
    >>> load_pickle(pickle.dumps({b"fine_labels": [3, 1]}, protocol=2), "train")
    {'fine_labels': [3, 1]}
    >>> load_pickle(pickle.dumps(print), "train")
    Traceback (most recent call last):
    ...
    structent.errors.StructentError: train must hold plain values and arrays of uint8, got \
a pickle that asks for builtins.print; use a file from the makers of CIFAR-100
    """
    try:
        # Python 2 did not tell text from bytes; latin1 would copy the images twice.
        loaded = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except _Unwanted as unwanted:
        raise StructentError(
            f"{source} must hold plain values and arrays of uint8, got a pickle that asks for "
            f"{unwanted}; use a file from the makers of CIFAR-100"
        ) from None
    except _DAMAGE:
        raise StructentError(
            f"{source} must be a whole pickle, got {len(content):,} bytes that end early or are "
            "damaged; download it again"
        ) from None
    if not isinstance(loaded, dict):
        raise StructentError(
            f"{source} must be a pickled dictionary, got a {type(loaded).__name__}; use a file of "
            "cifar-100-python"
        )
    return {as_text(key): _as_array(value) for key, value in loaded.items()}


def as_text(value: object) -> str:
    """Return what Python 2 called a string.

    >>> as_text(b"apple"), as_text("apple")
    ('apple', 'apple')
    """
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


class _Unwanted(Exception):  # noqa: N818  raised and caught in this file
    """A pickle asks for something that images and labels do not need."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        wanted = f"{module}.{name}"
        if wanted not in _STAND_INS:
            raise _Unwanted(wanted)
        return _STAND_INS[wanted]


class _Array:
    """What is said of an array in a pickle; ``values`` is None until the pickle gives them."""

    values: NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, _dtype, is_fortran, content = state
        order = "F" if is_fortran else "C"
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order=order)  # type: ignore[call-overload]


class _Uint8:
    """The type of an array; that uint8 has no byte order and no fields is known."""

    def __setstate__(self, state: object) -> None:
        pass


def _new_array(*_: object) -> _Array:
    return _Array()


def _dtype(name: str | bytes, *_: object) -> _Uint8:
    if as_text(name) not in ("u1", "|u1", "uint8"):
        raise _Unwanted(f"an array of {as_text(name)}")
    return _Uint8()


def _encode(text: str, encoding: str) -> bytes:
    # Python 3 writes bytes so where the pickle shall be one for Python 2.
    if encoding != "latin1":
        raise _Unwanted(f"the encoding {encoding}")
    return text.encode("latin1")


_STAND_INS: dict[str, Callable[..., Any]] = {
    "numpy.core.multiarray._reconstruct": _new_array,
    "numpy._core.multiarray._reconstruct": _new_array,  # since NumPy 2
    "numpy.ndarray": _Array,
    "numpy.dtype": _dtype,
    "_codecs.encode": _encode,
}


def _as_array(value: object) -> object:
    return value.values if isinstance(value, _Array) else value
