"""Digests are those of the files, which are read once; different data is told apart."""

import hashlib
import os
from pathlib import Path

import pytest

from paper import digests
from paper.digests import check_one_data, check_same_data, digest, digest_of_file, digests_of
from structent.errors import StructentError


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b"1,2\n" * 100_000)
    return file


def sha256(content):
    return hashlib.sha256(content).hexdigest()[:16]


def test_the_digest_of_a_file_is_that_of_its_content(file):
    assert digest_of_file(file) == digest(file.read_bytes()) == sha256(b"1,2\n" * 100_000)


def test_a_file_is_read_once_unless_it_changes(file, monkeypatch):
    first = digest_of_file(file)
    opened = []
    open_file = Path.open
    monkeypatch.setattr(Path, "open", lambda *args: opened.append(args) or open_file(*args))
    assert digest_of_file(file) == first
    assert opened == []

    # As long as before: its time tells that it has changed.
    with open(file, "wb") as stream:  # noqa: PTH123  Path.open is counted here
        stream.write(b"1,3\n" * 100_000)
    os.utime(file, ns=(0, 12345))
    assert digest_of_file(file) == sha256(b"1,3\n" * 100_000)
    assert len(opened) == 1


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StructentError, match=r"a run needs .*no.csv, which cannot be read"):
        digest_of_file(tmp_path / "no.csv")


def test_a_source_of_several_files_changes_with_each_and_with_their_order(tmp_path):
    files = tuple(tmp_path / name for name in "ab")
    for place, path in enumerate(files):
        path.write_text(str(place))
    both = digests_of({"pair": files})
    assert both == {"pair": sha256(f"{sha256(b'0')} {sha256(b'1')}".encode())}
    assert digests_of({"pair": files[::-1]}) != both
    assert digests_of({"one": files[:1]}) == {"one": sha256(b"0")}


def test_what_keras_downloads_is_not_the_same_as_a_file(file):
    downloaded = digests_of({"CIFAR-100": ()})
    assert downloaded == {"CIFAR-100": "from Keras"}
    with pytest.raises(StructentError, match="got from Keras; give --data"):
        check_same_data([digests_of({"CIFAR-100": (file,)})], downloaded, Path("runs.jsonl"))


def test_sources_that_only_one_side_has_are_no_contradiction():
    check_same_data([{"weather": "1"}, {}], {"images": "2"}, Path("runs.jsonl"))
    check_same_data([], {"images": "2"}, Path("runs.jsonl"))
    check_one_data([{"weather": "1"}, {"images": "2"}, None, {"images": "2", "weather": "1"}])


def test_runs_of_different_data_are_not_compared():
    with pytest.raises(StructentError, match="got images with digests 2 and 3"):
        check_one_data([{"weather": "1", "images": "2"}, None, {"images": "3"}])


def test_digests_are_short_and_of_sha_256():
    assert digests.digest(b"") == "e3b0c44298fc1c14"  # of nothing, as it is published
