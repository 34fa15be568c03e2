"""Tests of structures made of random numbers, for what only shows them."""

import numpy as np

from structent.studies import PartitionGain, StructureTest
from structent.studies.differences import paired_difference
from structent.studies.significance import p_value_of


def made_test(structure, *, n_copies=99, n_as_good=0, against_none=-0.01, seed=0):
    """A test of the right shape: every number in it is drawn."""
    rng = np.random.default_rng(seed)
    losses = rng.normal(2.0, 0.02, size=5)
    without = losses - against_none + rng.normal(0, 0.001, size=5)
    null = losses + rng.uniform(0.01, 0.1, size=(n_copies, 1)) + rng.normal(0, 0.01, (n_copies, 5))
    return StructureTest(
        structure, p_value_of([True] * n_as_good + [False] * (n_copies - n_as_good)), 0.05, None,
        losses, without, null, paired_difference(losses - null.mean(axis=0), 5),
        paired_difference(losses - without, 5), 5, 600, 12.5, seed,
    )  # fmt: skip


def made_gains(structure, seed=0):
    """A gain of every partition, drawn."""
    rng = np.random.default_rng(seed)
    return tuple(
        PartitionGain(level, partition, weight, paired_difference(rng.normal(size=5), 5))
        for level, partition, weight in zip(
            structure.level_of, structure.partitions, structure.weights.tolist(), strict=True
        )
    )
