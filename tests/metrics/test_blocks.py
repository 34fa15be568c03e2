"""The probabilities of blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import Partition, StructureError, trivial
from structent.metrics import block_proba
from structent.structure.catalog import months
from tests.strategies import distributions, partitions


@given(partitions(), st.data())
def test_a_block_has_the_probability_of_its_classes_together(partition, data):
    p = data.draw(distributions(len(partition.classes)))
    found = block_proba([p], partition, classes=partition.classes)
    for block, probability in zip(partition.blocks, found[0], strict=True):
        by_hand = sum(p[partition.classes.index(label)] for label in block)
        assert probability == pytest.approx(by_hand)


def test_the_marginals_of_pairs_are_sums_over_rows_and_columns():
    pairs = months().product(trivial(["a", "b", "c"]))
    joint = np.random.default_rng(0).dirichlet(np.ones(36), size=4)
    for part, axis in ((0, 2), (1, 1)):
        alone = Partition.from_mapping({pair: pair[part] for pair in pairs.classes})
        np.testing.assert_allclose(
            block_proba(joint, alone), joint.reshape(4, 12, 3).sum(axis=axis), rtol=1e-12
        )


def test_columns_are_matched_by_their_class():
    kinds = Partition.from_mapping({"oak": "tree", "rose": "flower", "maple": "tree"})
    given_order = block_proba([[0.5, 0.3, 0.2]], kinds, classes=["rose", "maple", "oak"])
    np.testing.assert_allclose(given_order, [[0.5, 0.5]])


def test_a_structure_is_no_partition():
    with pytest.raises(StructureError, match="partition must be a Partition, got RandomPartition"):
        block_proba(np.full((1, 12), 1 / 12), months())
