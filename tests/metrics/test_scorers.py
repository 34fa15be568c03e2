"""The metrics as scorers of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structent import LabelError, StructentError, circular, metrics, ordinal
from structent.metrics import scorer

MONTHS = circular(["jan", "feb", "mar", "apr", "may", "jun"], width=2)


@pytest.fixture(scope="module")
def weather():
    """Rows whose features are a noisy place on the circle of the months."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6), 40)
    angle = 2 * np.pi * codes / 6
    features = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(
        scale=0.6, size=(240, 2)
    )
    shuffled = rng.permutation(240)
    return features[shuffled], np.array(MONTHS.classes)[codes][shuffled]


@pytest.fixture(scope="module")
def model(weather):
    return LogisticRegression().fit(*weather)


LOSSES = [
    metrics.structured_log_loss,
    metrics.block_log_loss,
    metrics.mistake_severity,
    metrics.average_distance,
    metrics.calibration_error,
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_negated(loss, model, weather):
    features, y = weather
    expected = -loss(y, model.predict_proba(features), MONTHS, classes=model.classes_)
    assert scorer(loss, MONTHS)(model, features, y) == expected < 0


@pytest.mark.parametrize("gain", [metrics.block_accuracy, metrics.skill])
def test_a_gain_is_as_it_is(gain, model, weather):
    features, y = weather
    expected = gain(y, model.predict_proba(features), MONTHS, classes=model.classes_)
    assert scorer(gain, MONTHS)(model, features, y) == expected > 0


def test_without_structure_it_scores_as_scikit_learn_does(model, weather):
    plain = cross_val_score(LogisticRegression(), *weather, scoring="neg_log_loss")
    ours = cross_val_score(
        LogisticRegression(), *weather, scoring=scorer(metrics.block_log_loss, MONTHS)
    )
    np.testing.assert_allclose(ours, plain, rtol=1e-12)
    accuracy = scorer(metrics.block_accuracy, MONTHS)
    assert accuracy(model, *weather) == model.score(*weather)


def test_options_and_weights_reach_the_metric(model, weather):
    features, y = weather
    weights = np.arange(len(y)) % 3 + 1
    found = scorer(metrics.block_accuracy, MONTHS, level="width 2")(model, features, y, weights)
    expected = metrics.block_accuracy(
        y,
        model.predict_proba(features),
        MONTHS,
        level="width 2",
        sample_weight=weights,
        classes=model.classes_,
    )
    assert found == expected


def test_metadata_routing_brings_the_weights_that_are_asked_for(weather):
    features, y = weather
    weights = np.arange(len(y)) % 5 + 1.0
    plain = scorer(metrics.structured_log_loss, MONTHS)
    folds = list(KFold(3).split(features))

    def scores(scoring):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        given = {"sample_weight": weights}
        return cross_validate(model, features, y, cv=folds, scoring=scoring, params=given)

    def expected(sample_weight):
        for train, test in folds:
            model = LogisticRegression().fit(features[train], y[train], weights[train])
            chosen = None if sample_weight is None else sample_weight[test]
            yield plain(model, features[test], y[test], chosen)

    with config_context(enable_metadata_routing=True):
        asked = scores(plain.set_score_request(sample_weight=True))["test_score"]
        both = scores({"loss": plain.set_score_request(sample_weight=True)})["test_loss"]
        not_asked = scores(plain.set_score_request(sample_weight=False))["test_score"]
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            scores(plain)
    np.testing.assert_allclose(asked, list(expected(weights)), rtol=1e-12)
    np.testing.assert_allclose(both, asked, rtol=1e-12)
    np.testing.assert_allclose(not_asked, list(expected(None)), rtol=1e-12)


def test_it_works_in_a_grid_search_and_after_pickling(weather):
    scoring = pickle.loads(pickle.dumps(scorer(metrics.structured_log_loss, MONTHS)))  # noqa: S301  our own bytes
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [1e-4, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=3).fit(*weather)
    assert search.best_params_ == {"logisticregression__C": 1.0}
    assert scoring == scorer(metrics.structured_log_loss, MONTHS)


def test_a_class_that_the_estimator_has_not_seen_has_probability_zero(weather):
    features, y = weather
    seen = y != "feb"
    model = LogisticRegression().fit(features[seen], y[seen])
    accuracy = scorer(metrics.block_accuracy, MONTHS)
    assert accuracy(model, features, y) == model.score(features, y)
    log_loss = scorer(metrics.structured_log_loss, MONTHS)
    assert log_loss(model, features, y) == -np.inf
    assert -10 < log_loss(model, features[seen], y[seen]) < 0


class ModelOfChunks:
    """A classifier of Dask arrays."""

    def __init__(self, model):
        self.model = model
        self.classes_ = model.classes_

    def predict_proba(self, features):
        n_classes = len(self.classes_)
        chunks = (features.chunks[0], (n_classes,))
        return features.map_blocks(
            self.model.predict_proba, chunks=chunks, meta=np.empty((0, n_classes))
        )


@pytest.mark.requires("dask")
@pytest.mark.parametrize("unseen", [None, "feb"])
def test_an_estimator_may_predict_dask_arrays(weather, unseen):
    import dask
    import dask.array as da

    features, y = weather
    seen = y != unseen
    features, y = features[seen], y[seen]
    model = LogisticRegression().fit(features, y)
    log_loss = scorer(metrics.structured_log_loss, MONTHS)
    with dask.config.set(scheduler="synchronous"):
        found = log_loss(ModelOfChunks(model), da.from_array(features, chunks=(70, 2)), y)
    np.testing.assert_allclose(found, log_loss(model, features, y), rtol=1e-12)


def test_a_class_outside_of_the_structure_is_named(model, weather):
    with pytest.raises(LabelError, match="'apr' is not a class of the structure"):
        scorer(metrics.skill, ordinal(["low", "high"]))(model, *weather)


def test_only_the_metrics_of_the_package_can_be_made_scorers():
    with pytest.raises(StructentError, match="metric must be one of structured_log_loss, block"):
        scorer(max, MONTHS)


@pytest.mark.parametrize(
    ("metric", "option", "listed"),
    [
        (metrics.block_accuracy, "levle", "allow_blocks, level"),
        (metrics.calibration_error, "k", "allow_blocks, level, n_bins"),
        (metrics.structured_log_loss, "classes", "allow_blocks"),
        (metrics.mistake_severity, "classes", "none"),
    ],
)
def test_options_that_the_metric_does_not_take_are_refused(metric, option, listed):
    message = f"options of {metric.__name__} in a scorer are {listed}, got '{option}'"
    with pytest.raises(StructentError, match=message):
        scorer(metric, MONTHS, **{option: 1})


def test_it_says_what_it_scores():
    text = repr(scorer(metrics.average_distance, MONTHS, k=3))
    assert text.startswith("scorer(average_distance, <RandomPartition of 6 classes")
    assert text.endswith("k=3)")
