"""What the linear model takes, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix

from structent import (
    FixedStructure,
    LabelError,
    SpanningTreePartitions,
    StructentError,
    StructureError,
    circular,
)
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure.catalog import california_counties, months
from tests.estimators.problems import PLANTS, rows_of

TIGHT = {"tol": 1e-8, "max_iter": 5000}


@pytest.mark.parametrize("kind", [csr_matrix, csr_array, coo_array])
def test_sparse_features_are_never_made_dense_and_give_the_same_model(kind, monkeypatch):
    features, labels = rows_of(PLANTS.classes, n_features=20)
    features[features < 0.5] = 0.0
    dense = StructuredLogisticRegression(PLANTS, **TIGHT).fit(features, labels)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(csr_array, name, None)
        monkeypatch.setattr(csr_matrix, name, None)
    sparse = StructuredLogisticRegression(PLANTS, **TIGHT).fit(kind(features), labels)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    np.testing.assert_allclose(
        sparse.predict_proba(kind(features)), dense.predict_proba(features), atol=1e-5
    )


def test_float32_features_stay_float32():
    features, labels = rows_of(PLANTS.classes)
    double = StructuredLogisticRegression(PLANTS, tol=1e-5).fit(features, labels)
    single = StructuredLogisticRegression(PLANTS, tol=1e-5).fit(features.astype(np.float32), labels)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.predict_proba(features.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=2e-3)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_are_features_with_names(frame):
    features, labels = rows_of(PLANTS.classes, n_features=2)
    table = frame({"height": features[:, 0], "width": features[:, 1]})
    model = StructuredLogisticRegression(PLANTS).fit(table, labels.tolist())
    assert model.feature_names_in_.tolist() == ["height", "width"]
    np.testing.assert_array_equal(
        model.coef_, StructuredLogisticRegression(PLANTS).fit(features, labels).coef_
    )


@pytest.mark.parametrize(
    "classes",
    [["b", "c", "a", "d"], [7, -2, 10, 3], [True, False]],
    ids=["str", "int", "bool"],
)
def test_labels_are_matched_to_the_structure_by_value(classes):
    structure = circular(classes, width=2, singleton_weight=0.5)
    features, labels = rows_of(classes)
    for y in (labels, labels.tolist(), pd.Series(labels), pl.Series(labels.tolist())):
        model = StructuredLogisticRegression(structure).fit(features, y)
        assert model.classes_.tolist() == sorted(classes)
        assert model.score(features, labels) > 0.4
        assert model.predict(features).dtype == np.array(classes).dtype


@pytest.mark.parametrize(
    ("structure", "labels", "message"),
    [
        (PLANTS, ["oak", "rosé"], "'rosé' is not a class of the structure; did you mean 'rose'"),
        (months(), [12, 13], "13 is not a class of the structure"),
        (months(), ["1", "2"], "'1' is not a class of the structure: it has 1 of type int, not"),
        (months(), [True, False], "True is not a class of the structure"),
    ],
)
@pytest.mark.parametrize("weights", [None, "auto"])
def test_a_label_outside_the_structure_is_named(structure, labels, message, weights):
    model = StructuredLogisticRegression(structure, weights=weights)
    with pytest.raises(LabelError, match=message):
        model.fit(np.arange(8.0)[:, None], labels * 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be a number above 0, got 0.0"),
        ({"C": np.nan}, "C must be a number above 0, got nan"),
        ({"C": "1"}, "C must be a number above 0, got '1'"),
        ({"tol": -1e-4}, "tol must be a number above 0, got -0.0001"),
        ({"max_iter": 0}, "max_iter must be between 1 and"),
        ({"max_iter": 2.5}, "max_iter must be a whole number, got 2.5"),
        ({"weights": "best"}, "weights must be None, 'auto'"),
        ({"weights": [1.0]}, "weights must be one number for each of the 2 partitions"),
        ({"class_weight": "equal"}, "class_weight must be a dict, 'balanced' or None"),
        ({"structure": ["oak"]}, "structure must be a RandomPartition or a sampler, got list"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS).set_params(**parameters)
    with pytest.raises(StructentError, match=message):
        model.fit(features, labels)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused(wrong):
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS).fit(features, labels)
    features[3, 1] = wrong
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        StructuredLogisticRegression(PLANTS).fit(features, labels)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        model.predict(features)


def test_negative_weights_and_a_single_class_are_refused():
    features, labels = rows_of(PLANTS.classes)
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative, got -1"):
        StructuredLogisticRegression(PLANTS).fit(features, labels, -np.ones(60))
    with pytest.raises(LabelError, match="y must hold two classes or more"):
        StructuredLogisticRegression(PLANTS).fit(features, ["oak"] * 60)


@pytest.mark.parametrize("weights", [None, "auto"])
@pytest.mark.parametrize(
    "sampler",
    [FixedStructure(PLANTS), SpanningTreePartitions(california_counties(), 5, 0.5)],
    ids=["fixed", "drawn"],
)
def test_a_sampler_is_refused_with_the_way_out(sampler, weights):
    features, labels = rows_of(sampler.classes[:3])
    with pytest.raises(StructureError, match=r"L-BFGS cannot follow .* fix them with its sample"):
        StructuredLogisticRegression(sampler, weights=weights).fit(features, labels)
