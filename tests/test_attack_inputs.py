"""Estimators fit odd tables, labels and weights, or refuse them in a sentence."""

import pytest

from tests.attack_inputs import LABELS, TABLES, WEIGHTS, WORST, attack, drawn, table

pytestmark = [pytest.mark.requires("sklearn"), pytest.mark.requires("pandas")]


def assert_nothing_breaks(folder, seed, n_tries):
    found = attack(folder, seed, n_tries)
    assert [each for each in found if each["outcome"] in WORST] == []
    # It is an attack: some inputs are odd, and some are not.
    outcomes = [each["outcome"] for each in found]
    assert len(outcomes) == n_tries
    assert min(outcomes.count("fitted"), outcomes.count("refused")) > 0.2 * n_tries


@pytest.mark.requires("polars")
def test_odd_inputs_are_fitted_or_refused(tmp_path):
    assert_nothing_breaks(tmp_path, seed=0, n_tries=150)


@pytest.mark.slow
@pytest.mark.requires("polars")
def test_many_odd_inputs_are_fitted_or_refused(tmp_path):
    assert_nothing_breaks(tmp_path, seed=2, n_tries=2000)


def test_a_try_is_the_same_again():
    about, make = drawn(3, 5)
    again, _ = drawn(3, 5)
    assert about == again
    assert len(make()) == 4


def test_every_kind_of_input_is_tried():
    tried = [drawn(0, number)[0] for number in range(3000)]
    for part, kinds in (("table", TABLES), ("labels", LABELS), ("weights", WEIGHTS)):
        assert {about[part] for about in tried} == set(kinds)


def test_the_table_counts_tries_and_names_the_worst():
    outcomes = ["fitted", "refused", "warning", "nan"]
    found = [{"group": "linear", "outcome": outcome} for outcome in outcomes]
    assert table(found)[-1] == "| all | 4 | 1 | 1 | 2 | nan |"
