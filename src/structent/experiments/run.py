"""Do the runs of an experiment that are not done yet, several at a time if asked to."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime

from structent.comparison.progress import OnProgress
from structent.experiments.experiment import Experiment, Settings, key
from structent.experiments.kept import Finished, Kept
from structent.experiments.machine import machine
from structent.losses.rounds import available_threads

# What the libraries of arrays, trees and networks read when they are loaded.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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
    for count, run in enumerate(finished, len(runs) - len(pending) + 1):
        kept.add(run)
        on_progress(experiment.name, count, len(runs))


def _one_by_one(
    experiment: Experiment, pending: list[Settings], n_threads: int
) -> Iterator[Finished]:
    for settings in pending:
        yield _do(experiment, settings, n_threads)


def _in_processes(
    experiment: Experiment, pending: list[Settings], n_jobs: int, n_threads: int
) -> Iterator[Finished]:
    # Not forked: a forked process inherits the locks of threads that it does not have.
    spawn = multiprocessing.get_context("spawn")
    with (
        _threads_of_children(n_threads),
        ProcessPoolExecutor(n_jobs, mp_context=spawn, initializer=_leave_interrupts) as pool,
    ):
        futures: list[Future[Finished]] = [
            pool.submit(_do, experiment, settings, n_threads) for settings in pending
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _do(experiment: Experiment, settings: Settings, n_threads: int) -> Finished:
    start = time.perf_counter()
    result = experiment.run(settings, n_threads)
    return Finished(
        settings=settings,
        result=result,
        seconds=round(time.perf_counter() - start, 2),
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(),
    )


def _leave_interrupts() -> None:
    # Ctrl-C reaches every process of a terminal; the one that writes results down decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
