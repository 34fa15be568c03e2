"""The order of labels: numbers, months and weekdays have one."""

import calendar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructentError
from structent.inputs.matching import given_order, natural_order, sorted_classes

SPELLINGS = [
    list(calendar.month_name)[1:],
    list(calendar.month_abbr)[1:],
    [name.upper() for name in list(calendar.month_abbr)[1:]],
    ["Jan.", "Feb.", "March", "April", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Dec."],
    list(calendar.day_name),
    [name.lower() for name in calendar.day_abbr],
    ["Mon", "Tues", "Wed", "Thurs", "Fri", "Sat", "Sun"],
]


@pytest.mark.parametrize("names", SPELLINGS, ids=lambda names: names[1])
def test_the_calendar_is_known_in_every_usual_spelling(names):
    shuffled = np.random.default_rng(0).permutation(names).tolist()
    assert shuffled != names
    assert natural_order(shuffled, kind="circular")[0] == tuple(names)


@given(st.sets(st.integers(), min_size=1))
def test_numbers_go_by_value_also_as_text(numbers):
    in_order = sorted(numbers)
    assert natural_order(list(numbers), kind="ordinal")[0] == tuple(in_order)
    assert natural_order(list(map(str, numbers)), kind="ordinal")[0] == tuple(map(str, in_order))


def test_false_comes_before_true():
    assert natural_order([True, False], kind="ordinal")[0] == (False, True)


def test_a_circle_with_a_month_missing_says_so():
    _, (note,) = natural_order(["Jan", "Feb", "Dec"], kind="circular")
    assert note == (
        "the data has 3 of the 12 months, and those next to a gap are neighbours; "
        "circular:order=... with all of them keeps their places"
    )
    assert natural_order(calendar.day_name, kind="circular")[1] == ()


@pytest.mark.parametrize("labels", [["S", "M"], ["Jan", "January"], ["Jan", "Mon"], ["1", "two"]])
def test_what_has_no_known_order_is_refused(labels):
    with pytest.raises(StructentError, match="give the order as in circular:order="):
        natural_order(labels, kind="circular")


def test_an_order_must_name_each_class_once():
    assert given_order("b | a", ["a", "b"]) == ("b", "a")
    with pytest.raises(StructentError, match="classes must all differ, got 'a' twice"):
        given_order("a|b|a", ["a", "b"])
    with pytest.raises(StructentError, match="'c' is not a class of the structure"):
        given_order("a|b", ["a", "b", "c"])


def test_numbers_sort_before_text():
    assert sorted_classes(["b", 10, "a", 9]) == (9, 10, "a", "b")
