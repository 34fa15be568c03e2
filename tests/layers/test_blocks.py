"""How the weight of a class is added up from its blocks, in plain arrays."""

import numpy as np
import pytest
from hypothesis import given

from structent import StructureError, hierarchy, mix, ordinal, trivial
from structent.layers import blocks
from structent.layers.blocks import Operations, block_plan
from tests.layers.problems import BY_CHAINS, STRUCTURES, similarity, unit_vectors
from tests.strategies import random_partitions

NUMPY = Operations(
    matmul=np.matmul,
    multiply=np.multiply,
    add=lambda x, y, scale: x + scale * y,
    take=lambda table, index: table[index],
    split=lambda table, sizes: np.split(table, np.cumsum(sizes)[:-1]),
)


def added_up(plan, own, of_blocks):
    return plan.class_vectors(own, of_blocks, plan.matrix, plan.parents, NUMPY)


@pytest.mark.parametrize("few", [0, 64])
@given(structure=random_partitions())
def test_classes_are_added_up_to_the_factor_of_the_similarity(few, structure):
    structure = mix([structure, trivial(structure.classes)], [0.7, 0.3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_FEW_BLOCKS", few)
        patch.setattr(blocks, "_BLOCKS_OF_A_CHAIN", 0)
        plan = block_plan(structure, None)
    parts = unit_vectors(structure, plan)
    weights = added_up(plan, *parts)
    np.testing.assert_allclose(weights @ weights.T, structure.similarity(), atol=1e-12)
    np.testing.assert_allclose(weights, plan.factor.class_vectors(*parts), atol=1e-12)


@pytest.mark.parametrize("name", STRUCTURES)
def test_few_blocks_are_a_product_and_many_are_followed(name):
    plan = block_plan(STRUCTURES[name], None)
    assert bool(plan.chains) == (name in BY_CHAINS)
    assert (plan.matrix is None) == (name in BY_CHAINS or name == "trivial")
    weights = added_up(plan, *unit_vectors(STRUCTURES[name], plan))
    np.testing.assert_allclose(weights @ weights.T, similarity(STRUCTURES[name]), atol=1e-9)


def test_nested_partitions_are_one_chain_and_others_each_their_own():
    tree, circle = (STRUCTURES[f"a {kind} with many blocks"] for kind in ("tree", "circle"))
    assert [len(chain) for chain in block_plan(tree, None).chains] == [3]
    assert [len(chain) for chain in block_plan(circle, None).chains] == [1, 1]


def test_few_nested_blocks_are_summed_to_the_finest():
    plan = block_plan(STRUCTURES["cifar100"], None)
    assert plan.matrix.shape == (20, 32)
    assert plan.parents[0].shape == (100,)


def test_another_weight_of_the_singletons_can_be_asked_for():
    plan = block_plan(hierarchy({"oak": ("tree",), "ash": ("tree",), "fir": ("x",)}), 0.9)
    assert plan.factor.singleton_weight == pytest.approx(0.9)


def test_structures_without_singletons_and_other_things_are_refused():
    with pytest.raises(StructureError, match=r"singleton weight above 0, .* give singleton_weight"):
        block_plan(ordinal(range(4), singleton_weight=0.0), None)
    with pytest.raises(StructureError, match="structure must be a RandomPartition or a sampler"):
        block_plan({"oak": "tree"}, None)
