"""Decisions from probabilities: least expected cost, and sets that are sure enough."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import (
    LabelError,
    Partition,
    RandomPartition,
    StructureError,
    circular,
    hierarchy,
    ordinal,
    trivial,
)
from structent.decisions import hedge, minimum_risk
from tests.metrics.problems import dyadic, random_rows
from tests.strategies import ragged_paths, random_partitions

PLANTS = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})


@st.composite
def undecided_rows(draw, structures=None, max_rows=5):
    """A structure and probabilities, both in multiples of 1/64: ties are ties."""
    structure = draw(random_partitions() if structures is None else structures)
    structure = structure.reweight(draw(dyadic(structure.n_partitions)))
    n = draw(st.integers(1, max_rows))
    return structure, np.stack([draw(dyadic(structure.n_classes)) for _ in range(n)])


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
    assert minimum_risk(proba, structure).tolist() == expected


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
    assert minimum_risk(proba, trivial(structure.classes)).tolist() == expected


def test_the_least_risk_on_a_scale_is_the_median():
    scale = ordinal(["low", "mid", "high"], singleton_weight=0.0)
    assert minimum_risk([[0.4, 0.15, 0.45]], scale).tolist() == ["mid"]


@pytest.mark.parametrize("decide", [minimum_risk, lambda *a, **o: hedge(*a, 0.9, **o).names])
def test_columns_are_matched_by_the_classes_given(decide):
    _, proba, _ = random_rows(PLANTS, 30)
    classes = np.array(["maple", "oak", "rose"])
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
        (PLANTS, ["oak", "rose"], "got no column for 'maple'"),
    ],
)
def test_a_cost_that_does_not_fit_is_refused(cost, classes, message):
    with pytest.raises(StructureError, match=message):
        minimum_risk([[0.5, 0.5]], cost, classes=classes)


def chain_of(row, structure):
    """A row's growing sets, each with its probability, from the definition."""
    classes = structure.classes

    def total(members):
        return sum(q for q, label in zip(row, classes, strict=True) if label in members)

    blocks = [block for partition in structure.partitions for block in partition.blocks]
    chain = [(classes[row.tolist().index(row.max())],)]
    while len(chain[-1]) < len(classes):
        around = [b for b in blocks if set(chain[-1]) < set(b)]
        smallest = [b for b in around if len(b) == min(map(len, around))]
        chain.append(max(smallest, key=total) if smallest else classes)
    return [(members, total(members)) for members in chain]


@given(undecided_rows(), st.integers(0, 64))
def test_the_set_is_the_first_of_the_chain_that_is_sure_enough(problem, confidence):
    structure, proba = problem
    hedged = hedge(proba, structure, confidence / 64)
    for row, found, probability in zip(proba, hedged.sets, hedged.probability, strict=True):
        chain = chain_of(row, structure)
        sure = [(members, q) for members, q in chain if q >= confidence / 64]
        assert (found, probability) == sure[0]


@given(undecided_rows(ragged_paths().map(hierarchy)), st.integers(0, 64))
def test_in_a_hierarchy_the_chain_is_the_path_to_the_root(problem, confidence):
    structure, proba = problem
    hedged = hedge(proba, structure, confidence / 64)
    for row, found in zip(proba, hedged.sets, strict=True):
        top = row.argmax()
        path = [
            np.flatnonzero(partition.block_of == partition.block_of[top])
            for partition in sorted(structure.partitions, key=len, reverse=True)
        ]
        path.append(np.arange(structure.n_classes))
        expected = next(members for members in path if row[members].sum() >= confidence / 64)
        assert found == tuple(structure.classes[c] for c in expected)


@given(undecided_rows())
def test_sets_grow_with_the_confidence(problem):
    structure, proba = problem
    hedged = [hedge(proba, structure, c / 8).sets for c in range(9)]
    for surer, more in zip(hedged[1:], hedged, strict=False):
        assert all(set(small) <= set(large) for small, large in zip(more, surer, strict=True))


def test_without_confidence_the_most_probable_class_is_enough():
    y_true, proba, _ = random_rows(circular(range(12)), len("some rows"))
    hedged = hedge(proba, circular(range(12)), 0)
    assert hedged.sets == tuple((c,) for c in proba.argmax(axis=1).tolist())
    assert len(hedged.sets) == len(y_true)


@pytest.mark.parametrize("structure", [PLANTS, trivial(["only"]), ordinal(["a", "b", "c"])])
def test_full_confidence_ends_at_all_classes_however_sums_are_rounded(structure):
    k = structure.n_classes
    proba = np.full((2, k), np.nextafter(1 / k, 0))
    assert hedge(proba, structure, 1.0).sets == (structure.classes,) * 2


def test_blocks_without_weight_count():
    unweighted = PLANTS.with_singleton_weight(1.0)
    assert hedge([[0.5, 0.5, 0.0]], unweighted, 0.9).names == ("tree",)


def test_a_set_has_the_name_and_the_level_of_its_block():
    animals = hierarchy(
        {"oak": ("plant", "tree"), "maple": ("plant", "tree"), "trout": ("animal",)},
        level_names=["kingdom", "family"],
    )
    proba = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]
    hedged = hedge(proba, animals, 0.9)
    assert hedged.names == ("oak", "plant", "trout", "all classes")
    assert hedged.levels == ("class", "kingdom", "class", None)
    assert hedged.probability.tolist() == [1.0] * 4


def test_a_class_has_its_own_name_in_a_structure_without_singletons_too():
    rounded = RandomPartition([Partition.from_mapping({1: "small", 2: "small", 30: "large"})])
    hedged = hedge([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]], rounded, 0.9)
    assert (hedged.names, hedged.levels) == (("30", "small"), ("class", "level 1"))


def test_all_classes_go_by_their_own_name_where_they_are_a_block():
    rooted = hierarchy({"oak": ("plant", "tree"), "rose": ("plant", "flower")})
    hedged = hedge([[0.5, 0.5]], rooted, 0.9)
    assert (hedged.names, hedged.levels) == (("plant",), ("level 1",))


def test_no_rows_have_no_sets():
    hedged = hedge(np.empty((0, 3)), PLANTS, 0.9)
    assert (hedged.sets, hedged.probability.shape) == ((), (0,))


def test_the_table_may_be_a_dataframe():
    table = pd.DataFrame([[0.5, 0.375, 0.125]], columns=PLANTS.classes)
    assert hedge(table, PLANTS, 0.8).names == ("tree",)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, np.nan, "0.9", True])
def test_a_confidence_must_be_a_probability(confidence):
    with pytest.raises(StructureError, match=r"confidence must be .*between 0 and 1"):
        hedge([[0.5, 0.25, 0.25]], PLANTS, confidence)


def test_what_hedge_cannot_use_is_refused():
    with pytest.raises(StructureError, match="structure must be a RandomPartition, got Partition"):
        hedge([[0.5, 0.25, 0.25]], PLANTS.partitions[0], 0.9)
    with pytest.raises(StructureError, match="proba must have 2 axes"):
        hedge([0.5, 0.25, 0.25], PLANTS, 0.9)
    with pytest.raises(LabelError, match="'oka' is not a class"):
        hedge([[0.5, 0.25, 0.25]], PLANTS, 0.9, classes=["oka", "maple", "rose"])
