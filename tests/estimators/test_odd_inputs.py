"""Labels, columns and weights that are no usual ones: exact, or refused in a sentence."""

import datetime

import numpy as np
import pandas as pd
import pytest

from structent import StructuredBoostingClassifier, StructuredLogisticRegression
from structent.errors import LabelError, StructentError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.array(["ash", "oak", "rose"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
WEIGHTS = RNG.uniform(0.5, 2, size=60)
# Penalties and priors count in the unit of the weights: beside such weights they are nothing.
BOOSTING = {"n_estimators": 5, "max_depth": 2, "random_state": 0, "reg_lambda": 0.0}
MODELS = {
    "structent": StructuredBoostingClassifier(**BOOSTING),
    "xgboost": StructuredBoostingClassifier(engine="xgboost", **BOOSTING),
    "lightgbm": StructuredBoostingClassifier(engine="lightgbm", trees="per_class", **BOOSTING),
    "linear": StructuredLogisticRegression(),
}
each_model = pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=pytest.mark.requires(name) if "g" in name else (), id=name)
        for name, model in MODELS.items()
    ],
)


# Weights


@each_model
@pytest.mark.parametrize("sign", [1, -1])
def test_weights_at_the_ends_of_what_a_float_holds_are_exact(model, sign):
    # A power of two changes no digit, and 2**900 is as far beyond all penalties as 2**1022 is.
    found = [
        model.fit(X, Y, np.ldexp(WEIGHTS, exponent)).predict_proba(X)
        for exponent in (sign * 900, sign * 1020)
    ]
    np.testing.assert_array_equal(*found)
    assert np.isfinite(found[0]).all()


def test_a_linear_model_of_weights_next_to_nothing_is_the_share_of_each_class():
    model = StructuredLogisticRegression(tol=1e-10).fit(X, Y, np.full(60, 1e-320))
    shares = np.unique(Y, return_counts=True)[1] / 60
    np.testing.assert_allclose(model.predict_proba(X), np.tile(shares, (60, 1)), atol=1e-8)


@each_model
def test_the_class_that_is_left_after_weights_of_0_is_named(model):
    with pytest.raises(LabelError, match="two classes or more, got only 'oak'"):
        model.fit(X, Y, sample_weight=(Y == "oak").astype(float))


@each_model
def test_complex_weights_are_refused(model):
    with pytest.raises(StructentError, match="sample_weight must hold numbers"):
        model.fit(X, Y, sample_weight=WEIGHTS + 0j)


# Labels

DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]


@each_model
@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.array(DAYS, dtype="datetime64[D]"), "got labels of type datetime64"),
        (pd.Series(DAYS, dtype="datetime64[ns]"), "got labels of type datetime64"),
        (np.array(DAYS, dtype=object), "datetime.date.* of type date"),
        (np.array([b"oak", b"ash"]), r"got labels of type \|S3; write them as text"),
        (np.array(["oak", 1], dtype=object), "got 1 of type int beside the text 'oak'"),
        (np.array([1, 2.5], dtype=object), "all of one kind, got 1 of type int"),
        (np.array([1j, 2j]), "Complex data not supported$"),
        (np.array([0.5, 1.5]), "got 0.5 in row 0; put amounts into bins"),
        (np.ma.masked_equal([1, 2], 2), "a label for every row, got a masked array"),
    ],
    ids=["dates", "pandas", "objects", "bytes", "mixed", "numbers", "complex", "amounts", "masked"],
)
def test_labels_that_are_no_classes_are_refused_in_a_sentence(model, labels, told):
    repeated = np.ma.concatenate([labels] * 30) if np.ma.is_masked(labels) else labels
    repeated = repeated if np.ma.is_masked(labels) else np.resize(np.asarray(labels), 60)
    with pytest.raises(LabelError, match=told) as caught:
        model.fit(X, repeated)
    assert "\n" not in str(caught.value)


@each_model
def test_labels_that_occur_once_give_no_warning(model):
    model = model.__class__(**model.get_params())
    if hasattr(model, "early_stopping_rounds"):
        model.set_params(early_stopping_rounds=None)
    model.fit(X[:20], [f"plant {row}" for row in range(20)])


def test_nullable_integers_are_integers():
    labels = pd.Series(np.arange(60) % 3, dtype="Int64")
    model = StructuredLogisticRegression("ordinal").fit(X, labels)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype.kind == "i"


# Tables


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pd.date_range("2020", periods=60), "got dates in 'odd'"),
        (["red", "blue"] * 30, "must hold numbers here, got text or categories in 'odd'"),
        ([1.0, None] * 30, "Input X contains NaN; fill in missing values"),
    ],
)
def test_a_column_that_a_linear_model_cannot_take_is_named(column, told):
    table = pd.DataFrame({"size": X[:, 0], "odd": column})
    with pytest.raises(StructentError, match=told) as caught:
        StructuredLogisticRegression().fit(table, Y)
    assert "\n" not in str(caught.value)


@each_model
@pytest.mark.parametrize(
    ("table", "told"),
    [
        (X + 1j, "Complex data not supported$"),
        (X[:, 0], "Expected 2D array, got 1D array instead. Reshape your data"),
        (np.ma.masked_less(X, 0), "X.filled"),
        (pd.DataFrame(X, columns=["a", "b", "a"]), "different names, got 'a' twice"),
        (pd.DataFrame({"a": [[1]] * 60}), "numbers or categories, got lists or the like in 'a'"),
        (np.full((60, 2), "x"), "X must hold numbers: could not convert"),
    ],
)
def test_tables_that_are_none_are_refused_in_a_sentence(model, table, told):
    with pytest.raises(StructentError, match=told) as caught:
        model.fit(table, Y)
    assert "\n" not in str(caught.value)


def test_features_whose_products_overflow_are_refused():
    with pytest.raises(
        StructentError, match=r"features must be at most .* got 1e\+300; scale them"
    ):
        StructuredLogisticRegression().fit(np.where(X > 1, 1e300, X), Y)


@pytest.mark.requires("lightgbm")
def test_a_lightgbm_model_that_tells_missing_values_from_others_can_be_saved(tmp_path):
    table = np.where(RNG.random((200, 1)) < 0.5, np.nan, 1.0) * np.ones((200, 1))
    table = np.column_stack([table, RNG.normal(size=200)])
    labels = np.where(np.isnan(table[:, 0]), "missing", "there")
    model = StructuredBoostingClassifier(engine="lightgbm", trees="per_class", n_estimators=5)
    model.fit(table, labels).save(tmp_path / "model")
    again = StructuredBoostingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize("chosen", [{"weights": "auto"}, {"prior": "auto"}])
def test_what_is_chosen_does_not_change_with_weights_whose_sums_overflow(chosen):
    model = StructuredLogisticRegression("ordinal:order=ash|oak|rose", **chosen, random_state=0)
    first, second = (
        model.fit(X, Y, np.full(60, weight)).weights_.tolist() + model.prior_.tolist()
        for weight in (1e300, 1.5e308)
    )
    assert first == second
