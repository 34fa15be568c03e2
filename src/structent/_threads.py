"""Processors and threads: how many there are, how many to use, and a pool of our own."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from structent._checks import checked_integer


def available_threads() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_n_jobs(n_jobs: int | None) -> int:
    """Return how many jobs to run at a time; None and -1 mean one for every processor."""
    if n_jobs is None or (n_jobs == -1 and not isinstance(n_jobs, bool)):
        return available_threads()
    return checked_integer(n_jobs, "n_jobs", at_least=1, at_most=2**15)


def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool of this process that has so many threads.

    Threads of our own rather than Numba's, whose pools abort the process when two Python threads or
    a fork meet in them.
    """
    return _pool_of_process(n_threads, os.getpid())


@lru_cache(maxsize=4)
def _pool_of_process(n_threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  a fork has none
    return ThreadPoolExecutor(n_threads, thread_name_prefix="structent")
