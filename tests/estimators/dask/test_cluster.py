"""What the client is told when workers fail, and that it is told at all."""

import os
import signal
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from sklearn.base import clone

from structent.errors import StructentError
from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier
from structent.estimators.dask.cluster import Cluster
from tests.estimators.dask.problems import MONTHS, circle_rows, two_workers

pytestmark = [pytest.mark.slow, pytest.mark.requires("dask")]

X, Y = (da.from_array(part, chunks=100) for part in circle_rows(400, seed=0))


@pytest.fixture(scope="module")
def started_client():
    with two_workers() as client:
        yield client


@pytest.fixture
def client(started_client):
    wait_for_two_new_workers(started_client, set())  # one may have died in the test before
    return started_client


def wait_for_two_new_workers(client, dead):
    """Wait until two workers, none of them dead, have been there for two seconds.

    The scheduler counts a dead worker until it hears of its end, and the survivor of a fit that
    failed may end a moment later: the tracker of XGBoost tells it to.
    """
    deadline = time.monotonic() + 90
    seen, since = set(), time.monotonic()
    while len(seen) != 2 or seen & dead or time.monotonic() < since + 2:
        assert time.monotonic() < deadline, f"workers after 90 seconds: {seen}"
        time.sleep(0.1)
        now = set(client.scheduler_info(n_workers=-1)["workers"])
        if now != seen:
            seen, since = now, time.monotonic()


def names_of_workers(client):
    return client.run(lambda dask_worker: dask_worker.name)


def sampler_that(fails):
    """Return a sampler that fails on the second worker, in the fourth round."""

    class Sampler:  # here, so that it is sent to workers whole, which need not import this file
        classes = MONTHS.classes

        def sample(self, iteration):
            if iteration == 3 and distributed.get_worker().name == 1:
                fails()
            return MONTHS

    return Sampler()


def fit(structure, client, timeout=60):
    model = DaskStructuredBoostingClassifier(
        structure, n_estimators=8, early_stopping_rounds=None, client=client, timeout=timeout
    )
    if client is None:
        return model.fit(X, Y)
    return model.fit(*(on_both_workers(rows, client) for rows in (X, Y)))


def on_both_workers(rows, client):
    """Return rows of which each worker has half: a busy one would else be passed over."""
    first, second = client.nthreads()  # asked now: one may have died a moment ago
    halves = [
        client.persist(half, workers=[worker], allow_other_workers=True)  # when it is dead
        for half, worker in ((rows[:200], first), (rows[200:], second))
    ]
    distributed.wait(halves, timeout=60)
    return da.concatenate(halves)


def test_without_a_client_the_error_says_how_to_make_one():  # first, while there is none
    with pytest.raises(StructentError, match=r"must be a Dask client .* distributed.Client\("):
        fit(MONTHS, client=None)


def test_an_error_on_one_worker_is_raised_on_the_client(client):
    def fails():
        raise OSError("the map of the counties is gone")

    # Whichever worker is heard first: the one that failed, or the one that lost it.
    with pytest.raises(StructentError, match=r"the map of the counties is gone|died or failed"):
        fit(sampler_that(fails), client)


def test_a_worker_that_dies_while_training_is_an_error_and_the_next_fit_works(client):
    def fails():
        os._exit(1)

    [dead] = [worker for worker, name in names_of_workers(client).items() if name == 1]
    with pytest.raises(StructentError, match="died or failed"):
        fit(sampler_that(fails), client)
    wait_for_two_new_workers(client, {dead})
    assert fit(MONTHS, client).best_iteration_ == 7


def test_a_worker_that_hangs_is_an_error_after_the_timeout(client):
    def fails():
        time.sleep(15)

    with pytest.raises(StructentError, match="within timeout=3 seconds"):
        fit(sampler_that(fails), client, timeout=3)


def sampler_that_ends_all_workers():
    class Sampler:  # as above
        classes = MONTHS.classes

        def sample(self, iteration):
            if iteration == 3:
                os._exit(1)
            return MONTHS

    return Sampler()


def test_a_fit_whose_workers_all_die_ends_within_the_timeout(client):
    """They come back under other names, and Dask would wait for the old ones for ever."""
    start = time.monotonic()
    with pytest.raises(StructentError, match="died or failed"):
        fit(sampler_that_ends_all_workers(), client, timeout=5)
    assert time.monotonic() < start + 60


def test_rows_of_a_worker_that_is_killed_before_the_training_are_loaded_by_the_other(client):
    """All of them: the fit is then that of one worker, or it fails if XGBoost had begun."""
    rows = [on_both_workers(part, client) for part in (X, Y)]
    model = DaskStructuredBoostingClassifier(
        MONTHS, n_estimators=20, early_stopping_rounds=None, client=client, timeout=15,
        random_state=0,
    )  # fmt: skip
    expected = clone(model).fit(*rows).predict_proba(X).compute()
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    try:
        found = model.fit(*rows).predict_proba(X).compute()
    except StructentError as error:
        assert "died or failed" in str(error)  # noqa: PT017  either is right
    else:
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_rows_without_a_worker_are_an_error_after_the_timeout():
    with (
        distributed.LocalCluster(n_workers=1, dashboard_address=":0", processes=False) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = Cluster.of(client, 2)
        cluster.scale(0)
        lazy = dask.delayed(sum)([1, 2])
        with pytest.raises(StructentError, match="no worker within the timeout"):
            found.compute([lazy], "the maps")


def test_a_chunk_that_kills_its_workers_is_an_error(client, monkeypatch):
    @dask.delayed
    def deadly():
        os._exit(1)

    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(StructentError, match=r"chunk 0 of the maps cannot be read .* KilledWorker"):
        Cluster.of(client, 60).compute([deadly()], "the maps")


def test_a_cluster_without_workers_is_an_error_after_the_timeout():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty) as client,
        pytest.raises(StructentError, match="must have a worker, got none within 1 seconds"),
    ):
        Cluster.of(client, 1)
