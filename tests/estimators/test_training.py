"""The task of an engine: row weights of any size become ones whose sums no float loses."""

import numpy as np
import pytest

from structent.estimators.engines import engine as engine_of
from structent.estimators.rows import TrainingRows, ordinary_exponent
from structent.estimators.training import Chosen, Settings, Training
from tests.estimators.problems import ENGINES, PLANTS, rows_of

FEATURES, LABELS = rows_of(PLANTS.classes, n=200)
# The largest is between 1/2 and 1, where weights of other sizes are brought to.
WEIGHTS = np.random.default_rng(0).uniform(0.1, 0.9, size=200)


def task(exponent, **engine):
    """Rows, penalty and least weight of a leaf, all in a unit of two to the exponent."""
    rows = TrainingRows(
        FEATURES.astype(np.float32), PLANTS.encode(LABELS), np.ldexp(WEIGHTS, exponent)
    )
    least, penalty = np.ldexp([0.5, 1.0], exponent).tolist()
    settings = Settings(
        n_estimators=8, learning_rate=0.3, max_depth=3, min_child_weight=least,
        reg_lambda=penalty, subsample=1.0, colsample=1.0,
        curvature="gradient", split_search="full", early_stopping_rounds=None,
        **{"trees": "vector", **engine},
    )  # fmt: skip
    return Training(
        rows.take(slice(150)), rows.take(slice(150, None)), PLANTS, None, np.zeros(3),
        (False,) * 4, settings, 0, 1, lambda _round, _log_loss: None,
    )  # fmt: skip


@ENGINES
@pytest.mark.parametrize("exponent", [-950, -60, 60, 950])
def test_the_unit_of_the_weights_changes_no_digit(exponent, engine):
    plain, scaled = (
        engine_of(engine["engine"]).train(task(e, **engine)).model.margins(
            FEATURES.astype(np.float32), 1
        )
        for e in (0, exponent)
    )  # fmt: skip
    np.testing.assert_array_equal(scaled, plain)


@pytest.mark.parametrize("largest", [2.0**-16, 1e-3, 1.0, 1e4, 2.0**16])
def test_ordinary_weights_stay_as_they_are(largest):
    assert ordinary_exponent(np.array([1e-300, largest])) == 0


@pytest.mark.parametrize("largest", [5e-324, 1e-300, 1e-5, 1e5, 1.7e308])
def test_the_largest_of_other_weights_comes_to_be_between_a_half_and_1(largest):
    weights = np.array([0.0, largest])
    assert 0.5 <= np.ldexp(weights, ordinary_exponent(weights)).max() < 1


def test_rows_for_validation_have_a_unit_of_their_own():
    training = task(0, engine="xgboost")
    held = training.validation._replace(weights=np.full(50, 1e-300))
    tiny = Training(**{**vars(training), "validation": held}).with_ordinary_weights()
    assert tiny.settings == training.settings
    np.testing.assert_array_equal(tiny.rows.weights, training.rows.weights)
    assert 0.5 <= tiny.validation.weights.max() < 1


def test_what_is_chosen_settles_the_settings_of_a_refit():
    settled = task(0, engine="structent").settings.settled(5, Chosen(6, "sketch"))
    assert (settled.n_estimators, settled.early_stopping_rounds) == (5, None)
    assert (settled.max_depth, settled.split_search) == (6, "sketch")
