"""Numbers from finished weather runs, against values worked out by hand."""

import math

import pytest

from paper.experiment import Finished
from paper.weather_results import (
    STANDARD,
    Arm,
    average_difference,
    best_weight,
    chosen_on_validation,
    difference,
    mean_loss,
    scrambled,
    the_papers_way,
)
from structent.errors import StructentError

FIXED = Arm("fixed", None, 0.2)
OTHER = Arm("fixed", None, 0.3)


def run(arm, trial, validation, test, depth=(2, 3)):
    settings = {"experiment": "months", "preset": "paper", "size": 500, "method": arm.method,
                "n_blocks": arm.n_blocks, "singleton_weight": arm.singleton_weight,
                "trial": trial, "schedule": {}}  # fmt: skip
    result = {"depth": list(depth), "validation": validation, "test": test, "trees": [10, 10]}
    return Finished(settings, result, 1.0, "2026-01-01", "a machine")


# Validation chooses depth 2 and then 3; the mean test losses are 2.25 and 2.15.
STANDARD_RUNS = [
    run(STANDARD, 0, [2.0, 2.1], [2.2, 2.1]),
    run(STANDARD, 1, [2.2, 2.0], [2.3, 2.2]),
]
# Validation chooses depth 3 and then 3; the mean test losses are 2.05 and 2.10.
FIXED_RUNS = [
    run(FIXED, 0, [2.1, 2.0], [2.0, 2.1]),
    run(FIXED, 1, [2.1, 1.9], [2.1, 2.1]),
]


def test_each_trial_is_read_at_the_depth_that_its_validation_rows_choose():
    reading = chosen_on_validation(STANDARD_RUNS)[500, STANDARD]
    assert reading.depth == {0: 2, 1: 3}
    assert reading.test == {0: 2.2, 1: 2.2}
    assert reading.judged_by == {0: 2.0, 1: 2.0}


def test_the_papers_way_is_one_depth_by_the_mean_of_test_losses():
    reading = the_papers_way(STANDARD_RUNS)[500, STANDARD]
    assert reading.depth == {0: 3, 1: 3}
    assert reading.test == {0: 2.1, 1: 2.2}
    assert mean_loss(the_papers_way(FIXED_RUNS), 500, FIXED).value == pytest.approx(2.05)


def test_differences_are_paired_by_trial():
    found = difference(chosen_on_validation(STANDARD_RUNS + FIXED_RUNS), 500, FIXED)
    # 2.1 - 2.2 in both trials.
    assert found.value == pytest.approx(-0.1)
    assert found.error == pytest.approx(0.0, abs=1e-12)
    papers = difference(the_papers_way(STANDARD_RUNS + FIXED_RUNS), 500, FIXED)
    # 2.0 - 2.1 and 2.1 - 2.2.
    assert papers.value == pytest.approx(-0.1)


def test_a_difference_takes_the_trials_that_both_have():
    third = run(FIXED, 2, [1.0, 1.0], [1.0, 1.0])
    found = difference(chosen_on_validation([*STANDARD_RUNS, *FIXED_RUNS, third]), 500, FIXED)
    assert found.n_trials == 2
    assert found.value == pytest.approx(-0.1)


def test_what_was_not_run_has_no_mean_and_no_difference():
    readings = chosen_on_validation([STANDARD_RUNS[0], FIXED_RUNS[1]])
    assert mean_loss(readings, 1000, FIXED) is None
    assert difference(readings, 500, OTHER) is None
    assert difference(readings, 500, FIXED) is None  # no trial has both


def test_one_trial_has_a_difference_without_an_error():
    found = difference(chosen_on_validation([STANDARD_RUNS[0], FIXED_RUNS[0]]), 500, FIXED)
    assert found.value == pytest.approx(-0.1)
    assert math.isnan(found.error)


def test_arms_are_averaged_within_a_trial():
    others = [run(OTHER, 0, [1.0, 2.0], [2.0, 9.0]), run(OTHER, 1, [1.0, 2.0], [1.8, 9.0])]
    readings = chosen_on_validation([*STANDARD_RUNS, *FIXED_RUNS, *others])
    # (2.1 + 2.0) / 2 - 2.2 = -.15 and (2.1 + 1.8) / 2 - 2.2 = -.25: an error of .1 / 2.
    found = average_difference(readings, 500, [FIXED, OTHER])
    assert found.value == pytest.approx(-0.2)
    assert found.error == pytest.approx(0.05)


def test_the_best_weight_is_chosen_on_validation_or_in_the_papers_way_on_test():
    others = [run(OTHER, 0, [1.5, 1.6], [2.9, 2.9]), run(OTHER, 1, [1.5, 1.6], [2.9, 2.9])]
    runs = [*FIXED_RUNS, *others]
    assert best_weight(chosen_on_validation(runs), 500, "fixed") == OTHER
    assert best_weight(the_papers_way(runs), 500, "fixed") == FIXED
    assert best_weight(chosen_on_validation(runs), 500, "variable") is None


def test_a_weight_with_fewer_trials_is_never_the_best():
    easy = run(OTHER, 0, [0.5, 0.5], [0.5, 0.5])
    assert best_weight(chosen_on_validation([*FIXED_RUNS, easy]), 500, "fixed") == FIXED


def test_a_computed_weight_is_the_weight_that_was_meant():
    computed = run(Arm("fixed", None, 3 * 0.1), 0, [1.0, 1.0], [1.0, 1.0])
    assert list(chosen_on_validation([computed])) == [(500, OTHER)]


def test_the_control_of_an_arm_has_its_blocks_and_weight():
    assert scrambled(Arm("variable", 4, 0.5)) == Arm("variable, scrambled", 4, 0.5)


def test_a_trial_that_is_there_twice_is_refused():
    with pytest.raises(StructentError, match="one experiment under one preset"):
        chosen_on_validation([FIXED_RUNS[0], FIXED_RUNS[0]])


def test_trials_of_different_depths_are_refused_where_they_share_one():
    deeper = run(FIXED, 2, [1.0, 1.0], [1.0, 1.0], depth=(4, 5))
    with pytest.raises(StructentError, match=r"same depths.*\[4, 5\]"):
        the_papers_way([*FIXED_RUNS, deeper])
