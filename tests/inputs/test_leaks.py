"""Columns that give the label away are told from ordinary ones: by slow definitions, both ways."""

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent.inputs import leaks
from structent.inputs.leaks import (
    determines,
    is_id,
    part_that_determines,
    reason_to_leave_out,
    reason_to_suspect,
    what_is_told,
)

ONE_IN_A_MILLION = Fraction(1, 10**6)


def labels_of_each(values, labels):
    found = defaultdict(set)
    for value, label in zip(values, labels, strict=True):
        if value is not None:
            found[value].add(label)
    return found


def chance_at_random(values, labels):
    """The chance that each value has one label, if each row drew its label: the definition."""
    known = [(v, label) for v, label in zip(values, labels, strict=True) if v is not None]
    shares = [Fraction(n, len(known)) for n in Counter(label for _, label in known).values()]
    chance = Fraction(1)
    for n in Counter(value for value, _ in known).values():
        chance *= sum(share**n for share in shares)
    return chance


# One value, one label


@st.composite
def coded(draw):
    """A column of text or whole numbers, mostly one that has one label for each value."""
    n_values = draw(st.integers(1, 6))
    label_of = draw(st.lists(st.integers(0, 3), min_size=n_values, max_size=n_values))
    places = draw(st.lists(st.integers(0, n_values - 1), min_size=2, max_size=60))
    labels = [label_of[place] for place in places]
    if draw(st.booleans()):
        labels[draw(st.integers(0, len(labels) - 1))] = draw(st.integers(0, 3))
    is_text = draw(st.booleans())
    values = [f"value {place}" if is_text else 7 * place for place in places]
    gaps = draw(st.lists(st.integers(0, len(values) - 1), max_size=3))
    return [None if i in gaps else value for i, value in enumerate(values)], labels


@given(coded())
def test_values_determine_labels_by_the_definition(columns):
    values, labels = columns
    known = [value for value in values if value is not None]
    found = labels_of_each(values, labels)
    wanted = (
        1 < len(found) <= len(known) / 2
        and all(len(of_value) == 1 for of_value in found.values())
        and chance_at_random(values, labels) < ONE_IN_A_MILLION
    )
    kind = pl.String if any(isinstance(value, str) for value in values) else pl.Int64
    assert determines(pl.Series(values, dtype=kind), pl.Series(labels)) == wanted


@given(st.permutations(range(8)), st.integers(10, 40))
def test_a_code_of_the_label_is_left_out(code_of, n_rows_of_each):
    """The other way round: whatever the code, ten rows of each are enough."""
    labels = pl.Series([f"label {i}" for i in range(8)] * n_rows_of_each)
    codes = pl.Series("code", [code_of[i] for i in range(8)] * n_rows_of_each)
    for column in (codes, codes.cast(str), codes * 0.25, codes.cast(float)):
        assert reason_to_leave_out(column, labels) == "each of its 8 values has one label"


@given(st.integers(0, 2**32 - 1), st.integers(30, 200))
def test_a_value_with_two_labels_is_an_ordinary_feature(seed, n_rows):
    rng = np.random.default_rng(seed)
    codes = rng.integers(5, size=n_rows)
    labels = codes.copy()
    labels[np.flatnonzero(codes == codes[0])[0]] = 5  # one row in all
    assume((codes == codes[0]).sum() > 1)
    assert not determines(pl.Series(codes), pl.Series(labels))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60, unique=True), st.data())
def test_decimals_that_never_repeat_are_measurements(values, data):
    assume(any(value != round(value) for value in values))
    labels = data.draw(st.lists(st.sampled_from("ab"), min_size=len(values), max_size=len(values)))
    assert reason_to_leave_out(pl.Series("x", values), pl.Series(labels)) is None


def test_few_rows_agree_by_chance():
    """Ten rows a value are needed for two labels; four and four are a coincidence."""
    few, enough = ["x"] * 4 + ["y"] * 4, ["x"] * 12 + ["y"] * 12
    assert not determines(pl.Series(few), pl.Series(few))
    assert determines(pl.Series(enough), pl.Series(enough))


def test_a_label_that_nearly_all_rows_have_is_no_proof():
    flag = [1] + [0] * 99
    assert not determines(pl.Series(flag), pl.Series(["rare"] + ["common"] * 99))


def test_a_measurement_that_separates_the_classes_stays():
    """As the petals of iris do for one species: equal values agree, but so do neighbours."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([rng.normal(1.5, 0.2, 50), rng.normal(4.9, 0.8, 100)]).round(1)
    labels = pl.Series(["setosa"] * 50 + ["other"] * 100)
    assert len(np.unique(lengths)) < 75
    assert all(len(found) == 1 for found in labels_of_each(lengths.tolist(), labels).values())
    assert reason_to_leave_out(pl.Series("length", lengths), labels) is None
    assert "alone tells" in reason_to_suspect(pl.Series("length", lengths), labels)


def test_what_a_group_repeats_counts_once():
    """The height of a person tells who it is; but no person is in two folds."""
    person = np.repeat(np.arange(40), 10)
    labels = pl.Series((person % 2).astype(str))
    height = pl.Series("height", 150 + person * 0.7)
    assert reason_to_leave_out(height, labels) == "each of its 40 values has one label"
    assert reason_to_leave_out(height, labels, pl.Series(person)) is None
    assert reason_to_suspect(height, labels, pl.Series(person)) is None


# Ids


@given(st.lists(st.integers(-50, 400), min_size=2, max_size=40, unique=True))
def test_dense_numbers_are_ids_by_the_definition(values):
    n_places = max(values) - min(values) + 1
    chance = Fraction(1)
    for i in range(len(values)):
        chance *= Fraction(n_places - i, n_places)
    assert is_id(pl.Series("x", values)) == (chance < ONE_IN_A_MILLION)
    assert is_id(pl.Series("x", values).cast(float)) == (chance < ONE_IN_A_MILLION)


@given(st.integers(17, 300), st.integers(-1000, 1000), st.randoms())
def test_row_numbers_are_ids_in_any_order(n_rows, first, rng):
    numbers = list(range(first, first + n_rows))
    rng.shuffle(numbers)
    assert is_id(pl.Series("x", numbers))
    assert not is_id(pl.Series("x", [*numbers, first]))  # one value repeats itself
    assert is_id(pl.Series("x", [*numbers, None]))  # a gap does not


@given(st.lists(st.text(), min_size=2, unique=True))
def test_text_that_never_repeats_is_an_id(names):
    assert is_id(pl.Series("name", names))
    assert not is_id(pl.Series("name", [*names, names[0]]))


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("id", True), ("ID", True), ("user_id", True), ("userId", True), ("Patient ID", True),
     ("uuid", True), ("paid", False), ("Madrid", False), ("PAID", False), ("population", False)],
)  # fmt: skip
def test_numbers_that_are_spread_widely_are_an_id_by_name_only(name, is_one):
    populations = [4041, 550, 3665, 2351, 29760, 3294, 3287, 666, 607, 12938, 6478, 1108, 1007]
    assert is_id(pl.Series(name, [1000 * number for number in populations])) == is_one


def test_the_largest_whole_numbers_are_counted_exactly():
    numbers = [2**63 - 1 - i for i in range(30)]
    assert is_id(pl.Series("x", numbers))
    assert not is_id(pl.Series("x", [-(2**63), *numbers]))


def test_an_id_of_groups_is_an_id():
    group = np.repeat(np.arange(30), 3)
    labels = pl.Series(np.tile(["a", "b", "c"], 30))
    household = pl.Series("household", group + 100)
    reason = reason_to_leave_out(household, labels, pl.Series(group))
    assert reason == "different in every group, as an id is"
    assert reason_to_leave_out(household, labels) is None


# Dates

HOURS = pl.datetime_range(datetime(2013, 1, 1), datetime(2014, 12, 31, 23), "1h", eager=True)


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        (HOURS.dt.quarter(), "month"),
        (HOURS.dt.hour() // 6, "hour"),
        ((HOURS.dt.weekday() < 6) & HOURS.dt.hour().is_between(9, 16), "weekday and hour"),
        (HOURS.dt.year() * 4 + HOURS.dt.quarter(), "month and year"),
        (HOURS.dt.ordinal_day() % 5 + HOURS.dt.year() % 2, "day of the year"),
        ((HOURS.dt.date() - date(2013, 1, 1)).dt.total_days() * 7919 % 11, "day"),
        (pl.Series([i * 7919 % 11 for i in range(len(HOURS))]), None),
    ],
)
def test_the_part_of_a_date_that_determines_the_label_is_named(labels, part):
    if part == "day of the year":
        labels = HOURS.dt.strftime("%m-%d").is_between("03-21", "09-22")
    assert part_that_determines(HOURS, labels) == part


def test_days_that_occur_once_determine_nothing():
    days = pl.Series([date(2012, 1, 1) + timedelta(days=i) for i in range(40)])
    assert part_that_determines(days, pl.Series(["a", "b", "b", "a", "c"] * 8)) is None


def test_the_hour_in_another_time_zone_is_suspicious():
    """New York's hour from universal time: summer time makes it two hours in turn."""
    local = HOURS.dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York").dt.hour()
    assert reason_to_leave_out(HOURS, local) is None
    assert reason_to_suspect(HOURS, local) == "its hour alone tells 80 % of the label"


# What a column alone tells


def told_by_the_definition(values, labels, is_counted):
    """The log loss of frequencies, row by row; labels are 0, 1, ..."""
    n_classes = max(labels) + 1
    counted = [(v, c) for v, c, is_in in zip(values, labels, is_counted, strict=True) if is_in]
    judged = [(v, c) for v, c, is_in in zip(values, labels, is_counted, strict=True) if not is_in]
    share = [
        (sum(c == label for _, c in counted) + 0.5) / (len(counted) + 0.5 * n_classes)
        for label in range(n_classes)
    ]
    entropy = loss = 0.0
    for value, label in judged:
        beside = [c for v, c in counted if v == value]
        entropy -= np.log(share[label]) / len(judged)
        frequency = (beside.count(label) + 0.5 * share[label]) / (len(beside) + 0.5)
        loss -= np.log(frequency) / len(judged)
    return entropy, loss


@given(st.lists(st.tuples(st.sampled_from([None, "x", "y", "z"]), st.integers(0, 2)), min_size=4))
def test_what_is_told_is_the_log_loss_of_frequencies(rows):
    values, labels = zip(*rows, strict=True)
    is_counted = np.arange(len(rows)) % 2 == 0
    _, places = np.unique(labels, return_inverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "_first_half", lambda *_: is_counted)
        found = what_is_told(pl.Series(values, dtype=pl.String), pl.Series(labels))
    wanted = told_by_the_definition(values, places.tolist(), is_counted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_rows", [200, 2000, 120_000])
def test_bins_find_the_label_that_is_a_range_of_numbers(n_rows):
    prices = np.random.default_rng(0).gamma(2.0, size=n_rows)
    bands = np.digitize(prices, [0.8, 1.7, 2.5])
    assert what_is_told(pl.Series(prices), pl.Series(bands)).share > 0.75
    noise = np.random.default_rng(1).normal(size=n_rows)
    assert what_is_told(pl.Series(noise), pl.Series(bands)).share < 0.05


def test_missing_values_tell_what_they_tell():
    died = np.random.default_rng(0).integers(2, size=400).astype(bool)
    day = np.where(died, np.arange(400) + 0.5, np.nan)
    told = what_is_told(pl.Series(day), pl.Series(died))
    assert told.share > 0.9
    assert what_is_told(pl.Series(day).fill_nan(None), pl.Series(died)) == told


def test_a_feature_with_overlapping_classes_is_not_suspicious():
    """As the petals of iris are for three species: 19 of 20 right, and no reason to doubt them."""
    rng = np.random.default_rng(0)
    species = np.repeat([0, 1, 2], 50)
    length = (
        np.array([1.46, 4.26, 5.55])[species]
        + rng.normal(scale=[0.17, 0.47, 0.55], size=(50, 3)).T.ravel()
    )
    labels = pl.Series(species.astype(str))
    assert reason_to_leave_out(pl.Series("length", length.round(1)), labels) is None
    assert reason_to_suspect(pl.Series("length", length.round(1)), labels) is None


def test_a_column_that_the_label_determines_is_suspicious():
    months = pl.Series([f"month {i}" for i in range(12)] * 10)
    season = pl.Series([f"season {i // 3}" for i in range(12)] * 10)
    assert reason_to_suspect(season, months) == (
        "each label has one value of it, so it may be made from the label"
    )
    shuffled = season.shuffle(seed=0)
    assert reason_to_suspect(shuffled, months) is None
