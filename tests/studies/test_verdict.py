"""What follows from the differences, in one plain sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent.studies.differences import Difference
from structent.studies.verdict import verdict

GIVEN = {"metric": "log loss", "without": 2.0, "n_plain": 0}


def made(mean, half):
    return Difference(np.zeros(10), mean, mean - half, mean + half)


BETTER, SAME, WORSE = made(-0.0121, 0.003), made(-0.001, 0.004), made(0.0121, 0.003)


@pytest.mark.parametrize(
    ("differences", "finding", "reason", "sentence"),
    [
        ((BETTER, BETTER, SAME), "use it", "helps",
         "Use it: the structure lowers log loss by 0.012 ± 0.003 (95 %)."),
        ((BETTER, SAME, BETTER), "do not use it", "regularisation",
         ("Do not use it: the structure lowers log loss by 0.012 ± 0.003 (95 %), but scrambled "
         "copies of it do as much. The gain is just regularisation.")),
        ((WORSE, BETTER, WORSE), "do not use it", "harms",
         "Do not use it: log loss is lower without the structure, by 0.012 ± 0.003 (95 %)."),
        ((SAME, BETTER, SAME), "do not use it", "hardly any gain",
         ("Do not use it: log loss changes by -0.001 ± 0.004 (95 %), so a gain above 0.005 is "
         "ruled out.")),
        ((made(-0.02, 0.03), SAME, SAME), "undecided", "too few rows",
         ("Undecided: log loss changes by -0.020 ± 0.030 (95 %). A gain of 0.042 would have been "
         "found.")),
        ((BETTER, made(-0.01, 0.02), SAME), "undecided", "too few rows",
         ("Undecided: the structure lowers log loss by 0.012 ± 0.003 (95 %), but whether by more "
         "than scrambled copies of it is not clear (-0.010 ± 0.020). A gain of 0.004 would have "
         "been found.")),
    ],
)  # fmt: skip
def test_the_sentence_says_what_to_do_and_why(differences, finding, reason, sentence):
    found = verdict(*differences, **GIVEN)
    assert (found.finding, found.reason, found.sentence) == (finding, reason, sentence)


@given(*[st.tuples(st.floats(-0.2, 0.2), st.floats(0, 0.2)) for _ in range(3)])
def test_it_is_never_used_unless_it_beats_both_none_and_its_copies(none, scrambled, copies):
    against_none, against_scrambled = made(*none), made(*scrambled)
    found = verdict(against_none, against_scrambled, made(*copies), **GIVEN)
    beats_both = against_none.high < 0 and against_scrambled.high < 0
    assert (found.finding == "use it") == beats_both
    if against_none.mean > 0:
        assert "lowers" not in found.sentence


def test_where_validation_never_chose_it_the_sentence_says_so():
    found = verdict(made(0.0, 0.0), BETTER, SAME, **{**GIVEN, "n_plain": 10})
    assert found.finding == "do not use it"
    assert "validation rows chose no structure in all 10 splits" in found.sentence


def test_accuracy_is_raised_or_lower():
    about = {**GIVEN, "metric": "accuracy", "without": 0.7}
    raised = verdict(made(-0.02, 0.01), made(-0.02, 0.01), SAME, **about)
    assert raised.sentence == "Use it: the structure raises accuracy by 0.020 ± 0.010 (95 %)."
    harmed = verdict(made(0.02, 0.01), SAME, SAME, **about)
    assert "accuracy is higher without the structure, by 0.020 ± 0.010" in harmed.sentence
    unclear = verdict(made(0.02, 0.04), SAME, SAME, **about)
    assert "accuracy changes by -0.020 ± 0.040" in unclear.sentence
