"""The sentences on what was chosen, what was kept, and what to do next."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from structent.structure import catalog
from structent.studies.differences import paired_difference
from structent.studies.plan import NONE, Candidate
from structent.studies.verdict import Verdict
from structent.studies.wording import chosen_sentence, kept_sentence, next_steps
from tests.studies.made import made_comparison

MONTHS = made_comparison(catalog.months())
BOTH = Candidate(0.4, 0.6)


def with_choice(structure, scrambled):
    return replace(MONTHS, chosen={"structure": structure, "scrambled": scrambled})


def test_what_was_chosen_is_told_for_the_copies_too():
    told = chosen_sentence(with_choice((BOTH,) * 7 + (NONE,) * 3, (NONE,) * 9 + (BOTH,)))
    assert told == (
        "Validation rows chose loss (weights=0.4) and leaves (leaf_smoothing=0.6) most often, in 7 "
        "of 10 splits, and no structure in 3. For scrambled copies they chose no structure in 9 of "
        "10."
    )


def test_where_some_structure_was_chosen_every_time_none_is_not_counted():
    told = chosen_sentence(with_choice((BOTH,) * 10, (NONE,) * 10))
    assert "most often, in 10 of 10 splits. For scrambled copies" in told


def test_where_none_was_chosen_most_often_it_is_said_once():
    told = chosen_sentence(with_choice((BOTH,) * 3 + (NONE,) * 7, (NONE,) * 10))
    assert told.startswith("Validation rows chose no structure most often, in 7 of 10 splits. For")


def test_where_none_was_chosen_every_time_the_models_are_identical():
    told = chosen_sentence(with_choice((NONE,) * 10, (NONE,) * 10))
    assert "identical to the one without structure" in told
    assert "in all 10 splits" in told


def test_what_was_kept_is_told():
    chosen = with_choice((BOTH,) * 10, (NONE,) * 10)
    trees = SimpleNamespace(best_iteration_=99)
    assert kept_sentence(chosen, trees) == (
        "Trained with the structure in its loss (weights=0.4) and leaves (leaf_smoothing=0.6), on "
        "all 600 rows (boosted trees, 100 rounds)."
    )
    left_out = replace(chosen, verdict=replace(chosen.verdict, finding="undecided"))
    assert kept_sentence(left_out, object()) == (
        "Trained without the structure, on all 600 rows (linear model)."
    )


def undecided(n_splits):
    difference = paired_difference(np.random.default_rng(0).normal(size=n_splits), 5)
    gain = difference.smallest_found
    verdict = Verdict("undecided", "too few rows", "Undecided.", gain)
    return replace(MONTHS, against_none=difference, verdict=verdict), gain


def test_more_repeats_find_smaller_gains_and_four_times_the_rows_half_of_it():
    comparison, gain = undecided(10)
    repeats, rows = next_steps(comparison)
    expected = gain * np.sqrt((1 / 50 + 1 / 4) / (1 / 10 + 1 / 4))
    assert repeats == f"To find a gain of {expected:.2g}, add --repeats 10."
    assert rows.startswith(f"To find a gain of {gain / 2:.2g}, you need about 2,400 rows")
    assert next_steps(comparison, repeats="n_repeats={}")[0].endswith("add n_repeats=10.")


def test_where_there_are_many_splits_only_more_rows_help():
    (rows,) = next_steps(undecided(50)[0])
    assert "four times as many" in rows


def test_repeats_that_hardly_help_are_not_recommended():
    assert len(next_steps(undecided(15)[0])) == 1


@pytest.mark.parametrize("finding", ["use it", "do not use it"])
def test_what_is_decided_needs_no_more(finding):
    assert next_steps(replace(MONTHS, verdict=replace(MONTHS.verdict, finding=finding))) == []
