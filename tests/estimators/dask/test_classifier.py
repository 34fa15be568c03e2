"""Boosting on a Dask cluster, against the same on one machine."""

import gc
import pickle
import subprocess
import sys
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from structent import SpanningTreePartitions, circular, hierarchy
from structent.errors import StructentError
from structent.estimators.boosting import StructuredBoostingClassifier
from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier
from structent.metrics import level_report
from tests.estimators.dask.problems import (
    MONTHS,
    NEIGHBOURS,
    SAMPLER,
    XGBOOST,
    circle_frame,
    circle_rows,
    two_workers,
)

pytestmark = pytest.mark.requires("dask")

X, Y = circle_rows(2000, seed=0)
X_TEST, Y_TEST = circle_rows(1000, seed=1)
DASK_X, DASK_Y = da.from_array(X, chunks=(500, 2)), da.from_array(Y, chunks=300)
ROUNDS = {"n_estimators": 20, "early_stopping_rounds": None, **XGBOOST}
PLANTS = hierarchy(
    {"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)}, level_names=["kind"]
)


@pytest.fixture(scope="module", autouse=True)
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def model(client):
    return DaskStructuredBoostingClassifier(MONTHS, client=client, **ROUNDS).fit(DASK_X, DASK_Y)


@pytest.fixture(scope="module")
def plants(client):
    codes = da.from_array(np.random.default_rng(0).integers(3, size=300), chunks=100)
    labels = codes.map_blocks(np.array(PLANTS.classes).take)
    model = DaskStructuredBoostingClassifier(PLANTS, client=client, **ROUNDS)
    return model.fit(codes[:, None], labels)


def assert_same_model(on_dask, on_one_machine, table=X_TEST):
    difference = on_dask.predict_proba(table) - on_one_machine.predict_proba(table)
    np.testing.assert_allclose(difference, 0, atol=1e-6)


# Training


def test_a_short_form_is_built_from_the_labels_of_all_chunks(client):
    labels = np.char.lstrip(Y, "m").astype(int)
    in_order = np.argsort(labels, kind="stable")  # so that no chunk has all classes
    table = da.from_array(X[in_order], chunks=(500, 2))
    by_name = DaskStructuredBoostingClassifier("circular:width=3", client=client, **ROUNDS)
    by_name.fit(table, da.from_array(labels[in_order], chunks=500))
    assert by_name.structure_ == circular(range(12), width=3)
    local = StructuredBoostingClassifier("circular:width=3", **ROUNDS)
    assert_same_model(by_name, local.fit(X[in_order], labels[in_order]))


def test_test_log_loss_is_within_one_percent_of_one_process():
    rows = circle_rows(4000, seed=2, decimals=6)
    table, labels = circle_rows(2000, seed=3, decimals=6)
    eval_set = circle_rows(1000, seed=4, decimals=6)
    options = {**XGBOOST, "learning_rate": 0.2, "early_stopping_rounds": 25}
    on_dask = DaskStructuredBoostingClassifier(MONTHS, **options)
    on_dask.fit(*(da.from_array(part, chunks=1000) for part in rows), eval_set=eval_set)
    alone = StructuredBoostingClassifier(MONTHS, **options).fit(*rows, eval_set=eval_set)
    loss_on_dask, loss_alone = (
        log_loss(labels, model.predict_proba(table), labels=model.classes_)
        for model in (on_dask, alone)
    )
    assert loss_alone < 0.8 * np.log(12)  # there was something to learn
    assert loss_on_dask == pytest.approx(loss_alone, rel=0.01)


@pytest.mark.parametrize("trees", ["vector", "per_class"])
@pytest.mark.parametrize("structure", [MONTHS, None], ids=["structure", "none"])
def test_where_bins_are_the_same_the_model_is_that_of_one_process(structure, trees):
    options = {**ROUNDS, "trees": trees}
    on_dask = DaskStructuredBoostingClassifier(structure, **options).fit(DASK_X, DASK_Y)
    alone = StructuredBoostingClassifier(structure, **options).fit(X, Y)
    assert_same_model(on_dask, alone)
    np.testing.assert_array_equal(on_dask.classes_, alone.classes_)
    np.testing.assert_allclose(on_dask.feature_importances_, alone.feature_importances_, rtol=1e-4)


def test_workers_draw_the_partitions_that_one_process_draws():
    on_dask = DaskStructuredBoostingClassifier(SAMPLER, **ROUNDS).fit(DASK_X, DASK_Y)
    alone = StructuredBoostingClassifier(SAMPLER, **ROUNDS).fit(X, Y)
    other_draws = SpanningTreePartitions(NEIGHBOURS, n_blocks=4, singleton_weight=0.4, seed=4)
    otherwise = StructuredBoostingClassifier(other_draws, **ROUNDS).fit(X, Y)
    assert_same_model(on_dask, alone)
    assert abs(otherwise.predict_proba(X_TEST) - alone.predict_proba(X_TEST)).max() > 1e-3


@pytest.mark.parametrize("class_weight", [None, "balanced", {"m03": 0.0, "m04": 5.0}])
def test_weights_of_rows_and_classes_act_as_on_one_machine(class_weight):
    weights = np.random.default_rng(0).integers(4, size=len(Y)).astype(float)
    weights[:600] = 0  # a chunk of X without any weight
    options = {**ROUNDS, "class_weight": class_weight}
    on_dask = DaskStructuredBoostingClassifier(MONTHS, **options)
    on_dask.fit(DASK_X, DASK_Y, sample_weight=da.from_array(weights, chunks=700))
    alone = StructuredBoostingClassifier(MONTHS, **options).fit(X, Y, sample_weight=weights)
    assert_same_model(on_dask, alone)


@pytest.mark.parametrize("trees", ["vector", "per_class"])
def test_dataframes_with_text_categories_and_gaps_train_as_on_one_machine(trees):
    table, y = circle_frame(2000, seed=5)
    options = {**ROUNDS, "trees": trees}
    rows = dd.from_pandas(table.assign(month=y), npartitions=4)
    on_dask = DaskStructuredBoostingClassifier(MONTHS, **options)
    on_dask.fit(rows[list(table.columns)], rows["month"])
    alone = StructuredBoostingClassifier(MONTHS, **options).fit(table, y)
    assert_same_model(on_dask, alone, table)
    assert on_dask.feature_names_in_.tolist() == ["up", "noise", "side", "third"]


def test_categories_of_one_chunk_alone_are_known():
    chunks = [
        pd.DataFrame({"colour": pd.Categorical([colour] * 50), "value": np.arange(50.0)})
        for colour in ("red", "blue", "green")
    ]
    table = dd.concat([dd.from_pandas(chunk, npartitions=1) for chunk in chunks])
    y = da.from_array(np.repeat(["r", "b", "g"], 50), chunks=50)
    model = DaskStructuredBoostingClassifier(**ROUNDS).fit(table, y)
    shown = pd.DataFrame({"colour": ["green", "red", "blue"], "value": [0.0, 0.0, 0.0]})
    assert model.predict(shown).tolist() == ["g", "r", "b"]


@pytest.mark.parametrize("kind", [int, bool, str])
def test_labels_of_any_kind_come_back_as_they_were(kind):
    labels = np.array([kind(value) for value in (0, 1)])[(np.arange(400) > 150).astype(int)]
    table = da.arange(400.0, chunks=100)[:, None]
    series = dd.from_pandas(pd.Series(labels), npartitions=4)
    model = DaskStructuredBoostingClassifier(**ROUNDS).fit(table, series)
    np.testing.assert_array_equal(model.predict(table).compute(), labels)


def test_chunks_without_rows_do_no_harm(model):
    keep = da.from_array(np.repeat([True, False, True, True], 500), chunks=500)
    fewer = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS)
    fewer.fit(DASK_X.rechunk((500, 3))[keep], DASK_Y.rechunk(500)[keep])
    kept = keep.compute()
    alone = StructuredBoostingClassifier(MONTHS, **ROUNDS).fit(X[kept], Y[kept])
    assert_same_model(fewer, alone)
    predicted = model.predict(DASK_X.rechunk((500, 3))[keep])
    np.testing.assert_array_equal(predicted.compute(), model.predict(X[kept]))


def test_workers_keep_no_rows_after_training(client):
    before = set(client.futures)
    gc.disable()  # rows that only a search for cycles would free are kept too long
    try:
        model = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS)
        model.fit(DASK_X, DASK_Y, eval_set=(X_TEST, Y_TEST))
        deadline = time.monotonic() + 10  # they are let go in a thread of the client
        while set(client.futures) - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert set(client.futures) <= before
    finally:
        gc.enable()


# Validation


def test_an_eval_set_of_dask_and_one_of_numpy_stop_where_one_machine_does():
    options = {**XGBOOST, "learning_rate": 0.3, "early_stopping_rounds": 3}
    alone = StructuredBoostingClassifier(MONTHS, **options).fit(X, Y, eval_set=(X_TEST, Y_TEST))
    lazy = [(da.from_array(X_TEST, chunks=200), da.from_array(Y_TEST, chunks=200))]
    for eval_set in ((X_TEST, Y_TEST), lazy):
        on_dask = DaskStructuredBoostingClassifier(MONTHS, **options)
        on_dask.fit(DASK_X, DASK_Y, eval_set=eval_set)
        assert on_dask.best_iteration_ == alone.best_iteration_ < 100
        np.testing.assert_allclose(
            on_dask.validation_log_loss_, alone.validation_log_loss_, rtol=1e-5
        )


def test_a_worker_may_have_validation_rows_alone():
    one_chunk = DASK_X.rechunk((2000, 3)), DASK_Y.rechunk(2000)
    on_dask = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS)
    on_dask.fit(*one_chunk, eval_set=(X_TEST, Y_TEST))
    alone = StructuredBoostingClassifier(MONTHS, **ROUNDS).fit(X, Y, eval_set=(X_TEST, Y_TEST))
    assert_same_model(on_dask, alone)
    np.testing.assert_allclose(on_dask.validation_log_loss_, alone.validation_log_loss_, rtol=1e-5)


def test_rows_held_back_are_a_function_of_the_seed():
    def scores(seed):
        model = DaskStructuredBoostingClassifier(MONTHS, n_estimators=3, random_state=seed)
        return model.fit(DASK_X, DASK_Y).validation_log_loss_

    np.testing.assert_allclose(scores(0), scores(0), rtol=1e-6)
    assert abs(scores(0) - scores(1)).max() > 1e-4


def test_a_validation_split_without_rows_is_an_error():
    model = DaskStructuredBoostingClassifier(MONTHS, validation_fraction=1e-9, random_state=0)
    with pytest.raises(StructentError, match="must be a row for validation"):
        model.fit(DASK_X, DASK_Y)


def test_auto_weights_are_those_of_one_machine_where_it_sees_the_same_rows():
    options = {**ROUNDS, "n_estimators": 3, "weights": "auto"}
    on_dask = DaskStructuredBoostingClassifier(MONTHS, **options).fit(DASK_X, DASK_Y)
    alone = StructuredBoostingClassifier(MONTHS, **options).fit(X, Y)
    np.testing.assert_array_equal(on_dask.weights_, alone.weights_)
    assert on_dask.weights_[-1] != MONTHS.weights[-1]


# Predictions


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
def test_predictions_for_dask_arrays_are_dask_arrays_of_the_same_values(model, method):
    lazy = getattr(model, method)(da.from_array(X_TEST, chunks=(300, 2)))
    expected = getattr(model, method)(X_TEST)
    assert isinstance(lazy, da.Array)
    assert isinstance(expected, np.ndarray)
    assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
    assert lazy.chunks[0] == (300, 300, 300, 100)
    np.testing.assert_array_equal(lazy.compute(), expected)


def test_predictions_are_not_computed_before_they_are_asked_for(model):
    def unreadable(_block):
        raise OSError("the file is gone")

    table = da.zeros((10, 3), chunks=(5, 3))
    lazy = model.predict_proba(table.map_blocks(unreadable, meta=np.empty((0, 0))))
    with pytest.raises(OSError, match="the file is gone"):
        lazy.compute()


def test_threads_can_share_the_model(model):
    lazy = model.predict_proba(da.from_array(X_TEST, chunks=(50, 3)))
    found = lazy.compute(scheduler="threads", num_workers=4)
    np.testing.assert_array_equal(found, model.predict_proba(X_TEST))


def test_predictions_for_dataframes_have_rows_of_unknown_number():
    table, y = circle_frame(400, seed=6)
    rows = dd.from_pandas(table.assign(month=y), npartitions=3)
    columns = rows[list(table.columns)]
    model = DaskStructuredBoostingClassifier(MONTHS, **ROUNDS).fit(columns, rows["month"])
    lazy = model.predict_proba(columns)
    assert np.isnan(lazy.shape[0])
    assert lazy.shape[1] == 12
    np.testing.assert_array_equal(lazy.compute(), model.predict_proba(table))


def test_blocks_of_a_level_are_predicted_lazily(plants):
    table = np.array([[0.0], [1.0], [2.0]])
    lazy = plants.predict_level(da.from_array(table, chunks=2), "kind")
    assert lazy.dtype == np.array(["flower"]).dtype
    assert lazy.compute().tolist() == ["tree", "tree", "flower"]
    assert plants.predict_level(table, "kind").tolist() == ["tree", "tree", "flower"]


def test_a_wrong_level_or_number_of_columns_is_refused_before_anything_is_computed(plants):
    with pytest.raises(StructentError, match="family"):
        plants.predict_level(da.zeros((4, 1)), "family")
    with pytest.raises(ValueError, match="2 features"):
        plants.predict(da.zeros((4, 2)))


def test_the_report_of_levels_is_that_of_the_same_rows_in_memory(plants):
    codes = np.random.default_rng(1).integers(3, size=90)
    table, labels = codes[:, None] * 1.0, np.array(PLANTS.classes)[codes]
    lazy = plants.predict_proba(da.from_array(table, chunks=40))
    names = plants.classes_
    of_chunks = level_report(da.from_array(labels, chunks=40), lazy, PLANTS, classes=names)
    in_memory = level_report(labels, plants.predict_proba(table), PLANTS, classes=names)
    assert str(of_chunks) == str(in_memory)


# Files and copies


def test_the_file_is_read_without_dask_and_predicts_the_same(model, tmp_path):
    path, table, proba = (tmp_path / name for name in ("model.structent", "X.npy", "proba.npy"))
    model.save(path)
    np.save(table, X_TEST)
    code = f"""
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import numpy as np
from structent.estimators.boosting import StructuredBoostingClassifier
model = StructuredBoostingClassifier.load({str(path)!r})
np.save({str(proba)!r}, model.predict_proba(np.load({str(table)!r})))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(np.load(proba), model.predict_proba(X_TEST))


def test_a_loaded_model_predicts_for_dask_arrays(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = DaskStructuredBoostingClassifier.load(tmp_path / "model")
    predicted = loaded.predict(da.from_array(X_TEST, chunks=500)).compute()
    np.testing.assert_array_equal(predicted, model.predict(X_TEST))


def test_a_model_of_our_own_engine_predicts_on_a_cluster_but_is_not_trained_there(tmp_path):
    alone = StructuredBoostingClassifier(MONTHS, n_estimators=5, n_bags=2, n_jobs=1).fit(X, Y)
    alone.save(tmp_path / "model")
    loaded = DaskStructuredBoostingClassifier.load(tmp_path / "model")
    proba = loaded.predict_proba(da.from_array(X_TEST, chunks=(300, 3))).compute()
    np.testing.assert_array_equal(proba, alone.predict_proba(X_TEST))
    with pytest.raises(StructentError, match="engine must be 'xgboost' to train on Dask"):
        loaded.fit(DASK_X, DASK_Y)


def test_what_was_used_is_told_as_on_one_machine(model):
    assert (model.max_depth_, model.split_search_) == (3, "full")
    auto = DaskStructuredBoostingClassifier(MONTHS, **{**ROUNDS, "max_depth": "auto"})
    auto.set_params(n_estimators=2, split_search="auto").fit(DASK_X, DASK_Y)
    assert (auto.max_depth_, auto.split_search_) == (3, "full")


def test_the_local_model_is_a_copy_of_its_own(model):
    local = model.to_local()
    expected = model.predict_proba(X_TEST)
    np.testing.assert_array_equal(local.predict_proba(X_TEST), expected)
    local.set_params(n_estimators=2).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(model.predict_proba(X_TEST), expected)


def test_a_pickle_leaves_the_client_behind_and_a_clone_keeps_it(model, client):
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    assert copied.client is None
    np.testing.assert_array_equal(copied.predict(X_TEST), model.predict(X_TEST))
    assert clone(model).client is client


def test_progress_is_shown_on_the_client(capsys):
    DaskStructuredBoostingClassifier(MONTHS, progress=True, **ROUNDS).fit(DASK_X, DASK_Y)
    assert "boosting" in capsys.readouterr().out


def test_without_dask_the_module_says_what_to_install():
    code = "import sys; sys.modules['dask'] = None; import structent.estimators.dask.classifier"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stderr.splitlines()[-1].endswith("needs dask: pip install 'structent[dask]'")
