"""An experiment: its runs, the file of finished runs, and how the others are done.

Runs can be done one by one, in any order, in any process, at any time.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from paper.digests import (
    Digests,
    Sources,
    check_one_data,
    check_same_data,
    digests_of,
)
from structent._files import JsonLines
from structent._threads import available_threads
from structent.errors import StructentError
from structent.studies.progress import OnProgress

# Everything that decides the result of a run except the data, as plain JSON values. Runs with equal
# settings are the same run; digests of the data are kept beside them.
Settings: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]

PRESETS = ("paper", "quick", "smoke")

# Environment variables that libraries of arrays, trees and networks read when they are loaded.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)  # fmt: skip

# Versions that are recorded with every result.
_PACKAGES = ("numpy", "xgboost", "keras", "torch")
# From glibc's malloc.h; other C libraries have no mallopt, or ignore it.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER = 2**31 - 1
_ASKED_AT_A_TIME = 64 * 2**20  # bytes
# Seconds: if polars is loaded, Ctrl-C does not wake a process that waits for others.
_LOOK_UP = 0.5


class Experiment(Protocol):
    """An experiment, as a value: other processes get a copy of it."""

    @property
    def name(self) -> str:
        """The name of its page: ``months``, ``cifar100-1A``."""

    @property
    def kept_in(self) -> str:
        """The name of its results file; experiments that share runs share the file."""

    def runs(self) -> list[Settings]:
        """Return the settings of every run, in the order in which they are best done."""

    def sources(self, settings: Settings) -> Sources:
        """Return the files that a run reads, by the name of what they hold."""

    def run(self, settings: Settings, n_threads: int) -> Result:
        """Return the result of a run, as plain JSON values."""


@runtime_checkable
class Prepared(Protocol):
    """An experiment whose runs share something that is computed before the first of them."""

    def prepare(self, n_threads: int, on_progress: OnProgress) -> None:
        """Compute what all runs share, and keep it on disk."""


@dataclass(frozen=True)
class Finished:
    """A run that was done: its settings and result, how long it took, when, where, on what data.

    ``data`` has the digests of what the run read; None if it was recorded before digests existed.
    """

    settings: Settings
    result: Result
    seconds: float
    date: str
    machine: str
    data: Digests | None = None


@dataclass(frozen=True)
class Kept:
    """The finished runs of an experiment, in a file.

    Parameters
    ----------
    path
        The file; neither it nor its folder need exist yet.
    """

    path: Path

    def finished(self) -> list[Finished]:
        """Return all finished runs, in the order in which they were finished."""
        runs = JsonLines(self.path).read(
            lambda line: Finished(**line),
            what="be a finished run",
            then="and the run will be done again",
        )
        check_one_data(run.data for run in runs)
        return runs

    def finished_of(self, runs: Iterable[Settings]) -> list[Finished]:
        """Return which of the given runs are finished, in the order of the runs."""
        by_key = {key(run.settings): run for run in self.finished()}
        return [by_key[key(run)] for run in runs if key(run) in by_key]

    def mend(self) -> None:
        """Remove an incomplete last line, left by a process that was killed."""
        JsonLines(self.path).mend()

    def add(self, run: Finished) -> None:
        """Write down a finished run; other commands may write to the same file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        JsonLines(self.path).add(asdict(run))


def do_runs(experiment: Experiment, kept: Kept, *, n_jobs: int, on_progress: OnProgress) -> None:
    """Do every run that the results file does not have, and write it down when it is done.

    All runs of a file are made from the same data: other data is refused before anything is run.

    Parameters
    ----------
    experiment
        The experiment.
    kept
        Its results file. A run that is interrupted leaves nothing there.
    n_jobs
        How many runs at a time, each in a process of its own. They share the processors, so that
        there are never more threads than processors.
    on_progress
        Called after every finished run.
    """
    kept.mend()
    runs = experiment.runs()
    done = {key(run.settings) for run in kept.finished_of(runs)}
    pending = [settings for settings in runs if key(settings) not in done]
    if not pending:
        return
    data = {key(settings): digests_of(experiment.sources(settings)) for settings in pending}
    recorded = [run.data for run in kept.finished()]
    for digests in data.values():
        check_same_data(recorded, digests, kept.path)
    n_threads = available_threads()
    if isinstance(experiment, Prepared):
        experiment.prepare(n_threads, on_progress)
    on_progress(experiment.name, len(runs) - len(pending), len(runs))
    finished = (
        _one_by_one(experiment, pending, n_threads)
        if n_jobs == 1
        else _in_processes(experiment, pending, n_jobs, max(1, n_threads // n_jobs))
    )
    # Closed at once if recording is interrupted, so that no process keeps running.
    with closing(finished):
        for count, run in enumerate(finished, len(runs) - len(pending) + 1):
            kept.add(replace(run, data=data[key(run.settings)]))
            on_progress(experiment.name, count, len(runs))


def key(settings: Settings) -> str:
    """Return a text that identifies settings, whatever their order.

    >>> key({"size": 500, "loss": "standard"}) == key({"loss": "standard", "size": 500})
    True
    """
    return json.dumps(settings, sort_keys=True)


def chosen_sizes(sizes: Iterable[int], wanted: tuple[int, ...] | None) -> list[int]:
    """Return the training set sizes of an experiment that are wanted; all if None.

    >>> chosen_sizes([500, 1000, 2000], (2000, 500))
    [500, 2000]
    >>> chosen_sizes([500, 1000], (700,))
    Traceback (most recent call last):
    ...
    structent.errors.StructentError: --sizes must be among 500, 1000, got 700
    """
    known = list(sizes)
    if wanted is None:
        return known
    unknown = [size for size in wanted if size not in known]
    if unknown:
        names, others = (", ".join(map(str, which)) for which in (known, unknown))
        raise StructentError(f"--sizes must be among {names}, got {others}")
    return [size for size in known if size in wanted]


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees.

    A network allocates large arrays at every layer of every step. By default each of them is mapped
    and unmapped, and the system clears every page of it. On a virtual machine that took longer than
    the arithmetic: a small network trained at 0.8 times the speed, and predicted at half the speed.
    """
    if sys.platform != "linux":  # only Linux has glibc
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, _NEVER)
        mallopt(_TOP_PAD, _ASKED_AT_A_TIME)


def _one_by_one(
    experiment: Experiment, pending: list[Settings], n_threads: int
) -> Generator[Finished]:
    for settings in pending:
        yield _do(experiment, settings, n_threads)


def _in_processes(
    experiment: Experiment, pending: list[Settings], n_jobs: int, n_threads: int
) -> Generator[Finished]:
    """Do runs in processes; if one fails, running ones are finished before the error is raised."""
    # Not forked: a forked process inherits locks, but not the threads that would release them.
    spawn = multiprocessing.get_context("spawn")
    not_ours = set(multiprocessing.active_children())
    waiting, under_way = iter(pending), set[Future[Finished]]()
    failure: BaseException | None = None
    with (
        _threads_of_children(n_threads),
        ProcessPoolExecutor(n_jobs, mp_context=spawn, initializer=_follow_parent) as pool,
    ):
        try:
            while True:
                n_free = 0 if failure else n_jobs - len(under_way)
                for settings in islice(waiting, n_free):
                    with _interrupts_kept_from_children():
                        under_way.add(pool.submit(_do, experiment, settings, n_threads))
                if not under_way:
                    break
                done, under_way = wait(under_way, _LOOK_UP, return_when=FIRST_COMPLETED)
                for future in done:
                    if future.exception() is None:
                        yield future.result()
                    failure = failure or future.exception()
            pool.shutdown()
        except BaseException as error:
            for child in set(multiprocessing.active_children()) - not_ours:
                child.terminate()
            # Frames keep the pool's semaphores alive; a command that ends at once would leak them.
            traceback.clear_frames(error.__traceback__)
            raise
    if failure is not None:
        raise failure


def _do(experiment: Experiment, settings: Settings, n_threads: int) -> Finished:
    start = time.perf_counter()
    result = experiment.run(settings, n_threads)
    return Finished(
        settings=settings,
        result=result,
        seconds=round(time.perf_counter() - start, 2),
        date=datetime.now(UTC).date().isoformat(),
        machine=_machine(n_threads),
    )


@contextmanager
def _interrupts_kept_from_children() -> Iterator[None]:
    """Block Ctrl-C in processes that are started meanwhile, from their first moment on.

    Ctrl-C reaches every process of a terminal; only the one that records results should act on it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent() -> None:
    """Leave Ctrl-C to the process that started this one, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _threads_of_children(n_threads: int) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(n_threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _machine(n_threads: int) -> str:
    """Return the processor, how many were used, and the versions that results depend on."""
    parts = [
        f"{_processor()}, processors used: {n_threads}",
        f"Python {platform.python_version()} on {platform.system()}",
    ]
    for package in _PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # an experiment that needs it would have failed before
    return ", ".join(parts)


def _processor() -> str:
    # platform.processor() knows only the architecture on Linux.
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
