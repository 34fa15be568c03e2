"""Labels that are distributions: what they are, and models that learn from them."""

import numpy as np
import pytest

from paper.soft_labels import (
    copied_rows,
    distances_between,
    fit_distributions,
    smoothed_labels,
    soft_labels,
)
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure import LabelGraph, SpanningTreePartitions, circular, hierarchy, ordinal

STRUCTURES = [
    hierarchy({"a": ("x",), "b": ("x",), "c": ("y",), "d": ("z",)}),
    circular(range(6), width=2),
    ordinal(range(5)),
]
PATH = SpanningTreePartitions(
    LabelGraph([("S", "M"), ("M", "L"), ("L", "XL")]), n_blocks=2, singleton_weight=0.5
)
RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(3, 4))
CODES = np.repeat(np.arange(3), 20)
FEATURES = CENTRES[CODES] + RNG.normal(size=(60, 4))
CLASSES = np.array(["a", "b", "c"])


@pytest.mark.parametrize("structure", STRUCTURES, ids=["hierarchy", "circle", "order"])
def test_distances_are_those_of_the_structure(structure):
    expected = [[structure.distance(a, b) for b in structure.classes] for a in structure.classes]
    assert distances_between(structure) == pytest.approx(np.array(expected))


def test_distances_on_a_graph_are_edges():
    assert distances_between(PATH)[0].tolist() == [0, 1, 2, 3]
    # 1, then a factor of exp(-1) for each edge of three.
    expected = np.exp(-np.arange(4.0))
    assert soft_labels(PATH, beta=3.0)[0] == pytest.approx(expected / expected.sum())


def test_a_share_is_given_to_all_classes_alike():
    assert smoothed_labels(4, 0.2)[1].tolist() == pytest.approx([0.05, 0.85, 0.05, 0.05])


@pytest.mark.parametrize("penalty", [0.1, 3.0])
def test_labels_that_are_certain_give_logistic_regression(penalty):
    found = fit_distributions(FEATURES, np.eye(3)[CODES], CLASSES, penalty=penalty)
    plain = StructuredLogisticRegression(C=penalty, tol=1e-9, max_iter=5000)
    expected = plain.fit(FEATURES, CLASSES[CODES]).predict_proba(FEATURES)
    assert found.predict_proba(FEATURES) == pytest.approx(expected, abs=1e-4)
    assert found.classes_.tolist() == ["a", "b", "c"]


def test_labels_that_are_distributions_are_learned_as_weighted_copies():
    distributions = smoothed_labels(3, 0.3)
    found = fit_distributions(FEATURES, distributions[CODES], CLASSES, penalty=1.0)
    rows, classes, weights = copied_rows(CODES, distributions)
    assert len(rows) == 180
    assert np.bincount(rows, weights) == pytest.approx(np.ones(60))
    copies = StructuredLogisticRegression(tol=1e-9, max_iter=5000).fit(
        FEATURES[rows], CLASSES[classes], sample_weight=weights
    )
    expected = copies.predict_proba(FEATURES)
    assert found.predict_proba(FEATURES) == pytest.approx(expected, abs=1e-4)


def test_where_a_fit_starts_does_not_matter():
    targets = smoothed_labels(3)[CODES]
    cold = fit_distributions(FEATURES, targets, CLASSES, penalty=1.0)
    other = fit_distributions(FEATURES, targets, CLASSES, penalty=100.0)
    warm = fit_distributions(FEATURES, targets, CLASSES, penalty=1.0, start=other)
    assert warm.predict_proba(FEATURES) == pytest.approx(cold.predict_proba(FEATURES), abs=1e-3)


def test_copies_of_hardly_any_weight_are_left_out():
    _, classes, weights = copied_rows(np.array([0]), np.array([[0.99995, 0.00005]]))
    assert (classes.tolist(), weights.tolist()) == ([0], [0.99995])
