"""Blocks predicted from the probabilities of the classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import FixedStructure, LabelError, StructureError
from structent.estimators.answers import predicted_blocks
from structent.structure.catalog import cifar100, months
from tests.strategies import distributions, random_partitions


@given(st.data())
def test_the_predicted_block_has_the_largest_sum_of_probabilities(data):
    structure = data.draw(random_partitions(classes=range(data.draw(st.integers(1, 8)))))
    p = data.draw(distributions(structure.n_classes))
    for level, partitions in structure.levels.items():
        if len(partitions) > 1:
            continue
        found = predicted_blocks(p[None], structure, level)
        sums = {
            name: sum(p[structure.classes.index(label)] for label in block)
            for name, block in zip(partitions[0].names, partitions[0].blocks, strict=True)
        }
        assert sums[found[0]] == pytest.approx(max(sums.values()), abs=1e-15)


def test_certain_rows_have_the_block_of_their_class():
    structure = cifar100()
    for level, (partition,) in structure.levels.items():
        found = predicted_blocks(np.eye(100), structure, level)
        assert found.tolist() == partition.coarsen(structure.classes).tolist()


def test_what_has_no_one_answer_is_refused():
    uniform = np.full((1, 12), 1 / 12)
    with pytest.raises(StructureError, match="level must have one partition, got 'width 3' with 3"):
        predicted_blocks(uniform, months(), "width 3")
    with pytest.raises(StructureError, match="to have levels, got FixedStructure"):
        predicted_blocks(uniform, FixedStructure(months()), "class")
    with pytest.raises(LabelError, match="'width' is not a level of the structure"):
        predicted_blocks(uniform, months(), "width")
    with pytest.raises(StructureError, match="covers 12 classes but axis -1 of proba has 11"):
        predicted_blocks(np.full((1, 11), 1 / 11), months(), "class")
