"""UBJSON: what XGBoost writes is read whole, and nothing else is."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.estimators.engines.ubjson import from_ubjson

MARKER_OF = {"i1": "i", "u1": "U", ">i2": "I", ">i4": "l", ">i8": "L", ">f4": "d", ">f8": "D"}
CONSTANTS = {True: b"T", False: b"F", None: b"Z"}


def to_ubjson(value):
    """Write values as XGBoost does."""
    if isinstance(value, dict):
        fields = (_text(key) + to_ubjson(inside) for key, inside in value.items())
        return b"{" + b"".join(fields) + b"}"
    if isinstance(value, list):
        return b"[#" + _length(len(value)) + b"".join(map(to_ubjson, value))
    if isinstance(value, np.ndarray):
        marker = next(m for kind, m in MARKER_OF.items() if value.dtype == kind)
        return b"[$" + marker.encode() + b"#" + _length(len(value)) + value.tobytes()
    if isinstance(value, str):
        return b"S" + _text(value)
    if value is None or isinstance(value, bool):
        return CONSTANTS[value]
    return _number(value)


def _number(value):
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    markers = ((7, b"i", ">b"), (15, b"I", ">h"), (31, b"l", ">i"), (63, b"L", ">q"))
    marker, form = next((m, f) for bits, m, f in markers if -(2**bits) <= value < 2**bits)
    return marker + struct.pack(form, value)


def _text(text):
    return _length(len(text.encode())) + text.encode()


def _length(number):
    return b"L" + struct.pack(">q", number)


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
)
values = st.recursive(
    plain,
    # As long as XGBoost's own names: very many short ones are refused.
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(min_size=15), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read(value):
    assert from_ubjson(to_ubjson(value)) == value


@pytest.mark.parametrize("kind", MARKER_OF)
def test_arrays_of_numbers_are_arrays_of_numpy(kind):
    array = np.array([0, 1, 100], dtype=kind)
    found = from_ubjson(to_ubjson({"a": array}))["a"]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_every_part_of_the_bytes_is_needed():
    content = to_ubjson({"a": [1, "b", None, {"c": np.arange(5, dtype=">i4")}], "d": 0.5})
    for length in range(len(content)):
        with pytest.raises(ValueError, match=r"."):
            from_ubjson(content[:length])


LARGE = b"L" + struct.pack(">q", 2**62)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "ends too early"),
        (b"i\1i", "1 bytes too many"),
        (b"N", "a value of the kind 'N'"),
        (b"\xff", "a value of the kind"),
        (b"S" + LARGE, "a length of 4611686018427387904"),
        (b"SL" + struct.pack(">q", -1), "a length of -1"),
        (b"[#" + LARGE, "beyond its end"),
        (b"[$d#" + LARGE, "beyond its end"),
        (b"[$S#" + _length(0), "a value of the kind 'S'"),
        (b"[$dL" + _length(0), "no length"),
        (b"[i\1]", "no length"),
        (b"[#i\1i\1", "a length is not a 64-bit number"),
        (b"{" + _text("a") * 2, "a length is not a 64-bit number"),
        (to_ubjson({"a": 1})[:-1] + to_ubjson({"a": 1})[1:], "the field 'a' twice"),
        (b"S" + _length(1) + b"\xff", "utf-8"),
        ((b"[#" + _length(1)) * 21 + b"Z", "too many values"),
        (b"[#" + _length(1000) + b"{}" * 1000, "too many values"),
        (b"[#" + _length(1000) + b"i\1" * 1000, "too many values"),
    ],
)
def test_what_xgboost_would_not_write_is_a_value_error(content, reason):
    with pytest.raises(ValueError, match=reason):
        from_ubjson(content)


@given(st.binary(), st.integers(0, 100))
def test_whatever_the_bytes_are_there_is_a_value_or_a_value_error(more, place):
    content = bytearray(to_ubjson({"a": [1, "b", {"c": np.arange(5, dtype=">i4")}], "d": 0.5}))
    content[place : place + len(more)] = more
    with contextlib.suppress(ValueError):
        from_ubjson(bytes(content))
