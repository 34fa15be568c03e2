"""Defaults on real tables: our classifier and its peers, each with its own default settings.

``python -m benchmarks.defaults`` (in the environment of ``make peers``) runs what is missing in
``defaults.jsonl``: one line for each table, split and classifier, so that a run can be stopped and
continued. ``python -m benchmarks defaults`` prints the tables, ``--record`` writes RESULTS.md.

Only the random state, the number of threads and the verbosity are set. All classifiers of a table
run in one process and take turns, split by split; kernels are compiled beforehand. A fit that takes
longer than the cap is stopped and counts as not finished.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import tables
from benchmarks.defaults_page import CLASSIFIERS, KEPT, page
from benchmarks.lines import Line, keep, kept
from benchmarks.timing import limit_threads

N_SPLITS = 5
CAP = 1800.0  # seconds
CAP_TO_PREPARE = 1800.0  # seconds to read the table and to compile
READY = {"ready": True}
N_ROWS_TO_COMPILE = 500  # at most
LEAST_PROBABILITY = 1e-15  # a probability of 0 would give an infinite loss; "clipped" counts them


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    tables, classifiers, splits
        All combinations of these.
    data
        The folder with ``weather/``.
    n_threads
        For every classifier.
    cap
        How many seconds one fit and its predictions may take.
    """

    tables: list[str]
    classifiers: list[str]
    splits: range
    data: Path
    n_threads: int
    cap: float


class Worker:
    """A process with one table, in which classifiers are fitted; killed if a fit takes too long."""

    def __init__(self, table: str, plan: Plan) -> None:
        self._arguments = (table, plan)
        self._start()

    def measured(self, classifier: str, number: int, cap: float) -> Line:
        """Return the result of a fit, or that it did not finish, or how it failed."""
        self._connection.send((classifier, number))
        prepared = self._answer(CAP_TO_PREPARE)
        answer = self._answer(cap) if prepared == READY else prepared
        if not self._process.is_alive():
            self._start()
        return answer

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other_end = context.Pipe()
        arguments = (other_end, *self._arguments)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        other_end.close()
        if self._answer(CAP_TO_PREPARE) != READY:
            raise RuntimeError("the process that fits the classifiers could not start: see above")

    def _answer(self, cap: float) -> Line:
        try:
            if self._connection.poll(cap):
                answer: Line = self._connection.recv()
                return answer
            answer = {"unfinished": cap}
        except (EOFError, ConnectionError):
            answer = {"failed": "the process ended"}
        self.end()
        return answer


def run(plan: Plan, lines: list[Line]) -> None:
    """Run what has no line yet, table by table, and keep a line for each fit."""
    limit_threads(plan.n_threads)
    for table in plan.tables:
        worker = None
        for number, classifier in product(plan.splits, plan.classifiers):
            wanted = {"table": table, "classifier": classifier, "threads": plan.n_threads}
            if not _is_settled(wanted, number, plan.cap, lines):
                worker = worker or Worker(table, plan)
                found = worker.measured(classifier, number, plan.cap)
                lines.append(keep(KEPT, {**wanted, "split": number, **found}))
        if worker:
            worker.end()


def _is_settled(wanted: Line, number: int, cap: float, lines: list[Line]) -> bool:
    """Whether a split was run, or another split of the same fit took longer than the cap."""
    same = [line for line in lines if wanted.items() <= line.items()]
    was_run = any(line["split"] == number and "log_loss" in line for line in same)
    return was_run or any(line.get("unfinished", 0.0) >= cap for line in same)


def _work(connection: Any, name: str, plan: Plan) -> None:
    """Send a message when the table is read; then, for each fit, when it is ready, and a result."""
    peers = import_module("benchmarks.peers")
    table = tables.load(name, plan.data)
    connection.send(READY)
    for classifier, number in _requests(connection):
        try:
            train, test = tables.split(table, number)
            features = peers.as_taken(classifier, table.features)
            few = train[:: len(train) // N_ROWS_TO_COMPILE + 1]  # rows may be sorted by class
            peers.compile_kernels(classifier, features.iloc[few], table.labels[few])
            model = peers.DEFAULTS[classifier](number, plan.n_threads, table.categorical)
            connection.send(READY)
            line = _measured(model, features, table.labels, train, test)
            connection.send({**line, **_size(table, train, test)})
        except Exception as error:  # noqa: BLE001  any failure of a peer is recorded in the line
            connection.send({"failed": f"{type(error).__name__}: {error}"[:300]})


def _requests(connection: Any) -> Iterator[tuple[str, int]]:
    while True:
        try:
            yield connection.recv()
        except EOFError:  # the other end has gone
            return


def _measured(
    model: Any,
    features: Any,
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> Line:
    X_train, X_test = features.iloc[train], features.iloc[test]  # noqa: N806
    start = time.perf_counter()
    model.fit(X_train, labels[train])
    fitted = time.perf_counter()
    proba = model.predict_proba(X_test)
    predicted = time.perf_counter()
    n_classes = labels.max() + 1
    columns = np.zeros((len(test), n_classes))
    columns[:, np.asarray(model.classes_, dtype=np.int64).ravel()] = proba
    columns /= columns.sum(axis=1, keepdims=True)
    of_truth = columns[np.arange(len(test)), labels[test]]
    return {
        "log_loss": float(-np.log(np.maximum(of_truth, LEAST_PROBABILITY)).mean()),
        "accuracy": float((columns.argmax(axis=1) == labels[test]).mean()),
        "clipped": int((of_truth < LEAST_PROBABILITY).sum()),
        "fit_seconds": round(fitted - start, 3),
        "predict_seconds": round(predicted - fitted, 3),
    }


def _size(table: tables.Table, train: NDArray[np.int64], test: NDArray[np.int64]) -> Line:
    return {
        "n_train": len(train), "n_test": len(test), "columns": table.features.shape[1],
        "categorical": len(table.categorical), "classes": len(table.classes),
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=tables.TABLES, default=list(tables.TABLES))
    parser.add_argument("--classifiers", nargs="+", choices=CLASSIFIERS, default=list(CLASSIFIERS))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="how many")
    parser.add_argument("--data", type=Path, default=tables.DATA, help="the folder with weather/")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--cap", type=float, default=CAP, help="seconds for one fit")
    parser.add_argument(
        "--again", action="store_true", help="run what has a line already; the later line counts"
    )
    given = parser.parse_args()
    run(
        Plan(
            given.tables, given.classifiers, range(given.splits), given.data, given.threads,
            given.cap,
        ),
        [] if given.again else kept(KEPT),
    )  # fmt: skip
    print("\n".join(page()))
