"""The file of finished runs loses nothing; missing runs are done, also in several processes."""

import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paper.experiment import Finished, Kept, do_runs
from structent.errors import StructentError
from tests.conftest import PROJECT

# The file of finished runs


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


# Doing the runs that are missing

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Seen by a process that was started for a run while it is still loading its modules.
CTRL_C_IS_HELD_BACK = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
LONG = 60.0  # seconds; a test that waits for it has failed


@dataclass(frozen=True)
class Tiny:
    """An experiment that notes in a folder what it does."""

    folder: Path
    act: Callable[[int], Any]
    n_runs: int = 4
    files: dict[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def name(self):
        return "tiny"

    @property
    def kept_in(self):
        return "tiny"

    def runs(self):
        return [{"number": number} for number in range(self.n_runs)]

    def sources(self, settings):  # noqa: ARG002  the same for all
        return self.files

    def prepare(self, n_threads, on_progress):
        self._note(f"prepared with {n_threads}")
        on_progress("preparing", 1, 1)

    def run(self, settings, n_threads):
        self._note(f"{settings['number']}")
        return {"value": self.act(settings["number"]), "n_threads": n_threads}

    def noted(self):
        return (self.folder / "notes").read_text().split("\n")[:-1]

    def _note(self, text):
        with (self.folder / "notes").open("a") as file:
            file.write(text + "\n")


# What runs do; known by name, as processes need it


def square(number):
    return number**2


def about_the_process(number):
    os.kill(os.getpid(), signal.SIGINT)  # what Ctrl-C does to every process of a terminal
    return [number**2, CTRL_C_IS_HELD_BACK, *map(os.environ.get, THREADS)]


def fail_at_2(number):
    if number == 2:
        raise StructentError("run 2 fails")
    return number**2


def fail_first(folder, number):
    """Fail in run 0 once run 1 is under way, which takes longer."""
    if number == 0:
        wait_for(folder / "1 is under way")
        raise StructentError("run 0 fails")
    (folder / "1 is under way").touch()
    time.sleep(0.5)
    return number**2


def end_process(number):
    os._exit(number + 1)


def interrupt_after_first(pid, path, number):
    """Send Ctrl-C from run 1 when run 0 is written down; never end by itself."""
    if number == 0:
        return 0
    wait_for(path)
    if number == 1:
        os.kill(pid, signal.SIGINT)
    return time.sleep(LONG)


def long_but_the_first(number):
    return time.sleep(LONG if number else 0)


def hold(fifo, number):
    """Keep a pipe open for as long as the process lives."""
    with fifo.open("w") as file:
        file.write(f"{number}")
        file.flush()
        time.sleep(LONG)


def wait_for(path):
    end = time.monotonic() + LONG
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)


def values(kept):
    return {run.settings["number"]: run.result["value"] for run in kept.finished()}


def no_progress(_what, _done, _total):
    pass


# What is done


def test_a_rerun_does_only_what_is_missing(tmp_path, kept):
    n_threads = len(os.sched_getaffinity(0))
    do_runs(Tiny(tmp_path, square, n_runs=2), kept, n_jobs=1, on_progress=no_progress)
    more, told = Tiny(tmp_path, square, n_runs=4), []
    do_runs(more, kept, n_jobs=1, on_progress=lambda *what: told.append(what))
    prepared = f"prepared with {n_threads}"
    assert more.noted() == [prepared, "0", "1", prepared, "2", "3"]
    assert told == [("preparing", 1, 1), ("tiny", 2, 4), ("tiny", 3, 4), ("tiny", 4, 4)]
    assert values(kept) == {0: 0, 1: 1, 2: 4, 3: 9}


def test_where_all_is_done_nothing_is_prepared_or_told(tmp_path, kept):
    tiny, told = Tiny(tmp_path, square, n_runs=1), []
    do_runs(tiny, kept, n_jobs=1, on_progress=no_progress)
    (tmp_path / "notes").unlink()
    do_runs(tiny, kept, n_jobs=1, on_progress=lambda *what: told.append(what))
    assert told == []
    assert not (tmp_path / "notes").exists()


def test_a_torn_line_is_done_again(tmp_path, kept):
    tiny = Tiny(tmp_path, square, n_runs=2)
    do_runs(tiny, kept, n_jobs=1, on_progress=no_progress)
    kept.path.write_bytes(kept.path.read_bytes()[:-5])
    do_runs(tiny, kept, n_jobs=1, on_progress=no_progress)
    assert values(kept) == {0: 0, 1: 1}
    assert tiny.noted()[-1] == "1"


def test_a_finished_run_has_its_time_day_and_machine(tmp_path, kept):
    do_runs(Tiny(tmp_path, square, n_runs=1), kept, n_jobs=1, on_progress=no_progress)
    (run,) = kept.finished()
    assert 0 <= run.seconds < LONG
    assert time.strptime(run.date, "%Y-%m-%d")
    assert "Python 3." in run.machine
    assert "processors used: " in run.machine
    assert "numpy " in run.machine


# Data


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b"abc")
    return file


def done_on(table, tmp_path, kept, n_runs):
    tiny = Tiny(tmp_path, square, n_runs=n_runs, files={"a table": (table,)})
    do_runs(tiny, kept, n_jobs=1, on_progress=no_progress)
    return tiny


def test_a_finished_run_keeps_the_digests_of_its_data(tmp_path, kept, table):
    done_on(table, tmp_path, kept, 2)
    # The first 16 digits of SHA-256 of "abc", as FIPS 180-2 gives it.
    assert [run.data for run in kept.finished()] == [{"a table": "ba7816bf8f01cfea"}] * 2
    done_on(table, tmp_path, kept, 4)
    assert len(kept.finished()) == 4


def test_other_data_is_refused_before_anything_is_run(tmp_path, kept, table):
    done_on(table, tmp_path, kept, 2)
    before = kept.path.read_bytes()
    table.write_bytes(b"abd")
    with pytest.raises(StructentError) as told:
        done_on(table, tmp_path, kept, 4)
    assert str(told.value) == (
        f"the runs in {kept.path} were made from a table with digest ba7816bf8f01cfea, got "
        "a52d159f262b2c6d; give --data the files that they had, or another --out"
    )
    assert kept.path.read_bytes() == before
    assert (tmp_path / "notes").read_text().splitlines()[1:] == ["0", "1"]


def test_where_all_is_done_the_data_need_not_be_there(tmp_path, kept, table):
    done_on(table, tmp_path, kept, 2)
    table.unlink()
    done_on(table, tmp_path, kept, 2)
    with pytest.raises(StructentError, match=r"a run needs .*table.csv, which cannot be read"):
        done_on(table, tmp_path, kept, 3)


def test_no_run_is_added_to_runs_without_digests(tmp_path, kept, table):
    kept.add(Finished({"number": 0}, {"value": 0}, 1.0, "2026-01-02", "a machine"))
    with pytest.raises(StructentError, match=r"got one without; .*paper.stamping --data DATA"):
        done_on(table, tmp_path, kept, 2)
    assert kept.finished_of([{"number": 0}])[0].data is None  # but they can be read


def test_runs_of_different_data_are_not_read_from_one_file(kept):
    for value in ("1", "1", "2"):
        kept.add(Finished({}, {}, 1.0, "2026-01-02", "a machine", {"weather": value}))
    with pytest.raises(StructentError, match="got weather with digests 1 and 2; keep the runs of"):
        kept.finished()


# Processes


@pytest.mark.slow
def test_processes_give_the_same_with_their_share_of_the_threads(tmp_path, kept, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    told = []
    do_runs(
        Tiny(tmp_path, about_the_process), kept, n_jobs=2,
        on_progress=lambda *what: told.append(what),
    )  # fmt: skip
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    assert {run.result["n_threads"] for run in kept.finished()} == {share}
    seen = [True, *[str(share)] * 3]
    assert values(kept) == {number: [number**2, *seen] for number in range(4)}
    assert [os.environ.get(name) for name in THREADS] == ["7", None, None]
    assert told == [("preparing", 1, 1), *[("tiny", done, 4) for done in range(5)]]
    assert multiprocessing.active_children() == []
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    tiny, kept = Tiny(tmp_path, partial(hold, fifo), n_runs=2), Kept(tmp_path / "tiny.jsonl")
    parent = multiprocessing.get_context("spawn").Process(
        target=do_runs, args=(tiny, kept), kwargs={"n_jobs": 2, "on_progress": no_progress}
    )
    parent.start()
    try:
        assert select.select([reading], [], [], LONG)[0]
        assert os.read(reading, 1) in (b"0", b"1")
        parent.kill()
        parent.join()
        # What the other process may have written, and then the end of the file.
        while select.select([reading], [], [], LONG / 2)[0]:
            if os.read(reading, 1) == b"":
                return
        pytest.fail("a process outlives the one that started it")
    finally:
        os.close(reading)


# What goes wrong


def test_a_run_that_fails_loses_only_itself(tmp_path, kept):
    with pytest.raises(StructentError, match="run 2 fails"):
        do_runs(Tiny(tmp_path, fail_at_2), kept, n_jobs=1, on_progress=no_progress)
    assert values(kept) == {0: 0, 1: 1}
    do_runs(Tiny(tmp_path, square), kept, n_jobs=1, on_progress=no_progress)
    assert values(kept) == {0: 0, 1: 1, 2: 4, 3: 9}


@pytest.mark.slow
def test_what_is_under_way_beside_a_run_that_fails_is_kept(tmp_path, kept):
    tiny = Tiny(tmp_path, partial(fail_first, tmp_path))
    with pytest.raises(StructentError, match="run 0 fails"):
        do_runs(tiny, kept, n_jobs=2, on_progress=no_progress)
    assert values(kept) == {1: 1}
    assert sorted(tiny.noted()[1:]) == ["0", "1"]
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_process_that_dies_is_told(tmp_path, kept):
    with pytest.raises(RuntimeError, match="terminated abruptly"):
        do_runs(Tiny(tmp_path, end_process), kept, n_jobs=2, on_progress=no_progress)
    assert kept.finished() == []


@pytest.mark.slow
@pytest.mark.requires("polars")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_what_is_finished_and_no_process(tmp_path, kept, n_jobs, monkeypatch):
    import polars  # noqa: F401  once loaded, it changes how a process that waits takes Ctrl-C

    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    act = partial(interrupt_after_first, os.getpid(), kept.path)
    with pytest.raises(KeyboardInterrupt):
        do_runs(Tiny(tmp_path, act), kept, n_jobs=n_jobs, on_progress=no_progress)
    assert values(kept) == {0: 0}
    assert multiprocessing.active_children() == []
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_while_a_run_is_written_down_leaves_no_process(tmp_path, kept, n_jobs):
    not_ours = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(LONG,))
    not_ours.start()

    def interrupt(what, done, _total):
        if (what, done) == ("tiny", 1):
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            do_runs(Tiny(tmp_path, long_but_the_first), kept, n_jobs=n_jobs, on_progress=interrupt)
        assert values(kept) == {0: None}
        assert multiprocessing.active_children() == [not_ours]
    finally:
        not_ours.kill()
        not_ours.join()


# Memory

MAPPED_AGAIN = """
import resource
import sys
import numpy as np
from paper.experiment import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
np.ones(4_000_000)  # what is kept from here on
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(4_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_asked_for(how):
    found = subprocess.run(
        [sys.executable, "-c", MAPPED_AGAIN, how],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(found.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_memory_that_is_given_back_is_not_asked_for_again():
    assert pages_asked_for("kept") < pages_asked_for("as it is") / 10
