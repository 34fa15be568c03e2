"""Files are written whole or not at all, and leave nothing behind; JSON is read in bounds."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent._files import DEEPEST, JsonLines, json_line, parsed_json, save_bytes
from structent.errors import StructentError


def test_what_is_written_can_be_read_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "page.html"
    for content in (b"", b"first", b"second \x00\r\n"):
        save_bytes(path, content)
        assert path.read_bytes() == content
    save_bytes(str(path), b"third")
    assert path.read_bytes() == b"third"
    assert list(tmp_path.iterdir()) == [path]


def test_what_stood_there_stays_until_the_new_file_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    save_bytes(path, b"first")

    def fail(_source, _target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_bytes(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002])
def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        save_bytes(tmp_path / "saved", b"")
        (tmp_path / "plain").write_bytes(b"")
    finally:
        os.umask(before)
    assert (tmp_path / "saved").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_files_that_other_threads_make_meanwhile_keep_to_the_umask(tmp_path, monkeypatch):
    change_umask = os.umask

    def slow_umask(mask):
        before = change_umask(mask)
        time.sleep(0.01)  # whoever changes the umask of the process gives others time to notice
        return before

    monkeypatch.setattr(os, "umask", slow_umask)
    is_over = threading.Event()
    modes = set()

    def make_files():
        path = tmp_path / "plain"
        while not (modes and is_over.is_set()):
            path.write_bytes(b"")
            modes.add(path.stat().st_mode & 0o777)
            path.unlink()

    before = change_umask(0o077)
    other = threading.Thread(target=make_files)
    other.start()
    try:
        for _ in range(20):
            save_bytes(tmp_path / "saved", b"content")
    finally:
        is_over.set()
        other.join()
        change_umask(before)
    assert modes == {0o600}


# Saves that are interrupted or killed


def test_ctrl_c_waits_until_the_file_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    save_bytes(path, b"first")
    replace = Path.replace

    def interrupted(source, target):
        signal.raise_signal(signal.SIGINT)
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_bytes(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_waits_until_a_line_is_whole(tmp_path, monkeypatch):
    def interrupted(_file):
        signal.raise_signal(signal.SIGINT)

    lines = JsonLines(tmp_path / "runs.jsonl")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lines.add({"run": 1})
    assert lines.path.read_text() == '{"run": 1}\n'


SAVE = """
import sys
from pathlib import Path
from structent._files import _temporary
with _temporary(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write(b" and the rest")
"""


@contextmanager
def save_under_way(path):
    """Give a process that has written half of the file, and ends when it gets a line."""
    command = [sys.executable, "-c", SAVE, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        yield process


def test_the_next_save_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "model [1].structent"
    others = [tmp_path / ".other.0123456789abcdef", tmp_path / f".{path.name}.backup"]
    for other in others:
        other.write_bytes(b"")
    for _ in range(2):
        with save_under_way(path) as process:
            process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 4
    save_bytes(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open stay there anyhow")
def test_what_a_living_process_is_writing_stays(tmp_path):
    path = tmp_path / "model.structent"
    with save_under_way(path) as process:
        save_bytes(path, b"whole")
        assert path.read_bytes() == b"whole"
        process.communicate(b"\n")
    assert process.returncode == 0
    assert path.read_bytes() == b"half of it and the rest"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_that_save_the_same_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "page.html"
    contents = [bytes([letter]) * 100_000 for letter in b"abcd"]
    failures = []

    def save(content):
        try:
            for _ in range(50):
                save_bytes(path, content)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_or_a_link_that_is_called_like_a_leftover_stays(tmp_path):
    path = tmp_path / "page.html"
    folder, link = (tmp_path / f".page.html.{digit * 16}" for digit in "01")
    folder.mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    save_bytes(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, folder, link])


# JSON in bounds

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_is_read_as_python_reads_it(value):
    assert parsed_json(json.dumps(value)) == value


@given(st.text(st.sampled_from('[]{}",:\\1n ')))
def test_text_that_is_no_json_is_a_value_error(text):
    text = "[1]," * DEEPEST + text  # so that the depth is counted
    with pytest.raises(ValueError, match=r"."):
        parsed_json(text)


def test_brackets_in_names_are_no_nesting():
    names = ["[" * 200, '"' + "{" * 200, "\\[" * 200, "a\n["] * 100
    assert parsed_json(json.dumps(names)) == names


@pytest.mark.parametrize("ends", ["[]", ('{"a":', "}")])
def test_json_that_is_nested_too_deep_is_a_value_error(ends):
    def nested(depth):
        return ends[0] * depth + "[]" + ends[1] * depth

    assert parsed_json(nested(DEEPEST - 1))
    for depth in (DEEPEST, 10_000, 1_000_000):
        with pytest.raises(ValueError, match=f"at most 100 deep, got {depth + 1}"):
            parsed_json(nested(depth))


@pytest.mark.parametrize("text", ["1" * 5000, "[1e999999", '"\\ud800', "NaN1", "\x00"])
def test_numbers_and_text_that_python_cannot_hold_are_value_errors(text):
    with pytest.raises(ValueError, match=r"."):
        parsed_json(text)


@pytest.mark.parametrize(
    "content", [b"", b"[1, 2]", b"[1, 2\n]", b"\xff\n", b" " * 20 + b"1\n", b"{\n}"]
)
def test_a_first_line_that_is_no_json_or_too_long_is_a_value_error(content):
    with pytest.raises(ValueError, match=r"."):
        json_line(content, longest=20)


def test_a_line_of_a_log_that_is_nested_too_deep_is_named(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"a": 1}\n' + "[" * 100_000 + "\n")
    with pytest.raises(StructentError, match=r"line 2 of .* must be an object, got"):
        JsonLines(path).read(dict, what="be an object", then="and it is done again")


def test_lines_are_changed_in_the_same_file_and_others_may_be_added_meanwhile(tmp_path):
    lines = JsonLines(tmp_path / "log.jsonl")
    for number in range(50):
        lines.add({"number": number})
    opened = lines.path.stat().st_ino
    adding = threading.Thread(target=lambda: [lines.add({"number": -n}) for n in range(1, 30)])
    adding.start()
    for _ in range(10):
        lines.change(lambda line: {**line, "changed": True})
    adding.join()
    lines.change(lambda line: {**line, "changed": True})

    found = lines.read(dict, what="be one", then="")
    assert lines.path.stat().st_ino == opened
    assert all(line["changed"] for line in found)
    numbers = [line["number"] for line in found]
    assert [number for number in numbers if number >= 0] == list(range(50))
    assert [number for number in numbers if number < 0] == [-n for n in range(1, 30)]


def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path):
    lines = JsonLines(tmp_path / "log.jsonl")
    lines.change(dict)
    assert not lines.path.exists()
    lines.add({"number": 1})
    before = lines.path.read_bytes()
    with pytest.raises(KeyError):
        lines.change(lambda line: line["letter"])
    assert lines.path.read_bytes() == before
