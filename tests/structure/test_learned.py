"""Learned structures: cuts of SciPy's tree, and planted blocks that come back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from structent import (
    RandomPartition,
    StructureError,
    hxe,
    structure_from_confusion,
    structure_from_distances,
    structure_from_embeddings,
    trivial,
)


@st.composite
def points(draw, min_size=3, max_size=12):
    n_points = draw(st.integers(min_size, max_size))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(n_points, 2))


@given(points(), st.integers(1, 4))
def test_the_cuts_are_those_of_scipys_tree_at_the_largest_gaps(places, n_levels):
    n_classes = len(places)
    structure = structure_from_distances(
        squareform(pdist(places)), range(n_classes), n_levels=n_levels
    )
    tree = linkage(pdist(places), "average")
    heights = tree[:, 2]
    n_cuts = min(n_levels, n_classes - 2)
    most = max(n_classes // 2, n_cuts + 1)
    # Between two joins there is a gap, in which SciPy cuts by height: n - 1 - m blocks.
    joins = sorted(
        range(n_classes - 1 - most, n_classes - 2), key=lambda m: heights[m] - heights[m + 1]
    )[:n_cuts]
    for join, partition in zip(sorted(joins, reverse=True), structure.partitions[:-1], strict=True):
        by_height = fcluster(tree, (heights[join] + heights[join + 1]) / 2, "distance")
        np.testing.assert_array_equal(
            by_height[:, None] == by_height, partition.block_of[:, None] == partition.block_of
        )


@given(points(), st.integers(1, 4))
def test_levels_are_nested_and_called_alike_whatever_the_data(places, n_levels):
    n_cuts = min(n_levels, len(places) - 2)
    structure = structure_from_distances(
        squareform(pdist(places)), range(len(places)), n_levels=n_levels
    )
    assert structure.is_nested
    assert structure.level_of == (*(f"level {n}" for n in range(1, n_cuts + 1)), "class")
    np.testing.assert_allclose(structure.weights, 1 / (n_cuts + 1))
    n_blocks = [partition.n_blocks for partition in structure.partitions]
    assert sorted(set(n_blocks)) == n_blocks
    assert n_blocks[0] >= 2


def test_one_pair_that_is_closest_by_far_makes_no_level():
    places = np.append(np.arange(9.0) ** 2, 64.001)
    structure = structure_from_distances(abs(places[:, None] - places), range(10), n_levels=3)
    assert [cut.n_blocks <= 5 for cut in structure.partitions] == [True, True, True, False]


@given(points(), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_changes_nothing_but_the_order(places, random):
    order = list(range(len(places)))
    random.shuffle(order)
    structure = structure_from_distances(squareform(pdist(places)), range(len(places)))
    other = structure_from_distances(squareform(pdist(places[order])), order)
    reordered = [partition.reordered(structure.classes) for partition in other.partitions]
    assert RandomPartition(reordered, other.weights, levels=other.level_of) == structure


def planted_confusion(rng, rows_of_class):
    """Counts of 12 classes in 2 x 3 nested blocks, confused the more the closer they are."""
    fine, coarse = np.arange(12) // 2, np.arange(12) // 6
    rates = 0.01 + 0.05 * (coarse[:, None] == coarse) + 0.3 * (fine[:, None] == fine)
    rates += np.eye(12)
    rates /= rates.sum(axis=1, keepdims=True)
    return np.array([rng.multinomial(n, p) for n, p in zip(rows_of_class, rates, strict=True)])


def test_planted_blocks_come_back_from_counts_however_unequal_the_classes():
    rng = np.random.default_rng(0)
    confusion = planted_confusion(rng, rng.integers(200, 20_000, size=12))
    structure = structure_from_confusion(confusion, range(12), n_levels=2)
    assert structure.partitions[0].block_of.tolist() == [0] * 6 + [1] * 6
    assert structure.partitions[1].block_of.tolist() == (np.arange(12) // 2).tolist()


def test_planted_blocks_come_back_from_embeddings_of_rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(list("abcdef"), 30)
    centres = np.repeat(4 * rng.normal(size=(3, 10)), 2, axis=0) + rng.normal(size=(6, 10))
    codes = np.repeat(np.arange(6), 30)
    rows = centres[codes] + 2 * rng.normal(size=(180, 10))
    structure = structure_from_embeddings(rows, labels, n_levels=1)
    assert structure.partitions[0].blocks == (("a", "b"), ("c", "d"), ("e", "f"))


def test_weights_go_from_the_coarsest_to_the_singletons():
    distances = squareform(pdist(np.random.default_rng(0).normal(size=(6, 2))))
    given_weights = structure_from_distances(
        distances, range(6), n_levels=2, weights=[0.5, 0.2, 0.3]
    )
    assert given_weights.weights.tolist() == [0.5, 0.2, 0.3]
    by_rule = structure_from_distances(distances, range(6), n_levels=2, weights=hxe(0.5))
    np.testing.assert_allclose(by_rule.weights, hxe(0.5)(3))


def test_two_classes_have_no_structure():
    assert structure_from_confusion([[3, 1], [1, 3]], ["a", "b"]) == trivial(["a", "b"])


@pytest.mark.parametrize(
    ("distances", "options", "message"),
    [
        ([[0, 1], [1, 0]], {}, "one row for each of the 3 classes, got 2"),
        ([[0, 1, 2], [2, 0, 3], [2, 3, 0]], {}, "must be symmetric"),
        ([[1, 1, 2], [1, 1, 3], [2, 3, 1]], {}, "0 from a class to itself"),
        ([[0, 1, 2], [1, 0, 3], [2, 3, 0]], {"n_levels": 0}, "n_levels must be between 1 and"),
        ([[0, 1, 2], [1, 0, 3], [2, 3, 0]], {"weights": [1.0]}, "each of the 2 partitions"),
    ],
)
def test_bad_input_is_refused(distances, options, message):
    with pytest.raises(StructureError, match=message):
        structure_from_distances(distances, ["a", "b", "c"], **options)
