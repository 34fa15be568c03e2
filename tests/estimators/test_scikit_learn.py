"""The estimators among scikit-learn's own: pipelines with tables inside, and metadata routing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from structent import (
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureLearner,
    trivial,
)
from structent.metrics import scorer, structured_log_loss
from structent.studies import learn
from tests.estimators.problems import PLANTS, rows_of

BOOSTING = StructuredBoostingClassifier(
    PLANTS, n_estimators=5, max_depth=2, early_stopping_rounds=None, random_state=0, n_jobs=1
)
BOTH = pytest.mark.parametrize("model", [BOOSTING, StructuredLogisticRegression(PLANTS)])
NAMES = ["height", "width", "leaves", "age"]


@pytest.fixture(scope="module")
def rows():
    """Features and labels, a weight for each row, and groups of six rows."""
    features, labels = rows_of(PLANTS.classes, n=120)
    weights = np.random.default_rng(0).integers(0, 4, size=120).astype(float)
    return pd.DataFrame(features, columns=NAMES), labels, weights, np.arange(120) // 6


def scaled(model):
    return Pipeline([("scale", StandardScaler()), ("model", clone(model))])


# Tables between the steps of a pipeline


@BOTH
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_a_pipeline_may_pass_on_tables(model, container, rows):
    table, labels, *_ = rows
    plain = scaled(model).fit(table, labels)
    with_tables = scaled(model).set_output(transform=container).fit(table, labels)
    with config_context(transform_output=container):
        configured = scaled(model).fit(table, labels)
        proba = configured.predict_proba(table)
    assert with_tables["model"].feature_names_in_.tolist() == NAMES
    assert not hasattr(plain["model"], "feature_names_in_")
    expected = plain.predict_proba(table)
    assert isinstance(proba, np.ndarray)
    np.testing.assert_array_equal(proba, expected)
    np.testing.assert_array_equal(with_tables.predict_proba(table), expected)
    np.testing.assert_array_equal(with_tables.predict(table), plain.predict(table))


def test_categories_go_through_a_pipeline_of_tables_as_they_are(rows):
    table, labels, *_ = rows
    colours = np.resize(["red", "blue", None], len(labels))
    mixed = pd.DataFrame({**table, "colour": pd.Categorical(colours)})
    columns = make_column_transformer((StandardScaler(), NAMES), remainder="passthrough")
    pipeline = Pipeline([("scale", columns), ("model", clone(BOOSTING))])
    pipeline.set_output(transform="pandas").fit(mixed, labels)
    scaled_table = columns.fit_transform(mixed)
    assert pipeline["model"]._fitted.encoder.columns.categories[-1] == ("blue", "red")
    np.testing.assert_array_equal(
        pipeline.predict_proba(mixed),
        clone(BOOSTING).fit(scaled_table, labels).predict_proba(scaled_table),
    )


def test_an_encoder_that_gives_polars_tables_is_no_obstacle(rows):
    table, labels, *_ = rows
    mixed = pl.DataFrame({"kind": np.resize(["a", "b", "c"], len(labels)), **table})
    columns = make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough")
    pipeline = Pipeline([("encode", columns), ("model", clone(BOOSTING))])
    pipeline.set_output(transform="polars").fit(mixed, labels)
    assert pipeline.score(mixed, labels) > 0.5


# Metadata routing


def asking(model, **request):
    """A pipeline in which the model alone gets weights; if there are groups, it holds them back."""
    pipeline = scaled(model)
    pipeline["scale"].set_fit_request(sample_weight=False)
    pipeline["model"].set_fit_request(groups=True, **request).set_score_request(**request)
    return pipeline


def expected_scores(model, rows, score):
    """Fit and score by hand, the weights given to both."""
    table, labels, weights, groups = rows
    for train, test in GroupKFold(3).split(table, labels, groups):
        scale = StandardScaler().fit(table.iloc[train])
        fitted = clone(model).fit(
            scale.transform(table.iloc[train]), labels[train],
            sample_weight=weights[train], groups=groups[train],
        )  # fmt: skip
        yield score(fitted, scale.transform(table.iloc[test]), labels[test], weights[test])


@BOTH
def test_weights_and_groups_reach_folds_fits_and_scores(model, rows):
    table, labels, weights, groups = rows
    given = {"sample_weight": weights, "groups": groups}
    ours = scorer(structured_log_loss, PLANTS).set_score_request(sample_weight=True)
    with config_context(enable_metadata_routing=True):
        pipeline = asking(model, sample_weight=True)
        found = cross_validate(pipeline, table, labels, cv=GroupKFold(3), params=given)
        losses = cross_validate(
            pipeline, table, labels, cv=GroupKFold(3), params=given, scoring=ours
        )

    def accuracy(fitted, features, y, sample_weight):
        return np.average(fitted.predict(features) == y, weights=sample_weight)

    np.testing.assert_allclose(found["test_score"], list(expected_scores(model, rows, accuracy)))
    np.testing.assert_allclose(losses["test_score"], list(expected_scores(model, rows, ours)))


@BOTH
def test_a_grid_search_routes_weights_and_groups(model, rows):
    table, labels, weights, groups = rows
    grid = {"model__weights": [None, 1.0, "auto"]}
    with config_context(enable_metadata_routing=True):
        pipeline = asking(model, sample_weight=True)
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3))
        search.fit(table, labels, sample_weight=weights, groups=groups)
    used = search.best_params_["model__weights"]
    scale = StandardScaler().fit(table)
    again = clone(model).set_params(weights=used)
    again.fit(scale.transform(table), labels, sample_weight=weights, groups=groups)
    np.testing.assert_allclose(
        search.predict_proba(table), again.predict_proba(scale.transform(table))
    )
    unweighted = clone(again).fit(scale.transform(table), labels)
    assert not np.allclose(
        unweighted.predict_proba(scale.transform(table)), search.predict_proba(table)
    )


@BOTH
def test_weights_that_nobody_asked_for_are_refused(model, rows):
    table, labels, weights, _ = rows
    with config_context(enable_metadata_routing=True):
        pipeline = scaled(model)
        pipeline["scale"].set_fit_request(sample_weight=False)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            pipeline.fit(table, labels, sample_weight=weights)
        ignored = asking(model, sample_weight=False)
        ignored["scale"].set_fit_request(sample_weight=True)
        ignored.fit(table, labels, sample_weight=weights)
        scaled_rows = ignored["scale"].transform(table)
    expected = clone(model).fit(scaled_rows, labels).predict_proba(scaled_rows)
    np.testing.assert_array_equal(ignored.predict_proba(table), expected)


def test_validation_rows_may_be_routed_too(rows):
    table, labels, *_ = rows
    early = clone(BOOSTING).set_params(n_estimators=40, early_stopping_rounds=3)
    held = (table.to_numpy()[:30], labels[:30])
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("model", clone(early).set_fit_request(eval_set=True))])
        pipeline.fit(table.to_numpy()[30:], labels[30:], eval_set=held)
    expected = early.fit(table.to_numpy()[30:], labels[30:], eval_set=held)
    np.testing.assert_array_equal(
        pipeline["model"].validation_log_loss_, expected.validation_log_loss_
    )


def test_groups_reach_a_learner_of_structures(rows, monkeypatch):
    table, labels, _, groups = rows
    seen = []

    def learn_structure(*_rows, groups, **_):
        seen.append(groups)
        return trivial(PLANTS.classes)

    monkeypatch.setattr(learn, "learn_structure", learn_structure)
    learner = StructureLearner(StructuredLogisticRegression())
    with config_context(enable_metadata_routing=True):
        asked = clone(learner).set_fit_request(groups=True)
        cross_validate(asked, table, labels, cv=GroupKFold(3), params={"groups": groups})
    folds = GroupKFold(3).split(table, labels, groups)
    for found, (train, _) in zip(seen, folds, strict=True):
        np.testing.assert_array_equal(found, groups[train])
