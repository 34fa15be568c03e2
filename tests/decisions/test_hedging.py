"""Sets of classes that are sure enough."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from structent.decisions import hedge
from tests.decisions.problems import PLANTS, chain_of, undecided_rows
from tests.metrics.problems import random_rows
from tests.strategies import ragged_paths


@given(undecided_rows(), st.integers(0, 64))
def test_the_set_is_the_first_of_the_chain_that_is_sure_enough(problem, confidence):
    structure, proba = problem
    hedged = hedge(proba, structure, confidence / 64, classes=structure.classes)
    for row, found, probability in zip(proba, hedged.sets, hedged.probability, strict=True):
        chain = chain_of(row, structure)
        sure = [(members, q) for members, q in chain if q >= confidence / 64]
        assert (found, probability) == sure[0]


@given(undecided_rows(ragged_paths().map(hierarchy)), st.integers(0, 64))
def test_in_a_hierarchy_the_chain_is_the_path_to_the_root(problem, confidence):
    structure, proba = problem
    hedged = hedge(proba, structure, confidence / 64, classes=structure.classes)
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
    hedged = [hedge(proba, structure, c / 8, classes=structure.classes).sets for c in range(9)]
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
    assert hedge(proba, structure, 1.0, classes=structure.classes).sets == (structure.classes,) * 2


def test_blocks_without_weight_count():
    unweighted = PLANTS.with_singleton_weight(1.0)
    assert hedge([[0.5, 0.5, 0.0]], unweighted, 0.9).names == ("tree",)


def test_a_set_has_the_name_and_the_level_of_its_block():
    animals = hierarchy(
        {"elm": ("plant", "tree"), "maple": ("plant", "tree"), "trout": ("animal",)},
        level_names=["kingdom", "family"],
    )
    proba = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]
    hedged = hedge(proba, animals, 0.9)
    assert hedged.names == ("elm", "plant", "trout", "all classes")
    assert hedged.levels == ("class", "kingdom", "class", None)
    assert hedged.probability.tolist() == [1.0] * 4


def test_a_class_has_its_own_name_in_a_structure_without_singletons_too():
    rounded = RandomPartition([Partition.from_mapping({1: "small", 2: "small", 30: "large"})])
    hedged = hedge([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]], rounded, 0.9)
    assert (hedged.names, hedged.levels) == (("30", "small"), ("class", "level 1"))


def test_all_classes_go_by_their_own_name_where_they_are_a_block():
    rooted = hierarchy({"elm": ("plant", "tree"), "rose": ("plant", "flower")})
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
    with pytest.raises(LabelError, match="'eml' is not a class"):
        hedge([[0.5, 0.25, 0.25]], PLANTS, 0.9, classes=["eml", "maple", "rose"])


def test_depth_is_the_number_of_levels_that_are_settled():
    animals = hierarchy(
        {"elm": ("plant", "tree"), "maple": ("plant", "tree"), "rose": ("plant",), "trout": ()},
    )
    proba = np.array([[6, 2, 0, 0], [4, 4, 0, 0], [4, 0, 4, 0], [4, 0, 0, 4], [0, 0, 0, 8]]) / 8
    hedged = hedge(proba, animals, 0.75)
    assert hedged.names == ("elm", "tree", "plant", "all classes", "trout")
    assert hedged.depths.tolist() == [3, 2, 1, 0, 3]
    assert hedged.sizes.tolist() == [1, 2, 3, 4, 1]
    assert (hedged.average_size, hedged.average_depth) == (11 / 5, 9 / 5)
    assert hedged.classes == animals.classes


@given(undecided_rows(), st.integers(0, 8))
def test_depth_is_counted_level_by_level(problem, confidence):
    structure, proba = problem
    hedged = hedge(proba, structure, confidence / 8, classes=structure.classes)
    has_singletons = any(partition.is_singletons for partition in structure.partitions)
    for members, depth in zip(hedged.sets, hedged.depths.tolist(), strict=True):
        settled = [
            any(set(members) <= set(block) for p in level for block in p.blocks)
            for level in structure.levels.values()
        ]
        is_class_without_a_level = len(members) == 1 and not has_singletons
        # Without singletons the classes are a level of their own; one class is one block, too.
        assert depth == sum(settled) + (is_class_without_a_level and structure.n_classes > 1)
