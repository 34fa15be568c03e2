"""Timing on a shared machine: alternatives take turns, and medians are compared."""

import os
import time
from collections.abc import Callable, Hashable
from statistics import median
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def interleaved_medians(
    alternatives: dict[Name, Callable[[], object]], *, rounds: int
) -> dict[Name, float]:
    """Return the median seconds of each alternative, all run once in every round."""
    for run in alternatives.values():
        run()  # compiles, allocates and warms caches
    seconds: dict[Name, list[float]] = {name: [] for name in alternatives}
    for _ in range(rounds):
        for name, run in alternatives.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}


def ratio(ours: float, theirs: float, at_most: float) -> str:
    """Return how many times theirs ours is, with the goal and whether it was missed.

    >>> ratio(3.0, 4.0, at_most=0.7)
    '0.75 (at most 0.7: missed)'
    """
    return f"{ours / theirs:.2f} {goal(ours / theirs, at_most)}"


def goal(value: float, at_most: float, unit: str = "") -> str:
    """Return a goal in brackets, and whether it was missed.

    >>> goal(1.4, 5, " s")
    '(at most 5 s)'
    """
    return f"(at most {at_most:g}{unit}{'' if value <= at_most else ': missed'})"


def limit_threads(n_threads: int) -> None:
    """Limit the thread pools of all libraries that are not yet imported, here and in children."""
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = str(n_threads)
