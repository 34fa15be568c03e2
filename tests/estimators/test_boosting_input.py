"""What boosting refuses, in one clear sentence."""

import numpy as np
import pytest

from structent import LabelError, StructentError, StructuredBoostingClassifier, StructureError
from structent.structure.catalog import months
from tests.estimators.problems import PLANTS, rows_of

pytestmark = pytest.mark.requires("xgboost")

FEATURES, LABELS = rows_of(PLANTS.classes)


def fit(*, X=FEATURES, y=LABELS, structure=PLANTS, sample_weight=None, eval_set=None, **more):
    model = StructuredBoostingClassifier(structure, **{"n_estimators": 3, "n_jobs": 1, **more})
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


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_infinite_features_are_refused(infinite):
    features = FEATURES.copy()
    features[3, 1] = infinite
    with pytest.raises(ValueError, match="infinity or a value too large"):
        fit(X=features)


def test_columns_that_never_vary_are_nothing_to_learn_from_for_lightgbm():
    with pytest.raises(StructentError, match="a column with two different values, got none"):
        fit(X=np.full((60, 2), np.nan), engine="lightgbm", trees="per_class")


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
        ({"min_child_weight": "1"}, "min_child_weight must be a number 0 or more, got '1'"),
        ({"engine": "catboost"}, "engine must be 'structent' or 'xgboost' or 'lightgbm', got"),
        ({"trees": "scalar"}, "trees must be 'vector' or 'per_class', got 'scalar'"),
        ({"curvature": "exact"}, "curvature must be 'gradient' or 'bound' or 'fisher', got"),
        ({"split_search": "random"}, "split_search must be 'auto' or 'full'"),
        ({"engine": "lightgbm"}, "LightGBM grows one tree per class.*set trees='per_class'"),
        ({"trees": "per_class", "split_search": "structured"}, "needs vector leaves"),
        ({"weights": "best"}, "weights must be None, 'auto'"),
        ({"weights": [1.0]}, "one number for each of the 2 partitions"),
        ({"structure": 12}, "structure must be a RandomPartition or a sampler, got int"),
        ({"structure": "months"}, "must be one of trivial, circular, ordinal, .*, got 'months'"),
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
