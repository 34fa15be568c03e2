"""Sets of classes with a guarantee: the score, the quantile, and the coverage that follows."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import LabelError, StructureError, circular, hierarchy, ordinal, trivial
from structent.decisions import block_scores, calibrated_hedge, calibrated_quantile, hedge
from tests.decisions.problems import PLANTS, chain_of, undecided_rows
from tests.metrics.problems import random_rows

# Multiples of 1/64, as the probabilities of the rows: scores then often equal a set's probability.
dyadic_scores = st.lists(st.integers(0, 64).map(lambda i: i / 64), max_size=30)
confidences = st.integers(0, 100).map(lambda percent: percent / 100)


@st.composite
def labelled_rows(draw):
    structure, proba = draw(undecided_rows())
    n = len(proba)
    y_true = draw(st.lists(st.sampled_from(structure.classes), min_size=n, max_size=n))
    return structure, proba, y_true


# The score and the quantile


@given(labelled_rows())
def test_the_score_is_the_probability_of_the_largest_set_that_misses_the_truth(problem):
    structure, proba, y_true = problem
    scores = block_scores(y_true, proba, structure, classes=structure.classes)
    for row, label, score in zip(proba, y_true, scores.tolist(), strict=True):
        missing = [q for members, q in chain_of(row, structure) if label not in members]
        assert score == max(missing, default=0.0)


def test_the_score_is_zero_where_the_truth_is_the_most_probable_class():
    y_true, proba, _ = random_rows(circular(range(12)), 200)
    scores = block_scores(y_true, proba, circular(range(12)))
    assert np.array_equal(scores == 0, proba.argmax(axis=1) == np.array(y_true))
    assert 0 < (scores == 0).mean() < 1


@given(dyadic_scores, confidences)
def test_the_quantile_is_the_least_score_that_enough_of_them_and_one_more_do_not_exceed(
    scores, confidence
):
    asked = Fraction(str(confidence))
    # The definition by counting: of n + 1 scores, the new one infinitely bad, enough are below.
    enough = [s for s in scores if Fraction(sum(t <= s for t in scores), len(scores) + 1) >= asked]
    expected = 0.0 if asked == 0 else min(enough, default=math.inf)
    assert calibrated_quantile(scores, confidence) == expected


@pytest.mark.parametrize("percent", [50, 80, 90, 95, 99])
def test_so_few_rows_as_cannot_guarantee_anything_give_an_infinite_quantile(percent):
    least = math.ceil(Fraction(percent, 100 - percent))
    assert calibrated_quantile(np.zeros(least), percent / 100) == 0
    assert calibrated_quantile(np.zeros(least - 1), percent / 100) == math.inf


def test_a_confidence_is_the_decimal_number_that_was_written():
    hundredths = np.arange(1, 100) / 100
    assert 100 * 0.55 > 55
    assert calibrated_quantile(hundredths, 0.55) == 0.55


def test_nothing_but_all_classes_is_certain():
    assert calibrated_quantile(np.zeros(1000), 1) == math.inf


# The answer


@given(labelled_rows(), dyadic_scores, confidences)
def test_the_answer_holds_the_truth_exactly_where_its_score_is_at_most_the_quantile(
    problem, scores, confidence
):
    structure, proba, y_true = problem
    answers = calibrated_hedge(proba, structure, confidence, scores, classes=structure.classes)
    own = block_scores(y_true, proba, structure, classes=structure.classes)
    quantile = calibrated_quantile(scores, confidence)
    holds = [label in members for label, members in zip(y_true, answers.sets, strict=True)]
    assert holds == (own <= quantile).tolist()


@given(undecided_rows(), dyadic_scores, confidences)
def test_the_answer_is_the_first_set_of_the_chain_that_exceeds_the_quantile(
    problem, scores, confidence
):
    structure, proba = problem
    answers = calibrated_hedge(proba, structure, confidence, scores, classes=structure.classes)
    quantile = calibrated_quantile(scores, confidence)
    for row, found, probability in zip(proba, answers.sets, answers.probability, strict=True):
        chain = chain_of(row, structure)
        exceeding = [each for each in chain if each[1] > quantile]
        assert (found, probability) == (exceeding or chain[-1:])[0]


@given(undecided_rows(), dyadic_scores)
def test_answers_grow_with_the_confidence(problem, scores):
    structure, proba = problem
    answers = [
        calibrated_hedge(proba, structure, c / 8, scores, classes=structure.classes).sets
        for c in range(9)
    ]
    for smaller, larger in pairwise(answers):
        assert all(set(a) <= set(b) for a, b in zip(smaller, larger, strict=True))


@given(undecided_rows(), dyadic_scores, confidences)
def test_the_order_of_the_scores_does_not_matter(problem, scores, confidence):
    structure, proba = problem
    answers = calibrated_hedge(proba, structure, confidence, scores, classes=structure.classes)
    assert (
        calibrated_hedge(proba, structure, confidence, scores[::-1], classes=structure.classes).sets
        == answers.sets
    )


def test_a_set_as_probable_as_the_quantile_is_not_enough():
    row = [[0.5, 0.375, 0.125]]
    assert calibrated_hedge(row, PLANTS, 0.5, [0.5]).names == ("tree",)
    assert calibrated_hedge(row, PLANTS, 0.5, [0.875]).names == ("all classes",)
    assert hedge(row, PLANTS, 0.5).names == ("elm",)  # which asks for as much, and no more


def test_without_rows_to_calibrate_on_every_answer_is_all_classes():
    answers = calibrated_hedge([[1.0, 0.0, 0.0]], PLANTS, 0.5, [])
    assert answers.names == ("all classes",)
    assert calibrated_hedge([[1.0, 0.0, 0.0]], PLANTS, 0, []).names == ("elm",)


# The guarantee


def overconfident_rows(structure, n, rng):
    """Labels and probabilities of a model that is far too sure of itself."""
    k = structure.n_classes
    logits = rng.normal(size=(n, k))
    codes = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    sharp = np.exp(4 * logits)
    return np.array(structure.classes)[codes], sharp / sharp.sum(axis=1, keepdims=True)


def coverage(y, answers):
    return np.mean([label in members for label, members in zip(y, answers.sets, strict=True)])


def coverage_over_draws(structure, n, confidence, rows, n_draws=300):
    """The share of new rows that are covered, 100 of them after each calibration on n others."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(n_draws):
        y, proba = rows(structure, n + 100, rng)
        scores = block_scores(y[:n], proba[:n], structure, classes=structure.classes)
        covered.append(coverage(y[n:], calibrated_hedge(proba[n:], structure, confidence, scores)))
    return np.mean(covered), np.std(covered) / np.sqrt(n_draws)


NESTED = hierarchy({c: (c // 6, c // 3) for c in range(12)})
STRUCTURES = [NESTED, circular(range(12), width=3), ordinal(range(5)), trivial(range(4))]


@pytest.mark.parametrize("structure", STRUCTURES, ids=["hierarchy", "circle", "order", "none"])
def test_coverage_is_nominal_whatever_the_model_is_worth(structure):
    # ceil(20 * 0.8) / 20 = 0.8: where no two scores are equal, coverage is exactly that.
    covered, error = coverage_over_draws(structure, 19, 0.8, overconfident_rows)
    assert error < 0.01
    assert abs(covered - 0.8) <= 3 * error
    y, proba = overconfident_rows(structure, 2000, np.random.default_rng(1))
    assert coverage(y, hedge(proba, structure, 0.8)) < 0.75


def rows_with_ties(structure, n, rng):
    """Rows of which many are the same, and labels that have nothing to do with them."""
    k = structure.n_classes
    few = np.stack([np.roll(np.arange(1, k + 1) / (k * (k + 1) / 2), i) for i in range(3)])
    return rng.choice(structure.classes, size=n), few[rng.integers(3, size=n)]


def test_ties_only_raise_coverage():
    covered, error = coverage_over_draws(NESTED, 9, 0.7, rows_with_ties)
    assert covered >= 0.7 - 3 * error


@pytest.mark.parametrize("percent", [50, 80, 90])
def test_coverage_over_all_choices_of_the_new_row_is_at_least_nominal(percent):
    """The exact argument: of n + 1 rows each is the new one once, and enough are covered."""
    y, proba = overconfident_rows(NESTED, 21, np.random.default_rng(2))
    hits = 0
    for new in range(21):
        others = np.arange(21) != new
        scores = block_scores(y[others], proba[others], NESTED)
        (answer,) = calibrated_hedge(proba[new : new + 1], NESTED, percent / 100, scores).sets
        hits += y[new] in answer
    assert Fraction(hits, 21) >= Fraction(percent, 100)


# What cannot be used


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(LabelError, match="'mapel' is not a class of the structure; did you mean"):
        block_scores(["mapel"], [[0.5, 0.25, 0.25]], PLANTS)
    with pytest.raises(LabelError, match="'tree' is not a class"):
        block_scores(["tree"], [[0.5, 0.25, 0.25]], PLANTS)
    with pytest.raises(StructureError, match="y_true has 2 rows but proba has 1"):
        block_scores(["elm", "elm"], [[0.5, 0.25, 0.25]], PLANTS)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.5]], r"one number for each held-out row, .* got float64 of shape \(1, 1\)"),
        (["0.5"], "one number for each held-out row"),
        ([0.5, np.nan], "scores must be finite and not negative, .* got nan"),
        ([-0.5], "got -0.5"),
    ],
)
def test_scores_that_are_none_are_refused(scores, message):
    with pytest.raises(StructureError, match=message):
        calibrated_quantile(scores, 0.9)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, np.nan, "0.9"])
def test_a_confidence_must_be_a_probability(confidence):
    with pytest.raises(StructureError, match=r"confidence must be .*between 0 and 1"):
        calibrated_hedge([[0.5, 0.25, 0.25]], PLANTS, confidence, [0.0])
