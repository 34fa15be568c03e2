"""The class of least expected cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import StructureError, ordinal, trivial
from structent.decisions import hedge, minimum_risk
from tests.decisions.problems import PLANTS, undecided_rows
from tests.metrics.problems import random_rows


def of_least_risk(risks, row):
    """The number of the class of least risk, of equal ones the most probable, then the first."""
    return min(range(len(row)), key=lambda j: (risks[j], -row[j], j))


@given(undecided_rows())
def test_the_risk_of_a_structure_is_the_expected_weight_of_what_separates(problem):
    structure, proba = problem
    separating = [
        [
            sum(
                weight
                for weight, block_of in zip(structure.weights, structure.block_of, strict=True)
                if block_of[i] != block_of[j]
            )
            for j in range(structure.n_classes)
        ]
        for i in range(structure.n_classes)
    ]
    expected = [structure.classes[of_least_risk(row @ separating, row)] for row in proba]
    assert minimum_risk(proba, structure, classes=structure.classes).tolist() == expected


@given(undecided_rows(), st.data())
def test_the_risk_of_a_matrix_is_the_expected_cost(problem, data):
    structure, proba = problem
    k = structure.n_classes
    cost = data.draw(arrays(np.int64, (k, k), elements=st.integers(-3, 9)))
    expected = []
    for row in proba:
        risks = [sum(row[i] * cost[i, j] for i in range(k)) for j in range(k)]
        expected.append(of_least_risk(risks, row))
    assert minimum_risk(proba, cost).tolist() == expected
    named = minimum_risk(proba, cost, classes=list(structure.classes))
    assert named.tolist() == [structure.classes[j] for j in expected]


@given(undecided_rows())
def test_without_structure_the_most_probable_class_has_the_least_risk(problem):
    structure, proba = problem
    expected = [structure.classes[c] for c in proba.argmax(axis=1)]
    plain = trivial(structure.classes)
    assert minimum_risk(proba, plain, classes=structure.classes).tolist() == expected


def test_the_least_risk_on_a_scale_is_the_median():
    scale = ordinal(["low", "mid", "high"], singleton_weight=0.0)
    assert minimum_risk([[0.4, 0.15, 0.45]], scale, classes=scale.classes).tolist() == ["mid"]


@pytest.mark.parametrize("decide", [minimum_risk, lambda *a, **o: hedge(*a, 0.9, **o).names])
def test_columns_are_matched_by_the_classes_given(decide):
    _, proba, _ = random_rows(PLANTS, 30)
    classes = np.array(["maple", "elm", "rose"])
    found = decide(proba[:, [1, 0, 2]], PLANTS, classes=classes)
    assert list(found) == list(decide(proba, PLANTS))
    assert list(found) != list(decide(proba[:, [1, 0, 2]], PLANTS))


def test_the_classes_come_as_an_array_of_their_own_kind():
    assert minimum_risk([[0.0, 1.0]], trivial([3, 5])).dtype.kind == "i"
    assert minimum_risk([[0.0, 1.0]], trivial(["a", "b"])).dtype.kind == "U"
    assert minimum_risk([[0.0, 1.0]], trivial(["a", "a\0"])).tolist() == ["a\0"]
    pairs = trivial([("hot", 1), ("hot", 2)])
    assert minimum_risk([[0.0, 1.0]], pairs).tolist() == [("hot", 2)]


@pytest.mark.parametrize(
    ("cost", "classes", "message"),
    [
        ([[0, 1]], None, r"cost must be a RandomPartition or a square matrix .* shape \(1, 2\)"),
        ([["0"]], None, "square matrix of numbers"),
        ([[0, np.inf], [1, 0]], None, "cost must hold finite numbers"),
        ([[0, 1], [1, 0]], ["a"], "classes must be one for each of the 2 columns of cost, got 1"),
        ([[0, 1], [1, 0]], ["a", "a"], "classes must all differ"),
        (np.ones((3, 3)), None, "structure covers 3 classes but axis -1 of proba has 2 entries"),
        (PLANTS, None, "structure covers 3 classes but axis -1 of proba has 2 entries"),
        (PLANTS, ["elm", "rose"], "got no column for 'maple'"),
    ],
)
def test_a_cost_that_does_not_fit_is_refused(cost, classes, message):
    with pytest.raises(StructureError, match=message):
        minimum_risk([[0.5, 0.5]], cost, classes=classes)
