"""A structure named by a short form, as on the command line, is built from the labels at fit."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structent import (
    LabelError,
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureError,
    circular,
    ordinal,
)
from tests.estimators.problems import OURS, XGBOOST, engines, rows_of

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
QUICK = {"n_estimators": 8, "learning_rate": 0.3, "max_depth": 3, "n_jobs": 1, "random_state": 0}
ESTIMATORS = pytest.mark.parametrize(
    "model",
    [StructuredBoostingClassifier(**QUICK), StructuredLogisticRegression()],
    ids=["trees", "linear"],
)


@ESTIMATORS
def test_a_short_form_is_the_structure_that_it_names(model):
    features, labels = rows_of(MONTHS, n=200)
    by_name = clone(model).set_params(structure="circular:width=3").fit(features, labels)
    built = clone(model).set_params(structure=circular(MONTHS, width=3)).fit(features, labels)
    assert by_name.structure == "circular:width=3"
    assert by_name.structure_ == circular(MONTHS, width=3)
    np.testing.assert_array_equal(by_name.predict_proba(features), built.predict_proba(features))
    np.testing.assert_array_equal(by_name.weights_, built.weights_)
    assert by_name.score(features, labels) == built.score(features, labels)


@ESTIMATORS
@pytest.mark.parametrize("labels_as", [list, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_labels_may_come_in_any_form(model, labels_as):
    features, labels = rows_of([3, 1, 2])
    fitted = clone(model).set_params(structure="ordinal").fit(features, labels_as(labels))
    assert fitted.structure_ == ordinal([1, 2, 3])


@ESTIMATORS
def test_labels_without_an_order_are_refused_with_the_way_out(model):
    features, labels = rows_of(["small", "medium", "large"])
    message = (
        "the labels of ordinal must be numbers, months or weekdays to have an order, got 'large', "
        "'medium', 'small'; write 'ordinal:order=large|medium|small' with all labels in their order"
    )
    with pytest.raises(StructentError, match=f"^{re.escape(message)}$"):
        clone(model).set_params(structure="ordinal").fit(features, labels)
    order = "ordinal:order=small|medium|large"
    fitted = clone(model).set_params(structure=order).fit(features, labels)
    assert fitted.structure_ == ordinal(["small", "medium", "large"])


@ESTIMATORS
def test_an_order_may_name_classes_without_rows_but_not_leave_one_out(model):
    features, labels = rows_of(["S", "L"])
    fitted = clone(model).set_params(structure="ordinal:order=S|M|L").fit(features, labels)
    assert fitted.classes_.tolist() == ["L", "M", "S"]
    with pytest.raises(LabelError, match="'S' is not a class of the structure"):
        clone(model).set_params(structure="ordinal:order=M|L").fit(features, labels)


@ESTIMATORS
def test_a_short_form_that_needs_a_table_is_refused(model):
    features, labels = rows_of(["oak", "rose"])
    with pytest.raises(StructureError, match=r"pass hierarchy\(paths or table\)"):
        clone(model).set_params(structure="hierarchy:columns=kind").fit(features, labels)


@ESTIMATORS
def test_labels_that_may_be_blocks_need_the_structure_itself(model):
    features, labels = rows_of([1, 2, 3])
    blocks = clone(model).set_params(structure="ordinal", allow_blocks=True)
    with pytest.raises(StructureError, match="got 'ordinal', which would make every"):
        blocks.fit(features, labels)


@ESTIMATORS
def test_a_grid_search_goes_over_short_forms(model):
    features, labels = rows_of([1, 2, 3], n=90)
    grid = {"model__structure": [None, "ordinal", "ordinal:weight=0.1"]}
    steps = make_pipeline(StandardScaler(), clone(model))
    steps.steps[-1] = ("model", steps.steps[-1][1])
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(features, labels)
    assert search.best_params_["model__structure"] in grid["model__structure"]


def test_weights_are_chosen_for_a_short_form_too():
    features, labels = rows_of([1, 2, 3], n=90)
    given = {"weights": "auto", "random_state": 0}
    by_name = StructuredLogisticRegression("ordinal", **given).fit(features, labels)
    built = StructuredLogisticRegression(ordinal([1, 2, 3]), **given).fit(features, labels)
    np.testing.assert_array_equal(by_name.coef_, built.coef_)


@engines(OURS, XGBOOST)
def test_splits_are_searched_on_the_structure_that_was_built(engine):
    features, labels = rows_of(MONTHS, n=200)
    parameters = {**QUICK, **engine, "split_search": "structured", "weights": 1.0}
    by_name = StructuredBoostingClassifier("circular", **parameters).fit(features, labels)
    built = StructuredBoostingClassifier(circular(MONTHS), **parameters).fit(features, labels)
    np.testing.assert_array_equal(by_name.predict_proba(features), built.predict_proba(features))
