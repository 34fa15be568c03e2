"""Labels of any granularity on a Dask cluster, against the same on one machine."""

import dask.array as da
import numpy as np
import pytest

from structent import LabelError, StructuredBoostingClassifier
from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier
from tests.estimators.dask.problems import MONTHS, XGBOOST, circle_rows, two_workers

pytestmark = pytest.mark.requires("dask")

X, Y = circle_rows(900, seed=0)
QUARTERS = MONTHS.partitions[0]
MIXED = Y.astype(object)
for row in range(0, 900, 2):
    MIXED[row] = QUARTERS.names[QUARTERS.block_of[MONTHS.classes.index(MIXED[row])]]
MIXED[0] = frozenset(MONTHS.classes[2:5])
DASK_X, DASK_Y = da.from_array(X, chunks=(300, 3)), da.from_array(MIXED, chunks=300)
EVAL = (X[:101], MIXED[:101])
ROUNDS = {**XGBOOST, "n_estimators": 10, "allow_blocks": True, "early_stopping_rounds": 25}


@pytest.fixture(scope="module")
def client():
    with two_workers() as connected:
        yield connected


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_workers_learn_and_stop_as_one_machine_does(client, class_weight):
    settings = {**ROUNDS, "class_weight": class_weight}
    spread = DaskStructuredBoostingClassifier(MONTHS, client=client, **settings)
    spread.fit(DASK_X, DASK_Y, eval_set=EVAL)
    local = StructuredBoostingClassifier(MONTHS, **settings).fit(X, MIXED, eval_set=EVAL)
    np.testing.assert_allclose(spread.predict_proba(X), local.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(spread.validation_log_loss_, local.validation_log_loss_, atol=1e-4)


def test_an_unknown_label_on_a_worker_is_told(client):
    wrong = MIXED.copy()
    wrong[-1] = "m0O"
    model = DaskStructuredBoostingClassifier(MONTHS, client=client, **ROUNDS)
    with pytest.raises(LabelError, match="'m0O' is not a class or block"):
        model.fit(DASK_X, da.from_array(wrong, chunks=300))
