"""The speed of our boosting engine, of XGBoost's vector leaves, ChimeraBoost and others.

``python -m benchmarks.engine`` (in the environment of ``make peers``) measures all parts, or the
named ones, and adds lines to ``engine.jsonl``; a later line replaces an earlier one. ``--trial``
uses a hundredth of the rows and keeps nothing. ``python -m benchmarks engine`` prints the tables,
``--record`` writes RESULTS.md.

The time of a round is (time of many rounds - time of few rounds) / (difference), so that reading
and binning the table do not count. Alternatives take turns; medians; one thread.
"""

from benchmarks.timing import interleaved_medians, limit_threads

limit_threads(1)  # read when NumPy and Numba are first imported

import argparse  # noqa: E402
import multiprocessing  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterable, Iterator  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from contextlib import suppress  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks import peers  # noqa: E402
from benchmarks.engine_page import CASES, KEPT, page  # noqa: E402
from benchmarks.lines import Line, keep  # noqa: E402

ROUNDS_OF_CASES = ((5, 45), (5, 25), (2, 8))  # few and many
ROUNDS_OF_FAST = (5, 45)  # with fewer rounds, the time to read the table would dominate
FAST = ("structent", "structent, full gradient", "ChimeraBoost")
OF_CURVES = ("structent", "XGBoost")
FEW, DRAWN_AT_A_TIME = 2, 10_000

Problem = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Effort:
    """How much to measure: every number of rows is divided, every alternative repeated."""

    divisor: int = 1
    repeats: int = 5

    @property
    def most_rounds(self) -> int:
        return max(400 // self.divisor, 10)

    def rows(self, n_rows: int) -> int:
        return max(n_rows // self.divisor, 200)


def rounds(effort: Effort) -> Iterator[Line]:
    """Time a round of every engine, on the three cases of the targets."""
    for (n_rows, n_columns, n_classes, depth), bounds in zip(CASES, ROUNDS_OF_CASES, strict=True):
        problem = _problem(effort.rows(n_rows), n_columns, n_classes)
        makers = {name: partial(_fixed, name, depth=depth) for name in peers.FIXED}
        bounds_of = {name: ROUNDS_OF_FAST if name in FAST else bounds for name in makers}
        for name, milliseconds in _per_round(makers, problem, bounds_of, effort).items():
            case = [n_rows, n_columns, n_classes, depth]
            yield {"part": "rounds", "case": case, "name": name, "milliseconds": milliseconds}


def fits(effort: Effort) -> Iterator[Line]:
    """Time whole fits with early stopping, on the same rows with the same rate and depth."""
    X, y = _problem(2000, 4, 12)  # noqa: N806
    task = peers.Stopping(
        (X[:1000], y[:1000]), (X[1000:], y[1000:]), peers.Fixed(2000, depth=3), patience=25
    )
    alternatives = {name: partial(fit, task) for name, fit in peers.STOPPED.items()}
    for name, seconds in interleaved_medians(alternatives, rounds=effort.repeats).items():
        proba = alternatives[name]().predict_proba(X[1000:])
        loss = float(-np.log(proba[np.arange(1000), y[1000:]]).mean())
        yield {"part": "fits", "name": name, "milliseconds": 1e3 * seconds, "log_loss": loss}


def threads(effort: Effort) -> Iterator[Line]:
    """Time a round with one thread and with two."""
    n_rows, n_columns, n_classes, depth = CASES[2]
    problem = _problem(effort.rows(n_rows), n_columns, n_classes)
    makers = {
        n_threads: partial(_fixed, "structent", depth=depth, n_threads=n_threads)
        for n_threads in (1, 2)
    }
    bounds = dict.fromkeys(makers, (2, 42))
    for n_threads, milliseconds in _per_round(makers, problem, bounds, effort).items():
        yield {"part": "threads", "threads": n_threads, "milliseconds": milliseconds}


def predict(effort: Effort) -> Iterator[Line]:
    """Time the probabilities of 100,000 rows by 200 trees with 50 classes."""
    X, _ = _problem(effort.rows(100_000), 20, 50)  # noqa: N806
    problem = _problem(effort.rows(20_000), 20, 50)
    n_trees = max(200 // effort.divisor, 10)
    models = {
        name: _fixed(name, n_trees).fit(*problem)
        for name in ("structent", "XGBoost", "ChimeraBoost")
    }
    alternatives = {name: partial(model.predict_proba, X) for name, model in models.items()}
    for name, seconds in interleaved_medians(alternatives, rounds=effort.repeats).items():
        yield {"part": "predict", "name": name, "milliseconds": 1e3 * seconds}


def memory(effort: Effort) -> Iterator[Line]:
    """Measure the memory of two rounds at (1000000, 20, 50), each engine in its own process."""
    size = (effort.rows(1_000_000), 20, 50)
    n_rows, n_columns, n_classes = size
    unit = n_rows * (n_columns + 2 * 4 * n_classes)  # bins; gradient and margins in float32
    for name in OF_CURVES:
        extra = _alone(_bytes_of_fit, name, size)
        yield {"part": "memory", "name": name, "megabytes": extra / 2**20, "units": extra / unit}


def compiling(_: Effort) -> Iterator[Line]:
    """Time how much longer the first call of a process takes than the second."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder  # for the processes that are started from here
        for cache in ("empty", "filled"):
            for name in ("structent", "ChimeraBoost"):
                seconds = _alone(_seconds_to_compile, name)
                yield {"part": "compiling", "cache": cache, "name": name, "seconds": seconds}
        del os.environ["NUMBA_CACHE_DIR"]


def by_rows(effort: Effort) -> Iterator[Line]:
    """Time a round with 10 columns and 12 classes against the number of rows."""
    sizes = [(n_rows, 12) for n_rows in (1000, 10_000, 100_000, 1_000_000)]
    yield from _curve("by_rows", sizes, effort)


def by_classes(effort: Effort) -> Iterator[Line]:
    """Time a round with 10,000 rows and 10 columns against the number of classes."""
    sizes = [(10_000, n_classes) for n_classes in (2, 10, 50, 200, 1000)]
    yield from _curve("by_classes", sizes, effort)


PARTS: dict[str, Callable[[Effort], Iterable[Line]]] = {
    "rounds": rounds, "fits": fits, "threads": threads, "predict": predict, "memory": memory,
    "compiling": compiling, "by_rows": by_rows, "by_classes": by_classes,
}  # fmt: skip


def _curve(part: str, sizes: list[tuple[int, int]], effort: Effort) -> Iterator[Line]:
    for n_rows, n_classes in sizes:
        n_used = max(effort.rows(n_rows), 2 * n_classes)
        problem = _problem(n_used, 10, n_classes)
        # Enough rounds that their time exceeds the noise of reading the table.
        n_rounds = int(np.clip(10_000_000 // (n_used * n_classes), 4, effort.most_rounds))
        added = {name: max(n_rounds, 40) if name in FAST else n_rounds for name in OF_CURVES}
        makers = {name: partial(_fixed, name) for name in OF_CURVES}
        bounds = {name: (FEW, FEW + n_added) for name, n_added in added.items()}
        for name, milliseconds in _per_round(makers, problem, bounds, effort).items():
            size = {"rows": n_rows, "classes": n_classes}
            yield {"part": part, **size, "name": name, "milliseconds": milliseconds}


def _fixed(name: str, n_rounds: int, **settings: int) -> Any:
    return peers.FIXED[name](peers.Fixed(n_rounds, **settings))


def _per_round(
    makers: dict[Any, Callable[[int], Any]], problem: Problem,
    bounds: dict[Any, tuple[int, int]], effort: Effort,
) -> dict[Any, float]:  # fmt: skip
    """Return the milliseconds of one round of each alternative, given few and many rounds."""
    alternatives = {
        (name, n_rounds): partial(_fit, make, n_rounds, problem)
        for name, make in makers.items()
        for n_rounds in bounds[name]
    }
    seconds = interleaved_medians(alternatives, rounds=effort.repeats)
    return {
        name: 1e3 * (seconds[name, many] - seconds[name, few]) / (many - few)
        for name, (few, many) in bounds.items()
    }


def _fit(make: Callable[[int], Any], n_rounds: int, problem: Problem) -> None:
    make(n_rounds).fit(*problem)


def _problem(n_rows: int, n_columns: int, n_classes: int) -> Problem:
    """Return normal features, and classes drawn from the softmax of a linear function of them."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(n_columns, n_classes))
    X = np.empty((n_rows, n_columns), dtype=np.float32)  # noqa: N806
    labels = np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, DRAWN_AT_A_TIME):  # the fit must set the peak of memory
        part = X[start : start + DRAWN_AT_A_TIME]
        part[:] = rng.normal(size=part.shape)
        noise = rng.gumbel(size=(len(part), n_classes))
        labels[start : start + len(part)] = (part @ directions + noise).argmax(axis=1)
    labels[:n_classes] = np.arange(n_classes)  # each class has a row
    return X, labels


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, which inherits only the environment."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def _bytes_of_fit(name: str, size: tuple[int, int, int]) -> int:
    """Return the highest memory during a fit minus the memory before it, table included."""
    _fixed(name, 1).fit(*_problem(500, 4, 5))  # compiles
    problem = _problem(*size)
    with suppress(OSError):  # some systems cannot reset the peak, which may be the compiler's
        Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    _fixed(name, 2).fit(*problem)
    return _status("VmHWM") - before


def _status(field: str) -> int:
    """Return a number of bytes from Linux's status of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return int(kilobytes) * 1024


def _seconds_to_compile(name: str) -> float:
    X, y = _problem(500, 4, 5)  # noqa: N806
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        _fixed(name, 5).fit(X, y).predict_proba(X)
        seconds.append(time.perf_counter() - start)
    return seconds[0] - seconds[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all if none")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trial", action="store_true", help="few rows; nothing is kept")
    given = parser.parse_args()
    for chosen in given.parts or PARTS:
        for measured in PARTS[chosen](Effort(100 if given.trial else 1, given.repeats)):
            if given.trial:
                print(measured, flush=True)
            else:
                keep(KEPT, measured)
    print("\n".join(page()))
