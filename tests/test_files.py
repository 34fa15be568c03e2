"""Files are written whole or not at all, and with the permissions that any new file gets."""

import os
import threading
import time
from pathlib import Path

import pytest

from structent._files import save_bytes


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
