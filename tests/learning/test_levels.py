"""Structures of a set number of levels, whichever classes have rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.beyond.planted import Planted
from structent import (
    StructuredLogisticRegression,
    StructureError,
    structure_from_confusion,
    trivial,
)
from structent.studies import LearnedStructure, out_of_fold_confusion
from structent.studies.learn import structure_of_levels


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_levels_are_called_alike_whichever_classes_have_rows(n_classes, n_levels, seed):
    rng = np.random.default_rng(seed)
    confusion = (
        rng.uniform(size=(n_classes, n_classes)) * (rng.uniform(size=n_classes) < 0.7)[:, None]
    )
    structure = structure_of_levels(confusion, tuple(range(n_classes)), n_levels)
    assert structure.classes == tuple(range(n_classes))
    absent = np.flatnonzero(confusion.sum(axis=1) == 0)
    if len(absent) == n_classes:
        assert structure == trivial(range(n_classes))
        return
    n_cuts = max(0, min(n_levels, n_classes - 2))
    assert structure.level_of == (*(f"level {n}" for n in range(1, n_cuts + 1)), "class")
    assert structure.is_nested
    for partition in structure.partitions:
        assert all(len(partition.blocks[partition.block_of[c]]) == 1 for c in absent)


def test_the_structure_of_rows_is_that_of_their_confusion():
    rng = np.random.default_rng(0)
    X, y = Planted.of((3, 2), (1.0, 0.5), rng).rows(10, rng)
    model = StructuredLogisticRegression()
    learned = LearnedStructure(n_levels=2, cv=4).of_rows(model, X, y, random_state=3)
    confusion = out_of_fold_confusion(model, X, y, cv=4, random_state=3)
    assert learned == structure_from_confusion(confusion, range(6), n_levels=2)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(StructureError, match="n_levels must be between 1 and"):
        LearnedStructure(n_levels=0)
    with pytest.raises(StructureError, match="cv must be between 3 and"):
        LearnedStructure(cv=2)
