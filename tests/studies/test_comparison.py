"""Intervals of paired differences, and the sentence that follows from them."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from structent.studies.comparison import Difference, paired_difference, verdict


def test_the_interval_is_that_of_the_t_test_with_a_larger_variance():
    per_fold = np.random.default_rng(0).normal(-0.01, 0.02, size=10)
    plain = ttest_1samp(per_fold, 0).confidence_interval(0.95)
    corrected = paired_difference(per_fold, n_folds=5)
    # 1/10 becomes 1/10 + 1/4, as of Nadeau and Bengio.
    factor = np.sqrt((1 / 10 + 1 / 4) / (1 / 10))
    assert corrected.mean == pytest.approx(per_fold.mean())
    assert corrected.half_width == pytest.approx(factor * (plain.high - plain.low) / 2)


def test_differences_without_correlation_are_covered_at_least_as_often_as_promised():
    rng = np.random.default_rng(0)
    found = [paired_difference(rng.normal(0.3, 1.0, size=10), n_folds=5) for _ in range(400)]
    assert np.mean([d.low < 0.3 < d.high for d in found]) >= 0.95


def made(mean, half):
    return Difference(np.zeros(0), mean, mean - half, mean + half)


@pytest.mark.parametrize(
    ("none", "scrambled", "finding", "sentence"),
    [
        (made(-0.0121, 0.003), made(-0.02, 0.01), "helps",
         "The structure lowers log loss by 0.012 ± 0.003 (95 %)."),
        (made(-0.0121, 0.003), made(-0.001, 0.01), "regularisation",
         ("The structure helps (it lowers log loss by 0.012 ± 0.003 (95 %)), but a scrambled "
         "structure helps as much: regularisation, not meaning.")),
        (made(-0.0121, 0.013), made(-0.02, 0.01), "no evidence",
         ("There is no evidence that the structure helps: log loss changes by -0.012 ± 0.013 "
         "(95 %).")),
        (made(0.0121, 0.003), made(-0.02, 0.01), "no evidence",
         ("There is no evidence that the structure helps: log loss changes by +0.012 ± 0.003 "
         "(95 %).")),
    ],
)  # fmt: skip
def test_the_structure_must_beat_both_none_and_its_copies(none, scrambled, finding, sentence):
    found = verdict(none, scrambled, "log loss")
    assert (found.finding, found.sentence) == (finding, sentence)


def test_accuracy_is_raised():
    assert verdict(made(-0.02, 0.01), made(-0.02, 0.01), "accuracy").sentence == (
        "The structure raises accuracy by 0.020 ± 0.010 (95 %)."
    )
    assert (
        "accuracy changes by -0.020"
        in verdict(made(0.02, 0.01), made(0.0, 0.01), "accuracy").sentence
    )
