"""A trial of boosted trees, against the same trees grown by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from structent import StructuredBoostingClassifier, circular
from structent.experiments.weather.boosted_trial import (
    PAPER,
    QUICK,
    SCHEDULES,
    Schedule,
    boosted_trial,
)
from structent.experiments.weather.rows import Draw, Rows, draw

SCHEDULE = Schedule(
    max_trees=100, learning_rate=0.2, depths=(2, 4), penalty=2.0, row_share=0.7, patience=3,
    n_validation=100, n_test=200,
)  # fmt: skip
YEAR = circular(range(1, 13), width=3, singleton_weight=0.3)


@pytest.fixture(scope="module")
def rows(weather):
    return draw(weather, "month", n_train=300, n_validation=100, n_test=200, trial=0)


@pytest.fixture(scope="module")
def result(rows):
    return boosted_trial(rows, YEAR, SCHEDULE, seed=5, n_threads=1)


def test_every_depth_has_the_losses_of_the_trees_that_validation_rows_choose(rows, result):
    assert result["depth"] == [2, 4]
    for place, depth in enumerate(result["depth"]):
        model = StructuredBoostingClassifier(
            YEAR, n_estimators=100, learning_rate=0.2, max_depth=depth, reg_lambda=2.0,
            subsample=0.7, early_stopping_rounds=3, random_state=5, n_jobs=1,
        ).fit(*rows.train, eval_set=tuple(rows.validation))  # fmt: skip
        for part in ("validation", "test"):
            features, labels = getattr(rows, part)
            wanted = log_loss(labels, model.predict_proba(features), labels=range(1, 13))
            # Losses are kept with six digits.
            assert result[part][place] == pytest.approx(wanted, abs=1e-6)
        assert result["trees"][place] == model.best_iteration_ + 1 <= 100


def test_deep_trees_stop_early(result):
    assert result["trees"][1] < 100 - 3


def test_the_same_seed_gives_the_same_result_and_another_seed_another(rows, result):
    again = boosted_trial(rows, YEAR, SCHEDULE, seed=5, n_threads=1)
    other = boosted_trial(rows, YEAR, SCHEDULE, seed=6, n_threads=1)
    assert again == result
    assert other["test"] != result["test"]


def test_test_rows_choose_nothing(rows, result):
    turned = Rows(rows.test.features, np.roll(rows.test.labels, 1))
    other = boosted_trial(
        Draw(rows.train, rows.validation, turned), YEAR, SCHEDULE, seed=5, n_threads=1
    )
    assert other["test"] != result["test"]
    assert {**other, "test": None} == {**result, "test": None}


def test_the_papers_schedule_is_the_papers():
    # Its notebooks: at most 5,000 trees, steps of .02, depths 2 to 4, an L2 penalty of 1, three
    # looks at 5,000 validation rows, one every 10 trees, 25,000 test rows. A bootstrap has a share
    # of 1 - 1/e of the rows.
    assert PAPER.row_share == pytest.approx(1 - np.exp(-1), abs=5e-4)
    assert PAPER.as_settings() == {
        "max_trees": 5000, "learning_rate": 0.02, "depths": [2, 3, 4], "penalty": 1.0,
        "row_share": 0.632, "patience": 30, "n_validation": 5_000, "n_test": 25_000,
    }  # fmt: skip


def test_quick_takes_larger_steps_of_the_same_trees_on_as_many_rows():
    steps = {"learning_rate": PAPER.learning_rate, "patience": PAPER.patience}
    assert replace(QUICK, **steps) == PAPER
    assert QUICK.learning_rate > PAPER.learning_rate


def test_a_smoke_trial_is_drawn_from_a_few_hundred_rows():
    assert SCHEDULES["smoke"].n_validation + SCHEDULES["smoke"].n_test <= 300
