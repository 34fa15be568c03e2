"""What a candidate does to each kind of model, and how their settings are chosen."""

import numpy as np
import pytest

from structent import (
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
)
from structent.metrics import block_log_loss
from structent.structure import trivial
from structent.studies.fitting import checked_rows
from structent.studies.models import Linear, Trees, model_around, model_of
from structent.studies.plan import NONE, Candidate

CIRCLE = circular(range(6), width=2)
RNG = np.random.default_rng(0)
Y = RNG.integers(6, size=180)
ANGLE = 2 * np.pi * Y / 6 + RNG.normal(scale=0.5, size=180)
X = np.column_stack([np.cos(ANGLE), np.sin(ANGLE)])
BOTH = Candidate(0.4, 0.6)


def parts_of(estimator):
    rows = checked_rows(X, Y, CIRCLE, estimator=estimator, groups=None)
    return rows, [(rows.take(np.arange(120)), rows.take(np.arange(120, 180)))]


def test_trees_have_the_weight_in_their_loss_and_the_share_in_their_leaves():
    model = model_of("boosting", 0, allow_blocks=False)
    rows, parts = parts_of(model.estimator)
    plain = model.tried(parts, CIRCLE, NONE, None)
    tried = model.tried(parts, CIRCLE, BOTH, plain)
    assert tried.settings["max_depth"] == plain.settings["max_depth"] in (2, 3, 4, 6, 8)
    fitted = model.fitted(rows, tried)
    assert fitted.leaf_smoothing_ == 0.6
    assert fitted.structure_.singleton_weight == pytest.approx(0.4)
    assert fitted.best_iteration_ + 1 == tried.settings["n_estimators"]


def test_the_loss_of_trees_is_that_of_their_best_round_on_the_validation_rows():
    model = model_of("boosting", 0, allow_blocks=False)
    _, ((train, validation),) = parts_of(model.estimator)
    tried = model.tried([(train, validation)], CIRCLE, BOTH, None)
    fitted = model.fitted(train, tried)
    loss = block_log_loss(
        validation.labels, fitted.predict_proba(validation.features), trivial(range(6))
    )
    assert tried.loss == pytest.approx(loss, rel=1e-5)


def test_a_linear_model_has_the_weight_in_its_loss_and_the_share_in_its_prior():
    model = model_of("linear", 0, allow_blocks=False)
    rows, parts = parts_of(model.estimator)
    tried = model.tried(parts, CIRCLE, BOTH, model.tried(parts, CIRCLE, NONE, None))
    fitted = model.fitted(rows, tried)
    assert fitted.structure_.singleton_weight == pytest.approx(0.4)
    assert fitted.prior_[-1] == pytest.approx(0.4)  # of its singletons: 1 - 0.6
    assert pytest.approx(10 ** (tried.settings["step"] / 2)) == fitted.C_


def test_the_penalty_of_a_linear_model_is_the_best_of_all_steps():
    model = model_of("linear", 0, allow_blocks=False)
    _, parts = parts_of(model.estimator)
    ((train, validation),) = parts
    losses = {}
    for step in range(-10, 9):
        fitted = StructuredLogisticRegression(C=10 ** (step / 2), encode=True, tol=1e-8)
        proba = fitted.fit(train.features, train.labels).predict_proba(validation.features)
        losses[step] = block_log_loss(validation.labels, proba, trivial(range(6)))
    tried = model.tried(parts, CIRCLE, NONE, None)
    assert tried.settings["step"] == min(losses, key=losses.get)
    assert tried.loss == pytest.approx(min(losses.values()), abs=1e-3)


def test_the_model_of_all_rows_has_the_median_of_the_penalties():
    model = Linear(StructuredLogisticRegression())
    rows, parts = parts_of(model.estimator)
    plain = model.tried(parts, CIRCLE, NONE, None)
    tried = [plain._replace(settings={"step": step}) for step in (-4, 0, 2)]
    assert model.whole(CIRCLE, NONE, tried).C == 1.0
    assert len(rows) == 180


def test_the_kind_of_an_estimator_is_known_by_what_it_is():
    assert isinstance(model_around(StructuredLogisticRegression()), Linear)
    assert isinstance(model_around(StructuredBoostingClassifier()), Trees)
    with pytest.raises(StructentError, match="one parameter structure"):
        model_around(object())
