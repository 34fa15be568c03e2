"""Rows and parameters that boosting on Dask refuses."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from structent.errors import LabelError, StructentError
from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier
from tests.estimators.dask.problems import MONTHS, circle_rows

pytestmark = pytest.mark.requires("dask")

X, Y = circle_rows(2000, seed=0)
X_TEST, Y_TEST = circle_rows(1000, seed=1)
DASK_X, DASK_Y = da.from_array(X, chunks=(500, 2)), da.from_array(Y, chunks=300)
ROUNDS = {"n_estimators": 20, "early_stopping_rounds": None, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def client():
    with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        yield client


def test_an_unknown_label_is_named():
    labels = Y.copy()
    labels[1700] = "m12"
    model = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS)
    with pytest.raises(LabelError, match="'m12' is not a class of the structure"):
        model.fit(DASK_X, da.from_array(labels, chunks=300))


def test_a_chunk_that_cannot_be_computed_is_an_error_with_its_number():
    def broken(block, block_info):
        if block_info[0]["chunk-location"][0] == 2:
            raise OSError("the file is gone")
        return block

    table = DASK_X.rechunk((500, 3)).map_blocks(broken, meta=np.empty((0, 0)))
    with pytest.raises(StructentError, match=r"chunk 2 of X .* OSError: the file is gone"):
        DaskStructuredBoostingClassifier(MONTHS, **ROUNDS).fit(table, DASK_Y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engine": "lightgbm", "trees": "per_class"}, "engine must be 'xgboost' to train on Dask"),
        ({"split_search": "structured"}, "split_search must be 'full' on Dask"),
        ({"split_search": "sketch"}, "split_search='sketch' needs engine='structent'"),
        ({"max_depth": 0}, "max_depth must be between 1 and 30, got 0"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"timeout": 0}, "timeout"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"client": "tcp://127.0.0.1:8786"}, "client must be a distributed.Client"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    model = DaskStructuredBoostingClassifier(MONTHS, **{**ROUNDS, **changes})
    with pytest.raises(StructentError, match=message):
        model.fit(DASK_X, DASK_Y)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"X": X}, "X must be a Dask array or dataframe, got ndarray"),
        ({"X": DASK_X[:-1]}, "y has 2000 rows but X has 1999"),
        ({"X": da.where(DASK_X > 2, np.inf, DASK_X)}, "infinity"),
        ({"y": Y}, "y must be a Dask array"),
        (
            {"y": da.full(2000, "m01", dtype="U3", chunks=500)},
            "two classes or more, got only 'm01'",
        ),
        ({"sample_weight": -da.ones(2000)}, "sample_weight must be finite and not negative"),
        ({"sample_weight": da.zeros(2000)}, "some training row must have a weight above 0"),
        ({"sample_weight": da.full(2000, 1e300)}, "mean weight .* 1e-06 and 1e[+]06 .*, got 1e"),
        ({"sample_weight": da.full(2000, 1e-300)}, "multiply sample_weight by a number that"),
        ({"eval_set": (X_TEST[:, :2], Y_TEST)}, "3 columns of the training rows"),
        ({"eval_set": (DASK_X[:, :2], DASK_Y)}, "3 columns of the training rows"),
        ({"eval_set": DASK_X}, r"eval_set must be \(X, y\)"),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    model = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS)
    with pytest.raises(StructentError, match=message):
        model.fit(**{"X": DASK_X, "y": DASK_Y, **rows})
