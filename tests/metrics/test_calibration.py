"""Calibration error at the levels of a structure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, trivial
from structent.metrics import calibration_error
from tests.metrics.problems import (
    block_with,
    dyadic,
    mean_over_level,
    probability,
    random_rows,
    scored_rows,
)


def slow_calibration_error(y_true, proba, weights, partition, n_bins):
    rows = []
    for label, row, weight in zip(y_true, proba, weights, strict=True):
        totals = [probability(block, row, partition.classes) for block in partition.blocks]
        predicted = partition.blocks[totals.index(max(totals))]
        rows.append((max(totals), predicted == block_with(label, partition), weight))
    rows.sort(key=lambda row: row[0])
    n_bins = min(n_bins, len(rows))
    # Bins of equal numbers of rows, the first ones with one more where these do not divide.
    smaller, n_larger = divmod(len(rows), n_bins)
    error, start = 0.0, 0
    for b in range(n_bins):
        end = start + smaller + (b < n_larger)
        confidences, hits, bin_weights = zip(*rows[start:end], strict=True)
        gap = np.average(confidences, weights=bin_weights) - np.average(hits, weights=bin_weights)
        error += sum(bin_weights) / sum(weights) * abs(gap)
        start = end
    return error


@given(scored_rows(dyadic, max_rows=20), st.integers(1, 6), st.booleans(), st.data())
def test_the_error_of_a_level_is_the_mean_over_its_partitions(problem, n_bins, weighted, data):
    structure, y_true, proba = problem
    level = data.draw(st.sampled_from(list(structure.levels)))
    weights = np.arange(1.0, len(y_true) + 1) if weighted else np.ones(len(y_true))
    expected = mean_over_level(
        structure, level, lambda p: slow_calibration_error(y_true, proba, weights, p, n_bins)
    )
    found = calibration_error(
        y_true,
        proba,
        structure,
        level=level,
        n_bins=n_bins,
        sample_weight=weights if weighted else None,
        classes=structure.classes,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_there_are_fifteen_bins_unless_told():
    structure = trivial(range(4))
    y_true, proba, _ = random_rows(structure, 100)
    found = calibration_error(y_true, proba, structure)
    weights, singletons = np.ones(100), structure.partitions[0]
    expected = slow_calibration_error(y_true, proba, weights, singletons, 15)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert abs(found - slow_calibration_error(y_true, proba, weights, singletons, 14)) > 1e-6


def test_honest_probabilities_are_calibrated_and_boasting_ones_are_not():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), size=20_000)
    y_true = (rng.random((20_000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    boasting = np.eye(3)[proba.argmax(axis=1)]
    accuracy = (proba.argmax(axis=1) == y_true).mean()
    assert calibration_error(y_true, proba, trivial(range(3))) < 0.02
    found = calibration_error(y_true, boasting, trivial(range(3)))
    np.testing.assert_allclose(found, 1 - accuracy, atol=0.02)


def test_there_must_be_a_bin():
    with pytest.raises(StructureError, match="n_bins must be between 1 and"):
        calibration_error([0], [[1.0, 0.0]], trivial([0, 1]), n_bins=0)
