"""Do the runs of an experiment that are not done yet, several at a time if asked to."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice

from structent._threads import available_threads
from structent.experiments.experiment import Experiment, Settings, key
from structent.experiments.kept import Finished, Kept
from structent.experiments.machine import machine
from structent.studies.progress import OnProgress

# What the libraries of arrays, trees and networks read when they are loaded.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)  # fmt: skip

# Seconds: where polars is loaded, Ctrl-C does not wake a process that waits for others.
_LOOK_UP = 0.5


def do_runs(experiment: Experiment, kept: Kept, *, n_jobs: int, on_progress: OnProgress) -> None:
    """Do every run that the results file does not have, and write it down when it is done.

    Parameters
    ----------
    experiment
        The experiment.
    kept
        Its results file. A run that is broken off leaves nothing there.
    n_jobs
        How many runs at a time, each in a process of its own; the processors are shared out, so
        that threads never outnumber them.
    on_progress
        Told of every finished run.
    """
    kept.mend()
    runs = experiment.runs()
    done = {key(run.settings) for run in kept.finished_of(runs)}
    pending = [settings for settings in runs if key(settings) not in done]
    if not pending:
        return
    n_threads = available_threads()
    experiment.prepare(n_threads, on_progress)
    on_progress(experiment.name, len(runs) - len(pending), len(runs))
    finished = (
        _one_by_one(experiment, pending, n_threads)
        if n_jobs == 1
        else _in_processes(experiment, pending, n_jobs, max(1, n_threads // n_jobs))
    )
    # Closed at once if writing down is broken off: no process must outlive that.
    with closing(finished):
        for count, run in enumerate(finished, len(runs) - len(pending) + 1):
            kept.add(run)
            on_progress(experiment.name, count, len(runs))


def _one_by_one(
    experiment: Experiment, pending: list[Settings], n_threads: int
) -> Generator[Finished]:
    for settings in pending:
        yield _do(experiment, settings, n_threads)


def _in_processes(
    experiment: Experiment, pending: list[Settings], n_jobs: int, n_threads: int
) -> Generator[Finished]:
    """Do runs in processes; if one fails, those under way are finished before it is told."""
    # Not forked: a forked process inherits the locks of threads that it does not have.
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
            # Frames keep the pool's semaphores; a command that ends at once would leave them.
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
        machine=machine(n_threads),
    )


@contextmanager
def _interrupts_kept_from_children() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started meanwhile, from their first moment on.

    It reaches every process of a terminal; the one that writes results down decides.
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
