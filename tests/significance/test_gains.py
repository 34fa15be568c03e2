"""What partitions add: differences by hand, on structures with one of them left out."""

import numpy as np
import pytest

from structent import (
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructuredLogisticRegression,
    circular,
    hierarchy,
)
from structent.errors import StructentError
from structent.studies import partition_gains

TREE = hierarchy(
    {i: (i // 4, i // 2) for i in range(8)}, level_names=["fours", "twos"], weights=[0.2, 0.3, 0.5]
)


def gains_of(losses, structure):
    return partition_gains(losses, None, None, structure, n_jobs=2)


def test_each_partition_and_each_level_of_several_is_left_out():
    asked = []
    gains_of(lambda s: asked.append(s) or [1.0] * 5, circular(range(6), width=3))
    without_one = [(1 - 0.3) / 3, (1 - 0.3) / 3, 0.3]
    weights = [sorted(structure.weights) for structure in asked[1:]]
    expected = sorted(np.array(without_one) / sum(without_one))
    for found in weights[:3]:
        np.testing.assert_allclose(found, expected)
    assert [list(found) for found in weights[3:]] == [[1.0]]  # nothing is left but the singletons


def test_the_difference_is_paired_over_the_folds_and_below_zero_where_it_helps():
    folds = np.array([0.0, 0.1, 0.2, 0.3, 0.4])

    def losses(structure):
        has_twos = any(partition.n_blocks == 4 for partition in structure.partitions)
        return folds + (0.0 if has_twos else 0.5 + 0.1 * folds)

    fours, twos = gains_of(losses, TREE)
    assert (fours.level, fours.weight) == ("fours", 0.2)
    np.testing.assert_allclose(fours.difference.per_fold, 0.0)
    np.testing.assert_allclose(twos.difference.per_fold, -0.5 - 0.1 * folds)
    assert twos.difference.is_lower
    assert twos.partition == TREE.partitions[1]


def test_where_nothing_of_weight_is_left_there_is_no_structure():
    pairs = Partition.from_blocks([["a", "b"], ["c", "d"]])
    asked = []
    gains_of(lambda s: asked.append(s) or [1.0] * 5, RandomPartition([pairs]))
    assert [structure.singleton_weight for structure in asked] == [0.0, 1.0]


def test_a_level_of_one_partition_stands_once():
    assert [gain.name.partition(":")[0] for gain in gains_of(lambda _: [1.0] * 5, TREE)] == [
        "fours",
        "twos",
    ]


def test_an_estimator_is_scored_on_the_folds_of_the_test(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.resize(np.arange(8), 80)
    features = np.eye(8)[labels] + rng.normal(size=(80, 8))
    model = StructuredLogisticRegression(weights=0.4, tol=1e-3)
    kept = tmp_path / "losses.jsonl"
    first, second = (
        partition_gains(model, features, labels, TREE, n_folds=3, n_jobs=n, keep_in=kept)
        for n in (1, 2)
    )
    assert len(kept.read_text().splitlines()) == 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.difference.per_fold, other.difference.per_fold)


def test_a_sampler_has_no_partitions_to_leave_out():
    sampler = SpanningTreePartitions(LabelGraph([(0, 1), (1, 2)]), 2, 0.5)
    with pytest.raises(StructentError, match="whose partitions can be left out one by one"):
        gains_of(lambda _: [1.0] * 5, sampler)
