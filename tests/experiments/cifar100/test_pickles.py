import os
import pickle
import struct

import numpy as np
import pytest

from structent.errors import StructentError
from structent.experiments.cifar100.pickles import load_pickle

ROWS = np.random.default_rng(0).integers(0, 256, (2, 3072), dtype=np.uint8)


def test_a_pickle_of_python_2_is_read():
    loaded = load_pickle(_by_python_2(ROWS, [3, 99]), "train")

    assert loaded["fine_labels"] == [3, 99]
    assert loaded["filenames"] == [b"a.png"]
    np.testing.assert_array_equal(loaded["data"], ROWS)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("key", ["data", b"data"])
def test_a_pickle_of_python_3_is_read(protocol, key):
    loaded = load_pickle(pickle.dumps({key: ROWS}, protocol), "train")

    np.testing.assert_array_equal(loaded["data"], ROWS)


def test_an_array_with_columns_first_is_read():
    loaded = load_pickle(pickle.dumps({"data": np.asfortranarray(ROWS)}, 2), "train")

    np.testing.assert_array_equal(loaded["data"], ROWS)


class _Command:
    def __init__(self, function, *arguments):
        self.called = function, arguments

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_command_in_a_pickle_is_refused_and_not_run(tmp_path, protocol):
    trace = tmp_path / "trace"
    content = pickle.dumps({"data": _Command(os.system, f"touch {trace}")}, protocol)
    pickle.loads(content)  # noqa: S301  our own: it would be run
    assert trace.exists()
    trace.unlink()

    with pytest.raises(StructentError, match=r"train must hold .* asks for posix\.system"):
        load_pickle(content, "train")

    assert not trace.exists()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (_Command(eval, "1"), r"__builtin__\.eval"),
        (_Command(np.load, "file"), r"numpy\.load"),
        (np.arange(3), "an array of i8"),
        (np.array([print]), "an array of O"),
        (ROWS.view(np.ma.MaskedArray), r"numpy\.ma"),
        (b"".join, r"__builtin__\.getattr"),
    ],
)
def test_what_images_do_not_need_is_refused_by_name(value, named):
    with pytest.raises(StructentError, match=f"asks for {named}"):
        load_pickle(pickle.dumps({"data": value}, 2), "train")


def test_no_encoding_but_latin1_is_looked_up():
    # Codecs are found by importing modules.
    content = b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R."

    with pytest.raises(StructentError, match="asks for the encoding rot13"):
        load_pickle(content, "train")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_pickle_that_ends_early_is_refused(share):
    content = _by_python_2(ROWS, [3, 99])

    with pytest.raises(StructentError, match=r"train must be a whole pickle.*download it again"):
        load_pickle(content[: int(share * len(content))], "train")


@pytest.mark.parametrize(
    "content",
    [
        b"no pickle",
        b"\x80\x02cnumpy\nndarray\nK\x01\x85R.",  # a shape, where the stand-in takes none
        b"\x80\x02cnumpy\nndarray\n)R(K\x01tb.",  # an array of one thing, of five
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f" + b"data.",  # more bytes than any machine has
    ],
)
def test_a_pickle_that_makes_no_sense_is_refused(content):
    with pytest.raises(StructentError, match="train must be a whole pickle"):
        load_pickle(content, "train")


def test_a_pickle_of_something_else_than_a_dictionary_is_refused():
    with pytest.raises(StructentError, match="must be a pickled dictionary, got a list"):
        load_pickle(pickle.dumps([1, 2], 2), "train")


def _by_python_2(rows, labels):
    """The bytes that Python 2.7 and its NumPy write with protocol 2, memo aside."""
    content = rows.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        + (b"cnumpy\nndarray\n" + b"K\x00\x85" + _string(b"b") + b"\x87")
        + b"R(K\x01"
        + (b"K" + bytes([len(rows)]) + b"M" + struct.pack("<H", rows.shape[1]) + b"\x86")
        + (b"cnumpy\ndtype\n" + _string(b"u1") + b"K\x00K\x01\x87R")
        + (b"(K\x03" + _string(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb")
        + (b"\x89T" + struct.pack("<i", len(content)) + content + b"tb")
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + _string(b"a.png") + b"e"
    items = {b"data": array, b"fine_labels": numbers, b"filenames": names}
    return b"\x80\x02}(" + b"".join(_string(key) + value for key, value in items.items()) + b"u."


def _string(text):
    return b"U" + bytes([len(text)]) + text
