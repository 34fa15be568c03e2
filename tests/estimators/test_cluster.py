"""What the client is told when workers fail, and that it is told at all."""

import os
import subprocess
import sys
import time

import dask
import dask.array as da
import distributed
import pytest

from structent.errors import StructentError
from structent.estimators.cluster import Cluster
from structent.estimators.dask import DaskStructuredBoostingClassifier
from tests.estimators.dask_problems import MONTHS, circle_rows, two_workers

pytestmark = pytest.mark.requires("dask")

TIMEOUT = 4
X, Y = (da.from_array(part, chunks=100) for part in circle_rows(400, seed=0))


@pytest.fixture(scope="module", autouse=True)
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(autouse=True)
def both_workers(client):
    client.wait_for_workers(2, timeout=60)  # one may have died in the test before


def sampler_that(fails):
    """Return a sampler that fails on the second worker, in the fourth round."""

    class Sampler:  # here, so that it is sent to workers whole, which need not import this file
        classes = MONTHS.classes

        def sample(self, iteration):
            if iteration == 3 and distributed.get_worker().name == 1:
                fails()
            return MONTHS

    return Sampler()


def fit(structure):
    model = DaskStructuredBoostingClassifier(
        structure, n_estimators=8, early_stopping_rounds=None, timeout=TIMEOUT
    )
    return model.fit(X, Y)


def test_an_error_on_one_worker_is_raised_on_the_client():
    def fails():
        raise OSError("the map of the counties is gone")

    # Whichever worker is heard first: the one that failed, or the one that lost it.
    with pytest.raises(StructentError, match="the map of the counties is gone|died or failed"):
        fit(sampler_that(fails))


def test_a_worker_that_dies_while_training_is_an_error_and_the_next_fit_works(client):
    def fails():
        os._exit(1)

    with pytest.raises(StructentError, match="died or failed"):
        fit(sampler_that(fails))
    client.wait_for_workers(2, timeout=60)
    assert fit(MONTHS).best_iteration_ == 7


def test_a_worker_that_hangs_is_an_error_after_the_timeout():
    def fails():
        time.sleep(3 * TIMEOUT)

    with pytest.raises(StructentError, match=f"within timeout={TIMEOUT} seconds"):
        fit(sampler_that(fails))


def test_a_chunk_that_kills_its_workers_is_an_error(client, monkeypatch):
    @dask.delayed
    def deadly():
        os._exit(1)

    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(StructentError, match=r"chunk 0 of the maps cannot be had .* KilledWorker"):
        Cluster.of(client, TIMEOUT).compute([deadly()], "the maps")


def test_a_cluster_without_workers_is_an_error_after_the_timeout():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty) as client,
        pytest.raises(StructentError, match="must have a worker, got none within 1 seconds"),
    ):
        Cluster.of(client, 1)


def test_without_a_client_the_error_says_how_to_make_one():
    code = """
import dask.array as da
from structent.estimators.dask import DaskStructuredBoostingClassifier
DaskStructuredBoostingClassifier().fit(da.zeros((4, 1)), da.zeros(4))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "there must be a Dask client to train with, got none" in result.stderr.splitlines()[-1]
