"""Structured mutual information estimated from rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from structent import (
    LabelError,
    StructureError,
    hierarchy,
    structured_mutual_information,
    structured_mutual_information_from_labels,
    trivial,
)
from structent.structure import catalog
from tests.strategies import random_partitions


def plug_in(x, y, structure):
    values = sorted(set(x))
    p_xy = np.zeros((len(values), structure.n_classes))
    for value, label in zip(x, y, strict=True):
        p_xy[values.index(value), structure.classes.index(label)] += 1 / len(x)
    return structured_mutual_information(p_xy, None, structure)


@given(random_partitions(), st.integers(1, 5), st.integers(2, 30), st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_estimate_is_the_plug_in_less_its_mean_over_permutations(structure, n_values, n, seed):
    rng = np.random.default_rng(seed)
    x = [f"value {v}" for v in rng.integers(n_values, size=n)]
    y = [structure.classes[c] for c in rng.integers(structure.n_classes, size=n)]
    shuffled = [plug_in(x, [y[i] for i in rng.permutation(n)], structure) for _ in range(400)]
    expected = max(plug_in(x, y, structure) - np.mean(shuffled), 0.0)
    found = structured_mutual_information_from_labels(x, y, structure)
    spread = np.std(shuffled) / np.sqrt(len(shuffled))
    assert abs(found - expected) <= 6 * spread + 1e-10


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 300), st.integers(0, 2**32))
def test_the_trivial_structure_gives_what_scikit_learn_expects_by_chance(k_x, k_y, n, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(k_x, size=n), rng.integers(k_y, size=n)
    chance = expected_mutual_information(contingency_matrix(x, y, sparse=True), n)
    expected = mutual_info_score(x, y) - chance
    found = structured_mutual_information_from_labels(x.astype(str), y, trivial(range(k_y)))
    np.testing.assert_allclose(found, max(expected, 0.0), atol=1e-9)


def test_large_counts_keep_their_digits():
    rng = np.random.default_rng(0)
    x, y = rng.integers(4, size=200_000), rng.integers(3, size=200_000)
    y[x == 0] = 0
    normaliser = (mutual_info_score(x, x) + mutual_info_score(y, y)) / 2
    chance = expected_mutual_information(contingency_matrix(x, y, sparse=True), len(x))
    expected = adjusted_mutual_info_score(x, y) * (normaliser - chance)
    found = structured_mutual_information_from_labels(x, y, trivial(range(3)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.fixture
def seasons():
    """Rows whose month shows in a temperature, faintly in a category, and not in an identifier."""
    rng = np.random.default_rng(3)
    n = 3000
    month = rng.integers(1, 13, size=n)
    temperature = -np.cos(2 * np.pi * month / 12) * 10 + rng.normal(scale=4, size=n)
    sky = np.where(rng.random(n) < 0.4 + 0.03 * month, "clear", "cloudy")
    return month, {
        "temperature": temperature,
        "sky": sky,
        "identifier": np.array([f"row {i}" for i in rng.permutation(n)]),
        "number": rng.permutation(n),
    }


def test_a_unique_identifier_ranks_last(seasons):
    month, features = seasons
    told = {
        name: structured_mutual_information_from_labels(x, month, catalog.months())
        for name, x in features.items()
    }
    assert told["temperature"] > told["sky"] > told["number"]
    assert told["identifier"] == 0.0
    assert min(told, key=told.get) == "identifier" or told["number"] == 0.0


def test_noise_never_ranks_below_a_unique_identifier():
    rng = np.random.default_rng(1)
    y = rng.integers(1, 13, size=500)
    for _ in range(50):
        noise = rng.integers(5, size=500).astype(str)
        assert structured_mutual_information_from_labels(noise, y, catalog.months()) >= 0.0


def test_a_structure_ranks_the_feature_that_tells_its_blocks_higher():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=4000)
    group = np.where(rng.random(4000) < 0.9, y // 2, 1 - y // 2)
    member = np.where(rng.random(4000) < 0.9, y % 2, 1 - y % 2)
    pairs = hierarchy({0: ("g",), 1: ("g",), 2: ("h",), 3: ("h",)}, weights=[0.8, 0.2])
    tells_group = structured_mutual_information_from_labels(group, y, pairs)
    tells_member = structured_mutual_information_from_labels(member, y, pairs)
    assert tells_group > 3 * tells_member


def test_numbers_are_cut_at_quantiles():
    x = np.exp(np.linspace(0, 20, 1000))
    y = np.repeat(range(10), 100)
    by_value = structured_mutual_information_from_labels(x, y, trivial(range(10)))
    by_decile = structured_mutual_information_from_labels(y.astype(str), y, trivial(range(10)))
    np.testing.assert_allclose(by_value, by_decile, rtol=1e-12)


def test_a_missing_value_is_a_value():
    y = np.array(["yes", "no"] * 100)
    structure = trivial(["yes", "no"])
    told_all = structured_mutual_information_from_labels(y, y, structure)
    as_float = np.where(y == "yes", np.nan, 1.0)
    as_objects = [None if label == "yes" else 1.0 for label in y]
    as_text = [None if label == "yes" else "known" for label in y]
    as_dates = np.where(y == "yes", np.datetime64("NaT"), np.datetime64("2020-01-01"))
    for x in (as_float, as_objects, as_text, as_dates):
        np.testing.assert_allclose(
            structured_mutual_information_from_labels(x, y, structure), told_all
        )


def test_infinite_numbers_are_large_ones():
    y = np.repeat([0, 1], 50)
    x = np.where(y == 1, np.inf, np.arange(100))
    found = structured_mutual_information_from_labels(x, y, trivial([0, 1]))
    assert found > 0.6


@pytest.mark.requires("pandas")
@pytest.mark.requires("polars")
def test_columns_of_tables_are_taken():
    import pandas as pd
    import polars as pl

    x, y = [1.5, None, 2.5, 1.5] * 20, ["a", "b", "a", "c"] * 20
    structure = trivial(["a", "b", "c"])
    expected = structured_mutual_information_from_labels(x, y, structure)
    for make in (pd.Series, pl.Series):
        found = structured_mutual_information_from_labels(make(x), make(y), structure)
        np.testing.assert_allclose(found, expected)
    nullable = pd.Series(["u", None, "v", "u"] * 20, dtype="string")
    plain = ["u", None, "v", "u"] * 20
    assert structured_mutual_information_from_labels(
        nullable, y, structure
    ) == structured_mutual_information_from_labels(plain, y, structure)


def test_rows_that_do_not_match_are_refused():
    with pytest.raises(LabelError, match="one entry per row, got 2 and 3"):
        structured_mutual_information_from_labels([1, 2], ["a", "b", "a"], trivial(["a", "b"]))
    with pytest.raises(LabelError, match="got 0 and 0"):
        structured_mutual_information_from_labels([], [], trivial(["a", "b"]))
    with pytest.raises(LabelError, match=r"one axis, got shape \(2, 1\)"):
        structured_mutual_information_from_labels([[1], [2]], ["a", "b"], trivial(["a", "b"]))
    with pytest.raises(StructureError, match="n_bins must be between 2"):
        structured_mutual_information_from_labels([1], ["a"], trivial(["a"]), n_bins=1)
