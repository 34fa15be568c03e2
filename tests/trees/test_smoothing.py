"""Smoothed sums, against the matrix S written as a slow loop over pairs of classes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structent import Partition, RandomPartition, circular, hierarchy, ordinal, trivial
from structent.structure import catalog
from structent.trees.smoothing import Relatives
from tests.strategies import random_partitions
from tests.trees import reference as slow

SMOOTHINGS = st.sampled_from([0.0, 1e-9, 0.2, 0.5, 0.99])


def any_sums(n_classes, n=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_classes))


def has_relatives(structure):
    """Whether a partition other than the singletons has weight."""
    return any(
        weight > 0 and not partition.is_singletons
        for weight, partition in zip(structure.weights, structure.partitions, strict=True)
    )


@given(structure=random_partitions(), smoothing=SMOOTHINGS)
def test_sums_are_mixed_by_the_similarity_without_its_diagonal(structure, smoothing):
    assume(has_relatives(structure))
    sums = any_sums(structure.n_classes)
    wanted = sums @ slow.similarity_smoother(structure.similarity(), smoothing)
    found = Relatives.of(structure).smoothed(sums, smoothing)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@given(structure=random_partitions(), smoothing=SMOOTHINGS)
def test_sums_of_a_draw_are_mixed_by_the_means_of_its_blocks(structure, smoothing):
    assume(has_relatives(structure))
    sums = any_sums(structure.n_classes)
    wanted = sums @ slow.block_mean_smoother(structure, smoothing)
    found = Relatives.of_draw(structure).smoothed(sums, smoothing)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


BY_TABLE = {"order": ordinal(range(9)), "pair": circular(range(4), width=2)}
BY_BLOCKS = {
    "circle": catalog.months(),
    "taxonomy": hierarchy(
        {c: (c % 2, c % 6, c % 18) for c in range(50)}, weights=[0.1, 0.2, 0.3, 0.4]
    ),
    "some alone": hierarchy({c: ("low",) if c < 4 else (f"own {c}",) for c in range(20)}),
}


@pytest.mark.parametrize(
    "structure", [*BY_TABLE.values(), *BY_BLOCKS.values()], ids=[*BY_TABLE, *BY_BLOCKS]
)
def test_a_table_and_blocks_are_the_same_matrix(structure):
    relatives = Relatives.of(structure)
    assert (relatives.table is None) == (structure in BY_BLOCKS.values())
    wanted = slow.similarity_smoother(structure.similarity(), 0.3)
    for n in (1, 4):
        sums = any_sums(structure.n_classes, n)
        np.testing.assert_allclose(relatives.smoothed(sums, 0.3), sums @ wanted, atol=1e-12)


def test_ten_thousand_classes_need_no_table_of_pairs():
    taxonomy = hierarchy({c: (c % 3, c % 30, c % 900) for c in range(10_000)})
    relatives = Relatives.of(taxonomy)
    arrays = [value for value in vars(relatives).values() if value is not None]
    assert sum(array.size for array in arrays) <= 10 * 10_000
    # Class 0 goes to its 3333 relatives of one, two and three levels.
    one = np.zeros((1, 10_000))
    one[0, 0] = 1.0
    found = relatives.smoothed(one, 0.5)[0]
    similar = taxonomy.restrict([0, 900, 30, 3, 1]).similarity()[0]
    np.testing.assert_allclose(found[[900, 30, 3, 1]] / found[900], similar[1:] / similar[1])
    assert found[0] == 0.5
    assert found.sum() == pytest.approx(1.0, rel=1e-12)


def test_the_trivial_structure_has_no_relatives():
    assert Relatives.of(trivial(range(5))) is None
    assert Relatives.of_draw(trivial(range(5))) is None


@pytest.mark.parametrize("weight", [1e-12, 1e-3, 0.5])
def test_a_class_without_relatives_keeps_its_sums(weight):
    alone = Partition.from_blocks([["a"], ["b", "c", "d"]])
    pair = Partition.from_blocks([["a", "b"], ["c"], ["d"]])
    structure = RandomPartition([alone, pair], [1.0, 0.0])
    sums = any_sums(4)
    np.testing.assert_array_equal(Relatives.of(structure).smoothed(sums, 0.25)[:, 0], sums[:, 0])
    # With a relative of however little weight, it goes there.
    related = RandomPartition([alone, pair], [1 - weight, weight])
    found = Relatives.of(related).smoothed(np.eye(4)[:1], 0.25)[0]
    np.testing.assert_allclose(found, [0.75, 0.25, 0, 0], atol=1e-12)


@pytest.mark.parametrize("of", [Relatives.of, Relatives.of_draw])
@pytest.mark.parametrize("weight", [0.0, 0.9, 1.0])
def test_the_weight_of_the_singletons_does_not_matter(of, weight):
    months, sums = catalog.months(), any_sums(12)
    changed = of(months.with_singleton_weight(weight)).smoothed(sums, 0.4)
    np.testing.assert_allclose(changed, of(months).smoothed(sums, 0.4), rtol=1e-12)


@given(structure=random_partitions(), smoothing=SMOOTHINGS)
def test_smoothing_keeps_the_total_of_all_classes_and_what_is_not_negative(structure, smoothing):
    assume(has_relatives(structure))
    sums = abs(any_sums(structure.n_classes))
    for relatives in (Relatives.of(structure), Relatives.of_draw(structure)):
        found = relatives.smoothed(sums, smoothing)
        np.testing.assert_allclose(found.sum(axis=1), sums.sum(axis=1), rtol=1e-12)
        assert (found >= 0).all()


def test_the_order_of_the_classes_does_not_matter():
    structure = BY_BLOCKS["taxonomy"]
    order = np.random.default_rng(0).permutation(50)
    turned = structure.restrict([structure.classes[place] for place in order])
    sums = any_sums(50)
    for of in (Relatives.of, Relatives.of_draw):
        found = of(turned).smoothed(sums[:, order], 0.4)
        np.testing.assert_allclose(found, of(structure).smoothed(sums, 0.4)[:, order], atol=1e-12)
