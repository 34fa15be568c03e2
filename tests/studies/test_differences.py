"""Intervals of paired differences, corrected for the training rows that splits share."""

import numpy as np
import pytest
from scipy.stats import nct, ttest_1samp

from structent.studies.differences import paired_difference


def test_the_interval_is_that_of_the_t_test_with_a_larger_variance():
    per_split = np.random.default_rng(0).normal(-0.01, 0.02, size=10)
    plain = ttest_1samp(per_split, 0).confidence_interval(0.95)
    corrected = paired_difference(per_split, n_folds=5)
    # 1/10 becomes 1/10 + 1/4, as of Nadeau and Bengio.
    factor = np.sqrt((1 / 10 + 1 / 4) / (1 / 10))
    assert corrected.mean == pytest.approx(per_split.mean())
    assert corrected.half_width == pytest.approx(factor * (plain.high - plain.low) / 2)
    assert corrected.standard_error == pytest.approx(factor * per_split.std(ddof=1) / np.sqrt(10))


def test_differences_without_correlation_are_covered_at_least_as_often_as_promised():
    rng = np.random.default_rng(0)
    found = [paired_difference(rng.normal(0.3, 1.0, size=10), n_folds=5) for _ in range(400)]
    assert np.mean([d.low < 0.3 < d.high for d in found]) >= 0.95


@pytest.mark.parametrize("n_splits", [5, 20])
def test_the_smallest_gain_is_found_four_times_out_of_five(n_splits):
    per_split = np.random.default_rng(1).normal(size=n_splits)
    found = paired_difference(per_split, n_folds=5)
    # By the noncentral t distribution: the chance that the interval is below 0.
    distance = -found.smallest_found / found.standard_error
    quantile = found.half_width / found.standard_error
    power = nct.cdf(-quantile, n_splits - 1, distance)
    assert power == pytest.approx(0.8, abs=0.03)


def test_one_split_says_nothing():
    found = paired_difference(np.array([-0.5]), n_folds=5)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert not found.is_lower
    assert not found.is_higher
    assert np.isnan(found.p_value)
    assert found.smallest_found == np.inf
