"""A Dask cluster: running tasks, training, and what can go wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from structent._checks import checked_integer
from structent._optional import load_optional
from structent.errors import StructentError
from structent.estimators.engines.xgboost import (
    METRIC,
    VALIDATION,
    XGBoostModel,
    callbacks,
    matrix_options,
    metric,
    objective,
    parameters,
)
from structent.estimators.rows import TrainingRows
from structent.estimators.training import OnRound, Training, round_progress
from structent.losses.boosters.rounds import FloatRows
from structent.losses.boosters.xgboost import TreeObjective, xgboost

_PURPOSE = "DaskStructuredBoostingClassifier"
load_optional("dask", extra="dask", purpose=_PURPOSE)
distributed = load_optional("distributed", extra="dask", purpose=_PURPOSE)
xgboost_dask = load_optional("xgboost.dask", extra="dask", purpose=_PURPOSE)

# XGBoost's messages if a worker is gone: its sockets closed, or Dask moved its task elsewhere.
_SIGNS_OF_DEATH = ("src/collective", "Invalid worker address", "Missing required workers")
_LOOK = 1.0  # seconds between two looks at which workers there are


@dataclass(frozen=True)
class Cluster:
    """The workers of a client, and how long they wait for each other.

    Attributes
    ----------
    client
        The client of Dask.
    timeout
        How many seconds a worker waits for another, and the client for a worker that is gone.
    """

    client: Any
    timeout: int

    @classmethod
    def of(cls, client: Any, timeout: Any) -> Cluster:
        """Return the cluster of a client, or of the current one if None; it has a worker."""
        seconds = checked_integer(timeout, "timeout", at_least=1, at_most=2**31 - 1)
        client = _current_client() if client is None else client
        is_client = isinstance(client, distributed.Client)
        if not is_client or client.asynchronous or client.status != "running":
            raise StructentError(
                "client must be a distributed.Client that is connected and not asynchronous, got "
                f"{client!r}; distributed.Client(address) makes one"
            )
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            raise StructentError(
                f"the cluster must have a worker, got none within {seconds} seconds; start workers "
                f"for the scheduler at {client.scheduler.address}"
            ) from None
        return cls(client, seconds)

    @property
    def n_threads(self) -> int:
        """The smallest number of threads of a worker, because all wait for the slowest."""
        return int(min(self.client.nthreads().values()))

    def compute(self, lazy: Sequence[Any], what: str) -> list[Any]:
        """Return the values of delayed objects, one per chunk of the rows of ``what``."""
        futures = self.client.compute(list(lazy))
        self._wait_for(futures, what)
        values: list[Any] = self.client.gather(futures)
        return values

    def persist(self, lazy: Sequence[Any], what: str) -> list[Any]:
        """Return the same delayed objects with their values in the memory of the workers."""
        kept = self.client.persist(list(lazy))
        self._wait_for([future for one in kept for future in distributed.futures_of(one)], what)
        return list(kept)

    def train(self, training: Training) -> tuple[XGBoostModel, tuple[float, ...]]:
        """Return the booster of the best round, and the validation log loss after every round.

        The rows of the task are Dask arrays.
        """
        try:
            result = self._trained(training)
        except StructentError:
            raise
        # Any error of a worker is raised here: no list of types would be complete.
        except Exception as error:
            raise _failed_training(error, self.timeout) from error
        scores = result["history"].get(VALIDATION, {}).get(METRIC, [])
        return XGBoostModel(result["booster"], training.start), tuple(map(float, scores))

    @contextmanager
    def progress(self, n_rounds: int, *, shown: bool) -> Iterator[OnRound]:
        """Yield the function that workers call after every round, with or without a bar."""
        with round_progress(n_rounds, shown=shown) as show:
            if not shown:
                yield show
                return
            topic = f"structent-{uuid4()}"
            self.client.subscribe_topic(topic, lambda event: show(*event[1]))
            try:
                yield _Telling(topic)
            finally:
                self.client.unsubscribe_topic(topic)

    def _wait_for(self, futures: Sequence[Any], what: str) -> None:
        number = {future.key: place for place, future in enumerate(futures)}
        with self._watch(set()):
            for future in distributed.as_completed(futures):  # the first failure ends the wait
                if future.status != "finished":
                    raise _failed_chunk(future, number[future.key], what)

    @contextmanager
    def _watch(self, needed: AbstractSet[str]) -> Iterator[None]:
        """Cancel everything the client waits for if a worker is gone for longer than the timeout.

        Otherwise Dask would wait forever: for any worker if none is left, and for the same worker
        if a task is bound to it, as XGBoost's tasks are.

        Parameters
        ----------
        needed
            The addresses of the workers that must stay; it may grow meanwhile.
        """
        over = threading.Event()

        def watch() -> None:
            since = time.monotonic()
            while not over.wait(_LOOK):
                there = self.client.scheduler_info(n_workers=-1)["workers"]
                if there and needed <= there.keys():
                    since = time.monotonic()
                elif time.monotonic() > since + self.timeout:
                    known = [distributed.Future(key, self.client) for key in self.client.futures]
                    self.client.cancel(known, force=True)
                    return

        watching = threading.Thread(target=watch, name="structent-watch", daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()

    def _trained(self, training: Training) -> Any:
        settings, needed = training.settings, set[str]()
        with self._watch(needed):
            data = self._matrix(training.rows, training)
            evals = []
            if training.validation is not None:
                evals = [(self._matrix(training.validation, training, ref=data), VALIDATION)]
            matrices = (data, *(matrix for matrix, _ in evals))
            needed.update(worker for matrix in matrices for worker in matrix.worker_map)
            try:
                return xgboost_dask.train(
                    self.client,
                    parameters(training),
                    data,
                    settings.n_estimators,
                    obj=_OnWorker(objective(training), training.n_classes),
                    custom_metric=metric(training),
                    evals=evals,
                    callbacks=callbacks(settings, training.on_round, with_validation=bool(evals)),
                    verbose_eval=False,
                    coll_cfg=xgboost.collective.Config(timeout=self.timeout),
                )
            finally:
                # Reference cycles would keep the rows on the workers for a long time.
                for matrix in matrices:
                    matrix.worker_map.clear()

    def _matrix(self, rows: TrainingRows, training: Training, ref: Any = None) -> Any:
        options = matrix_options(rows, training)
        return xgboost_dask.DaskQuantileDMatrix(self.client, rows.features, ref=ref, **options)


class _OnWorker(TreeObjective):  # type: ignore[misc]  # known at run time alone
    """An objective for workers that may have only validation rows."""

    def __init__(self, objective: Any, n_classes: int) -> None:
        self._objective = objective
        self._n_classes = n_classes

    def __call__(self, *arguments: Any) -> tuple[FloatRows, FloatRows]:
        if arguments[-1].num_row():
            gradient_and_curvature: tuple[FloatRows, FloatRows] = self._objective(*arguments)
            return gradient_and_curvature
        nothing = np.empty((0, self._n_classes), dtype=np.float32)
        return nothing, nothing


@dataclass(frozen=True)
class _Telling:
    """Tells the client about every round."""

    topic: str

    def __call__(self, number: int, log_loss: float | None) -> None:
        told = [number, None if log_loss is None else float(log_loss)]  # no NumPy types
        distributed.get_worker().log_event(self.topic, told)


def _current_client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:
        raise StructentError(
            "there must be a Dask client to train with, got none; make one with "
            "distributed.Client(address), or distributed.Client() for this machine alone"
        ) from None


def _failed_chunk(future: Any, number: int, what: str) -> StructentError:
    error = future.exception() if future.status == "error" else None
    if isinstance(error, StructentError):
        return error
    reason = future.status if error is None else f"{type(error).__name__}: {_first_line(error)}"
    if future.status == "cancelled":
        reason = "there was no worker within the timeout; check that workers are running"
    failure = StructentError(f"chunk {number} of {what} cannot be read from the workers: {reason}")
    failure.__cause__ = error
    return failure


def _failed_training(error: Exception, timeout: int) -> StructentError:
    text = str(error)
    if "Poll timeout" in text or "bootstrap the communication group" in text:
        return StructentError(
            f"workers must answer each other within timeout={timeout} seconds, got no answer from "
            "one of them while training; check that all are free and can reach each other, or "
            "raise the timeout"
        )
    # XGBoost asserts that its parts of the rows are there.
    is_lost = isinstance(error, CancelledError) or (
        isinstance(error, AssertionError) and text in ("lost", "cancelled")
    )
    if is_lost or any(sign in text for sign in _SIGNS_OF_DEATH):
        return StructentError(
            "all workers must run until training ends, got one that died or failed; its log says "
            "why, often because it ran out of memory"
        )
    return StructentError(
        f"a worker failed while training: {type(error).__name__}: {_first_line(error)}"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
