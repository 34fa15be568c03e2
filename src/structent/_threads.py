"""Processors and threads: how many there are, how many to use, and a pool of our own."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

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
    """Return this process's pool of ``n_threads`` threads.

    We use our own threads because Numba's pools abort the process when two Python threads, or a
    fork, use them at the same time.
    """
    return _pool_of_process(n_threads, os.getpid())


@lru_cache(maxsize=4)
def _pool_of_process(n_threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001  a fork has none
    return ThreadPoolExecutor(n_threads, thread_name_prefix="structent")


def in_parts(
    function: Callable[..., None], n: int, n_threads: int, *arguments: Any, least: int = 1
) -> None:
    """Call ``function(first, last, *arguments)`` on parts of ``range(n)``, each in a thread.

    The function must release the interpreter's lock. Each part has at least ``least`` entries.
    """
    n_parts = max(1, min(n_threads, n // max(least, 1)))
    if n_parts == 1:
        function(0, n, *arguments)
        return
    bounds = [n * part // n_parts for part in range(n_parts + 1)]
    pool = thread_pool(n_parts - 1)
    others = [
        pool.submit(function, bounds[part], bounds[part + 1], *arguments)
        for part in range(1, n_parts)
    ]
    function(*bounds[:2], *arguments)
    for other in others:
        other.result()
