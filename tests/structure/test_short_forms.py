"""Short forms for labels alone, and the order of labels: numbers, months and weekdays have one."""

import calendar
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    SpanningTreePartitions,
    StructentError,
    StructureError,
    circular,
    ordinal,
    trivial,
)
from structent.structure import catalog
from structent.structure.short_forms import given_order, natural_order, structure_of_labels

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
        "the data has 3 of the 12 months, and those on both sides of a gap are neighbours; "
        "'circular:order=Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec' keeps all places"
    )
    assert natural_order(calendar.day_name, kind="circular")[1] == ()


@pytest.mark.parametrize("labels", [["S", "M"], ["Jan", "January"], ["Jan", "Mon"], ["1", "two"]])
def test_what_has_no_known_order_is_refused(labels):
    order = re.escape("|".join(labels))
    with pytest.raises(StructentError, match=f"; write 'circular:order={order}' with all labels"):
        natural_order(labels, kind="circular")


def test_an_order_of_many_labels_is_shown_by_its_beginning():
    with pytest.raises(StructentError, match=r"x18\|x19\|\.\.\.' with all labels in their order"):
        natural_order([f"x{i}" for i in range(500)], kind="ordinal")


def test_an_order_must_name_each_class_once():
    assert given_order("b | a", ["a", "b"]) == ("b", "a")
    with pytest.raises(StructentError, match="classes must all differ, got 'a' twice"):
        given_order("a|b|a", ["a", "b"])
    with pytest.raises(StructentError, match="'c' is not a class of the structure"):
        given_order("a|b", ["a", "b", "c"])


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        ("trivial", ["b", "a", "b"], trivial(["a", "b"])),
        ("trivial", [("b", 1), ("a", 2)], trivial([("a", 2), ("b", 1)])),
        ("ordinal", np.array([3, 1, 2, 3]), ordinal([1, 2, 3])),
        ("ordinal:order=S|M|L,weight=0.25", ["L", "S"], ordinal(["S", "M", "L"], 0.25)),
        ("circular:width=2", ["Tue", "Mon", "Wed", "Tue"], circular(["Mon", "Tue", "Wed"], 2)),
    ],
)
def test_a_short_form_is_built_from_the_labels_of_the_rows(spec, labels, expected):
    built = structure_of_labels(spec, labels)
    assert built.partitions == expected.partitions
    np.testing.assert_allclose(built.weights, expected.weights, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ("hierarchy:columns=genus,family", "needs the groups of each class: pass hierarchy("),
        ("graph:edges.csv,blocks=3", "pass SpanningTreePartitions(LabelGraph(edges), ...)"),
        ("learn:levels=2", "pass what learn_structure() returns"),
        ("plants.json", "pass RandomPartition.load(path)"),
        ("plants.nwk", "structent.inputs.parse_structure(path, classes).structure"),
        ("ordnial", "did you mean 'ordinal'?"),
        ("monts", "did you mean 'months'?"),
        ("zzz", "pass a structure, such as hierarchy(paths)"),
    ],
)
def test_a_short_form_that_needs_more_than_labels_is_refused_with_what_to_pass(spec, advice):
    with pytest.raises(StructureError, match=re.escape(advice)) as caught:
        structure_of_labels(spec, ["oak", "ash"])
    assert f"which need only labels, got {spec!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


# The catalog


@pytest.mark.parametrize("names", SPELLINGS[:4], ids=lambda names: names[1])
def test_months_are_those_of_the_catalog_in_the_spelling_of_the_labels(names):
    built = structure_of_labels("months", np.random.default_rng(0).permutation(names))
    assert built.block_of.tolist() == catalog.months().block_of.tolist()
    np.testing.assert_allclose(built.weights, catalog.months().weights, rtol=0, atol=1e-15)
    # November is missing in one of the spellings, and is spelt as the others are.
    there = [label for label in built.classes if label in names]
    assert there == list(names)
    assert len(built.classes) == 12


def test_months_without_rows_keep_their_places():
    built = structure_of_labels("months:width=2,weight=0.5", ["DEC", "FEB", "MAR"])
    assert built.classes == tuple(name.upper() for name in list(calendar.month_abbr)[1:])
    assert built.distance("DEC", "JAN") < built.distance("DEC", "FEB")
    assert built.singleton_weight == pytest.approx(0.5)
    assert structure_of_labels("months", [12, 1]) == catalog.months()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("cifar100", catalog.cifar100()),
        ("cifar100:weight=0.4", catalog.cifar100().with_singleton_weight(0.4)),
        ("us-states", SpanningTreePartitions(catalog.us_states(), 10, 0.5)),
        ("US_States:blocks=5,weight=0.2", SpanningTreePartitions(catalog.us_states(), 5, 0.2)),
        ("california-counties", SpanningTreePartitions(catalog.california_counties(), 10, 0.5)),
    ],
)
def test_a_name_of_the_catalog_is_its_structure(spec, expected):
    labels = list(expected.classes)[:3]
    assert structure_of_labels(spec, labels) == expected
