"""How far from the truth predictions are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, hierarchy, ordinal
from structent.metrics import average_distance, mistake_severity
from structent.metrics.distance import class_distances
from tests.metrics.problems import dyadic, scored_rows
from tests.strategies import ragged_paths, random_partitions


@given(st.one_of(random_partitions(), ragged_paths().map(hierarchy)))
def test_distances_by_number_are_those_of_the_structure(structure):
    codes = np.arange(structure.n_classes)
    found = class_distances(structure, codes[:, None], codes)
    expected = [[structure.distance(a, b) for b in structure.classes] for a in structure.classes]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(scored_rows(dyadic))
def test_severity_is_the_mean_distance_over_the_wrong_rows(problem):
    structure, y_true, proba = problem
    predicted = [structure.classes[row.tolist().index(row.max())] for row in proba]
    distances = [
        structure.distance(label, guess)
        for label, guess in zip(y_true, predicted, strict=True)
        if label != guess
    ]
    expected = np.mean(distances) if distances else 0.0
    found = mistake_severity(y_true, proba, structure, classes=structure.classes)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(scored_rows(dyadic), st.data())
def test_the_distance_at_k_is_the_mean_over_the_k_most_probable_classes(problem, data):
    structure, y_true, proba = problem
    k = data.draw(st.integers(1, structure.n_classes))
    means = []
    for label, row in zip(y_true, proba, strict=True):
        ranked = sorted(range(structure.n_classes), key=lambda c: -row[c])
        means.append(np.mean([structure.distance(label, structure.classes[c]) for c in ranked[:k]]))
    found = average_distance(y_true, proba, structure, k=k, classes=structure.classes)
    np.testing.assert_allclose(found, np.mean(means), rtol=1e-12)


def test_mistakes_within_a_family_are_less_severe():
    plants = hierarchy({"elm": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    near = mistake_severity(["elm", "rose"], [[0.2, 0.8, 0.0], [0.0, 0.0, 1.0]], plants)
    far = mistake_severity(["elm", "rose"], [[0.2, 0.0, 0.8], [0.0, 0.0, 1.0]], plants)
    assert (near, far) == (1.0, 2.0)


def test_where_nothing_is_wrong_the_severity_is_zero():
    assert mistake_severity(["bad", "good"], np.eye(2), ordinal(["bad", "good"])) == 0.0


def test_k_must_not_be_more_than_there_are_classes():
    with pytest.raises(StructureError, match="k must be between 1 and 2 for a structure of 2"):
        average_distance(["low"], [[0.5, 0.5]], ordinal(["low", "high"]), k=3)
