"""The results file: whatever is written to it can be read again, and nothing is lost."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from structent.errors import StructentError
from structent.experiments.kept import Finished, Kept


def run(number, **others):
    settings = {"number": number, "schedule": {"depths": [2, 3]}, **others}
    return Finished(settings, {"test": [1 / (number + 3)]}, 1.25, "2026-01-02", "a machine, ±")


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "runs.jsonl")


def test_a_file_that_is_not_there_holds_no_run(kept):
    kept.mend()
    assert kept.finished() == []
    assert not kept.path.exists()


def test_what_is_written_down_is_read_again_in_its_order(kept):
    runs = [run(3), run(1), run(2)]
    for one in runs:
        kept.add(one)
    assert kept.finished() == runs
    lines = kept.path.read_text().splitlines()
    assert [json.loads(line)["settings"]["number"] for line in lines] == [3, 1, 2]


def test_the_folder_of_the_file_need_not_be_there(tmp_path):
    kept = Kept(tmp_path / "a" / "b" / "runs.jsonl")
    kept.add(run(1))
    assert kept.finished() == [run(1)]


def test_a_torn_last_line_is_no_run_and_is_cut_off(kept):
    kept.add(run(1))
    kept.add(run(2))
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole + b'{"settings": {"number": 3')
    assert kept.finished() == [run(1), run(2)]
    kept.mend()
    assert kept.path.read_bytes() == whole


def test_mending_leaves_whole_lines_alone(kept):
    kept.path.write_bytes(b"no run\n\n{}\n")
    kept.mend()
    assert kept.path.read_bytes() == b"no run\n\n{}\n"


def test_a_file_that_is_one_torn_line_becomes_empty(kept):
    kept.path.write_bytes(b'{"settings"')
    kept.mend()
    assert kept.path.read_bytes() == b""


def test_a_run_is_never_added_to_a_torn_line(kept):
    kept.add(run(1))
    with kept.path.open("ab") as file:
        file.write(b'{"settings": {"numb')
    kept.add(run(2))
    assert kept.finished() == [run(1), run(2)]


@pytest.mark.parametrize(
    "line", [b"nonsense", b"", b"[]", b"{}", b'{"settings": {}, "result": {}}', b"\xff\xfe"]
)
def test_a_wrong_line_is_told_in_one_sentence(kept, line):
    kept.add(run(1))
    with kept.path.open("ab") as file:
        file.write(line + b"\n")
    kept.add(run(2))
    with pytest.raises(StructentError, match=r"line 2 of .*must be a finished run") as told:
        kept.finished()
    assert str(told.value).endswith("delete the line, and the run will be done again")
    assert "\n" not in str(told.value)


def test_writers_at_the_same_time_lose_nothing(kept):
    # Lines longer than a page of a file system, which are not always seen whole while written.
    long = "x" * 10_000
    kept.path.write_bytes(b'{"settings": {"number": 3')

    def write(first):
        for number in range(first, first + 20):
            Kept(kept.path).mend()
            Kept(kept.path).add(run(number, long=long))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, [0, 100, 200]))
    found = [one.settings["number"] for one in kept.finished()]
    for first in (0, 100, 200):
        assert [n for n in found if first <= n < first + 100] == list(range(first, first + 20))
    assert len(found) == 60


def test_runs_are_found_in_the_order_asked_for_and_others_left_out(kept):
    for number in (5, 1, 9, 3):
        kept.add(run(number))
    asked = [run(number).settings for number in (1, 2, 3, 5)]
    assert kept.finished_of(asked) == [run(1), run(3), run(5)]


def test_settings_are_the_same_whatever_their_order(kept):
    kept.add(run(1, size=500))
    asked = dict(reversed(run(1, size=500).settings.items()))
    assert kept.finished_of([asked]) == [run(1, size=500)]
    assert kept.finished_of([run(1, size=501).settings]) == []
