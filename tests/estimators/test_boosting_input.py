"""What boosting refuses, in one clear sentence."""

import numpy as np
import pandas as pd
import pytest

from structent import LabelError, StructentError, StructuredBoostingClassifier, StructureError
from structent.structure.catalog import months
from tests.estimators.problems import (
    ENGINES,
    LIGHTGBM,
    OURS,
    PER_CLASS,
    PLANTS,
    SETTLED,
    XGBOOST,
    engines,
    log_loss,
    planted_problem,
    rows_of,
)

FEATURES, LABELS = rows_of(PLANTS.classes)
QUICK = {"n_estimators": 3, "learning_rate": 0.05, **SETTLED}


def fit(*, X=FEATURES, y=LABELS, structure=PLANTS, sample_weight=None, eval_set=None, **more):
    model = StructuredBoostingClassifier(structure, **{**QUICK, **more})
    return model.fit(X, y, sample_weight=sample_weight, eval_set=eval_set)


def test_labels_outside_the_structure_are_named():
    with pytest.raises(LabelError, match=r"'osk' is not a class .* did you mean 'oak'"):
        fit(y=np.where(LABELS == "oak", "osk", LABELS))
    with pytest.raises(LabelError, match="'mapel' is not a class"):
        fit(eval_set=(FEATURES[:2], ["oak", "mapel"]))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_labels_are_refused(missing):
    labels = LABELS.astype(object)
    labels[7] = missing
    with pytest.raises(LabelError, match=r"a label for every row, got (None|nan) in row 7"):
        fit(y=labels)


def test_one_class_is_nothing_to_tell_apart():
    with pytest.raises(LabelError, match=r"two classes or more, got 1 class: \['oak'\]"):
        fit(y=["oak"] * len(LABELS))
    with pytest.raises(LabelError, match="two classes or more"):
        fit(sample_weight=(LABELS == "oak").astype(float))


@ENGINES
@pytest.mark.parametrize("infinite", [np.inf, -np.inf, 1e39])  # float32 ends before the last
@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame])
def test_infinite_features_are_refused(infinite, as_table, engine):
    features = FEATURES.copy()
    features[3, 1] = infinite
    with pytest.raises(ValueError, match="infinity or a value too large"):
        fit(X=as_table(features), **engine)
    model = fit(X=as_table(FEATURES), **engine)
    with pytest.raises(ValueError, match="infinity or a value too large"):
        model.predict(as_table(features))


def test_a_table_without_columns_is_refused():
    with pytest.raises(StructentError, match="at least one column, got none"):
        fit(X=pd.DataFrame(index=range(60)))


@pytest.mark.requires("lightgbm")
def test_columns_that_never_vary_are_nothing_to_learn_from_for_lightgbm():
    with pytest.raises(StructentError, match="a column with two different values, got none"):
        fit(X=np.full((60, 2), np.nan), **LIGHTGBM)


@engines(OURS, XGBOOST, PER_CLASS)
@pytest.mark.parametrize("value", [np.nan, 1.0])
def test_where_no_column_varies_every_row_gets_the_shares_of_the_classes(value, engine):
    X, y = np.full((60, 2), value), np.repeat(["rose", "oak", "ash"], [30, 20, 10])
    model = fit(X=X, y=y, n_estimators=400, learning_rate=0.1, early_stopping_rounds=None, **engine)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba, np.tile([1 / 6, 1 / 3, 1 / 2], (60, 1)), atol=0.01)
    assert model.feature_importances_.tolist() == [0.0, 0.0]


@ENGINES
def test_columns_without_information_change_nothing(engine):
    structure, features, labels = planted_problem(200)
    more = np.column_stack([features, np.full(200, np.nan), np.ones(200)])
    with_them, without = (
        fit(X=X, y=labels, structure=structure, **engine) for X in (more, features)
    )
    np.testing.assert_array_equal(
        with_them.predict_proba(more), without.predict_proba(features)
    )  # fmt: skip
    assert with_them.feature_importances_[-2:].tolist() == [0.0, 0.0]


@ENGINES
def test_a_row_for_every_leaf_is_enough(engine):
    features = np.arange(8.0)[:, None]
    model = fit(
        X=features, y=np.arange(8), structure=None, n_estimators=50, learning_rate=0.3,
        max_depth=8, reg_lambda=0.0, early_stopping_rounds=None, **engine,
    )  # fmt: skip
    assert model.score(features, np.arange(8)) == 1.0
    assert np.isfinite(model.predict_log_proba(features)).all()


@ENGINES
def test_a_class_without_rows_has_a_small_probability(engine):
    features, labels = rows_of(PLANTS.classes[:-1], n=200)
    model = fit(X=features, y=labels, n_estimators=20, learning_rate=0.3, **engine)
    column = model.classes_.tolist().index(PLANTS.classes[-1])
    proba = model.predict_proba(features)
    assert np.isfinite(model.predict_log_proba(features)).all()
    assert proba[:, column].max() < 0.05


def test_an_eval_set_has_the_same_columns_and_its_own_labels():
    with pytest.raises(StructentError, match=r"the 4 columns .* got shape \(60, 3\)"):
        fit(eval_set=(FEATURES[:, :3], LABELS))
    with pytest.raises(StructentError, match="60 rows and 59 labels"):
        fit(eval_set=(FEATURES, LABELS[1:]))
    with pytest.raises(StructentError, match=r"eval_set must be \(X, y\)"):
        fit(eval_set=[(FEATURES, LABELS), (FEATURES, LABELS)])
    with pytest.raises(StructentError, match="at least one row"):
        fit(eval_set=(FEATURES[:0], LABELS[:0]))


def test_weights_of_rows_are_not_negative():
    with pytest.raises(StructentError, match="sample_weight must be finite and not negative"):
        fit(sample_weight=np.full(len(LABELS), -1.0))
    with pytest.raises(StructentError, match="nor all be zero, got weights from 0 to 0"):
        fit(sample_weight=np.zeros(len(LABELS)))


STRUCTURE, MANY, OF_MANY = planted_problem(200)
WEIGHED = {
    "X": MANY, "y": OF_MANY, "structure": STRUCTURE, "n_estimators": 20, "learning_rate": 0.3,
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("weight", [1e-300, 1e-30, 5e-324])
def test_beside_weights_of_nothing_prior_and_penalty_are_everything(weight, engine):
    model = fit(**WEIGHED, sample_weight=np.full(200, weight), **engine)
    np.testing.assert_allclose(model.predict_proba(MANY), 1 / 12, rtol=1e-5)


@ENGINES
@pytest.mark.parametrize("weight", [1e-300, 1e30, 1e300, 1e308])
def test_without_a_penalty_weights_of_any_size_teach_the_same(weight, engine):
    settings = {**WEIGHED, **engine, "reg_lambda": 0.0, "early_stopping_rounds": None}
    plain, scaled = (
        log_loss(fit(**settings, sample_weight=given), MANY, OF_MANY)
        for given in (None, np.full(200, weight))
    )
    assert scaled == pytest.approx(plain, abs=0.02)
    assert scaled < 0.5 * np.log(12)


@ENGINES
def test_beside_huge_weights_the_penalty_is_nothing(engine):
    heavy = {"sample_weight": np.full(200, 1e300), **engine}
    with_penalty, without = (fit(**WEIGHED, reg_lambda=lam, **heavy) for lam in (1.0, 0.0))
    np.testing.assert_array_equal(with_penalty.predict_proba(MANY), without.predict_proba(MANY))


@ENGINES
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_weights_of_all_sizes_at_once_give_finite_logits(reg_lambda, class_weight, engine):
    weights = np.resize([0.0, 1e-300, 1.0, 1e300], 200)
    model = fit(
        **WEIGHED, reg_lambda=reg_lambda, class_weight=class_weight, sample_weight=weights, **engine
    )
    assert np.isfinite(model.predict_log_proba(MANY)).all()
    assert np.isfinite(model.validation_log_loss_).all()
    heavy = weights == 1e300
    assert model.score(MANY[heavy], OF_MANY[heavy]) > 0.3


@ENGINES
def test_rows_of_coarse_labels_may_have_any_weight(engine):
    labels = np.where(LABELS == "rose", "rose", "tree").astype(object)
    labels[::2] = LABELS[::2]
    for weight in (1e-300, 1e300):
        weights = np.full(len(labels), weight)
        model = fit(y=labels, sample_weight=weights, allow_blocks=True, **engine)
        assert np.isfinite(model.predict_log_proba(FEATURES)).all()


def test_an_empty_validation_split_is_refused():
    with pytest.raises(StructentError, match="leaves no row for validation; give more rows"):
        fit(X=FEATURES[:3], y=["oak", "ash", "rose"])
    with pytest.raises(StructentError, match="validation_fraction=0 of 60 rows leaves no row"):
        fit(validation_fraction=0.0)
    with pytest.raises(StructureError, match="validation_fraction must be between 0 and 1"):
        fit(validation_fraction=1.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be between 1 and .*, got 0"),
        ({"max_depth": 0}, "max_depth must be between 1 and 30, got 0"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds must be between 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, up to 1, got 0.0"),
        ({"subsample": 1.5}, "subsample must be a number above 0, up to 1, got 1.5"),
        ({"reg_lambda": -1}, "reg_lambda must be a number 0 or more, got -1"),
        ({"reg_lambda": np.inf}, "reg_lambda must be a number 0 or more, got inf"),
        ({"max_depth": "deep"}, "max_depth must be a whole number, got 'deep'"),
        ({"max_leaves": 1}, "max_leaves must be between 2 and .*, got 1"),
        ({"n_bags": 0}, "n_bags must be between 1 and .*, got 0"),
        ({"max_bins": 256}, "between 2 and 255, because a bin is one byte and .* one, got 256"),
        ({"max_bins": 1}, "max_bins must be between 2 and 255.*, got 1"),
        ({"max_bins": 64.0}, "max_bins must be a whole number, got 64.0"),
        ({"min_child_weight": "1"}, "min_child_weight must be a number 0 or more, got '1'"),
        ({"engine": "catboost"}, "engine must be 'structent' or 'xgboost' or 'lightgbm', got"),
        ({"trees": "scalar"}, "trees must be 'vector' or 'per_class', got 'scalar'"),
        ({"curvature": "exact"}, "curvature must be 'gradient' or 'bound' or 'fisher', got"),
        ({"split_search": "random"}, "split_search must be 'auto' or 'full'"),
        ({"engine": "lightgbm"}, "LightGBM grows one tree per class.*set trees='per_class'"),
        ({"trees": "per_class"}, "engine grows vector leaves, got trees='per_class'; set engine="),
        ({**PER_CLASS, "split_search": "structured"}, "needs vector leaves"),
        ({**XGBOOST, "split_search": "sketch"}, "split_search='sketch' needs engine='structent'"),
        ({**XGBOOST, "max_leaves": 4}, "max_leaves=4 needs engine='structent', got engine='xg"),
        ({**XGBOOST, "max_bins": 64}, "max_bins=64 needs engine='structent'"),
        ({**LIGHTGBM, "n_bags": 2}, "n_bags=2 needs engine='structent'"),
        ({"leaf_smoothing": 1}, "leaf_smoothing must be a number of at least 0 .* below 1.*got 1"),
        ({"leaf_smoothing": -0.1}, "leaf_smoothing must be a number .*, 'auto' or None, got -0.1"),
        ({"leaf_smoothing": "best"}, "leaf_smoothing must be a number .* got 'best'"),
        ({"leaf_smoothing": True}, "leaf_smoothing must be a number .* got True"),
        ({"structure": None, "leaf_smoothing": 0.5}, "leaf_smoothing=0.5 needs a structure .*none"),
        ({**XGBOOST, "leaf_smoothing": 0.5}, "leaf_smoothing=0.5 needs engine='structent', got"),
        ({**LIGHTGBM, "leaf_smoothing": "auto"}, "leaf_smoothing='auto' needs engine='structent'"),
        ({"weights": "best"}, "weights must be None, 'auto'"),
        ({"weights": [1.0]}, "one number for each of the 2 partitions"),
        ({"structure": 12}, "structure must be a RandomPartition or a sampler, got int"),
        ({"structure": "ladder"}, "must be one of trivial, circular, ordinal, .*, got 'ladder'"),
        ({"n_jobs": 0}, "n_jobs must be between 1"),
        ({"class_weight": {"oka": 2.0}}, "'oka' is not a class"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(StructentError, match=message):
        fit(**wrong)


def test_levels_need_a_structure_that_has_them():
    with pytest.raises(StructentError, match="'genus' is not a level"):
        fit().predict_level(FEATURES, "genus")
    features, labels = rows_of(months().classes, n=100)
    with pytest.raises(StructureError, match="must have one partition"):
        fit(X=features, y=labels, structure=months()).predict_level(features, "width 3")
