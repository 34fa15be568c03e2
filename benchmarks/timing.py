"""Timing on a shared machine: alternatives take turns, and medians are compared."""

import time
from collections.abc import Callable
from statistics import median


def interleaved_medians(
    alternatives: dict[str, Callable[[], object]], *, rounds: int
) -> dict[str, float]:
    """Return the median seconds of each alternative, all run once in every round."""
    for run in alternatives.values():
        run()  # compiles, allocates and warms caches
    seconds: dict[str, list[float]] = {name: [] for name in alternatives}
    for _ in range(rounds):
        for name, run in alternatives.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}
