"""Each loss against its definition, written as a slow loop over the paper's hierarchy."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  its usual name

from structent.errors import StructentError
from structent.experiments.cifar100.names import OTHER_LOSSES, PAPER_LOSSES
from structent.experiments.cifar100.training_loss import (
    smoothed_labels,
    soft_labels,
    training_loss,
)
from structent.structure import catalog, trivial

CIFAR = catalog.cifar100()
RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 100, 9)
LOGITS = RNG.normal(scale=3, size=(9, 100)).astype(np.float32)
PROBA = np.exp(LOGITS.astype(float))
PROBA /= PROBA.sum(axis=1, keepdims=True)
# The ancestors of each class, from the root down to the class itself.
PATHS = [
    [frozenset(range(100))]
    + [
        frozenset(np.flatnonzero(partition.block_of == partition.block_of[label]).tolist())
        for partition in (CIFAR.levels[level][0] for level in CIFAR.levels)
    ]
    for label in range(100)
]


def loss_of(name, structure=CIFAR):
    loss = training_loss(name, structure)
    return float(loss.loss(torch.as_tensor(loss.targets[LABELS]), torch.as_tensor(LOGITS)))


def probability(row, node):
    return sum(PROBA[row, label] for label in node)


def blocks_of(name):
    return training_loss(name, CIFAR).loss.structure.block_of


def test_paths_of_the_hierarchy_lead_from_the_root_to_the_class():
    assert all([len(path[0]), len(path[-1])] == [100, 1] for path in PATHS)
    assert all(path[d] >= path[d + 1] for path in PATHS for d in range(4))


def test_standard_is_the_cross_entropy_of_torch():
    expected = F.cross_entropy(torch.as_tensor(LOGITS), torch.as_tensor(LABELS))

    assert loss_of("standard") == pytest.approx(float(expected), rel=1e-6)


def test_standard_is_structured_without_a_structure():
    assert loss_of("standard") == pytest.approx(
        loss_of("structured", trivial(CIFAR.classes)), rel=1e-6
    )


def test_structured_is_a_quarter_of_each_level():
    by_row = [
        sum(-0.25 * np.log(probability(row, node)) for node in PATHS[label][1:])
        for row, label in enumerate(LABELS)
    ]

    assert loss_of("structured") == pytest.approx(np.mean(by_row), rel=1e-5)


@pytest.mark.parametrize("name", ["hierarchical .1", "hierarchical .3", "hierarchical .5"])
def test_hierarchical_is_bertinettos_over_its_first_weight(name):
    alpha = float(name.split()[1])
    by_row = []
    for row, label in enumerate(LABELS):
        path, total = PATHS[label], 0.0
        for depth in range(1, 5):
            conditional = probability(row, path[depth]) / probability(row, path[depth - 1])
            total -= np.exp(-alpha * depth) * np.log(conditional)
        by_row.append(total)

    assert loss_of(name) == pytest.approx(np.mean(by_row) / np.exp(-alpha), rel=1e-5)


@pytest.mark.parametrize("name", ["soft labels 10", "soft labels 30"])
def test_soft_labels_are_cross_entropy_with_bertinettos_labels(name):
    beta = float(name.split()[2])
    by_row = []
    for row, true in enumerate(LABELS):
        # Nodes from the root that the two share, of which the root is at height 4.
        heights = [4 - sum(other in node for node in PATHS[true][1:]) for other in range(100)]
        closeness = [np.exp(-beta * height / 4) for height in heights]
        by_row.append(
            -sum(
                closeness[other] / sum(closeness) * np.log(PROBA[row, other])
                for other in range(100)
            )
        )

    assert loss_of(name) == pytest.approx(np.mean(by_row), rel=1e-5)


@pytest.mark.parametrize("beta", [10.0, 30.0])
def test_soft_labels_sum_to_1_and_are_largest_for_the_true_class(beta):
    rows = soft_labels(CIFAR, beta)

    assert rows.sum(axis=1) == pytest.approx(np.ones(100))
    assert rows.argmax(axis=1).tolist() == list(range(100))


def test_label_smoothing_is_that_of_torch():
    expected = F.cross_entropy(
        torch.as_tensor(LOGITS), torch.as_tensor(LABELS), label_smoothing=0.1
    )

    assert loss_of("label smoothing") == pytest.approx(float(expected), rel=1e-6)
    assert smoothed_labels(100).sum(axis=1) == pytest.approx(np.ones(100))


def test_scrambled_has_blocks_of_the_same_sizes_with_other_classes():
    meant, scrambled = blocks_of("structured"), blocks_of("scrambled")

    for level in range(4):
        sizes = [sorted(np.bincount(blocks[level])) for blocks in (meant, scrambled)]
        assert sizes[0] == sizes[1]
    together = [blocks[2][:, None] == blocks[2] for blocks in (meant, scrambled)]
    shared = (together[0] & together[1]).sum() - 100  # of 20 * 5 * 4 pairs, 4 in 99 by chance
    assert shared < 50


def test_scrambled_is_a_hierarchy_of_one_permutation():
    blocks = blocks_of("scrambled")

    for coarse, fine in pairwise(blocks):
        assert all(len(set(coarse[fine == block])) == 1 for block in set(fine))


def test_scrambled_is_the_same_in_every_trial():
    assert blocks_of("scrambled").tolist() == blocks_of("scrambled").tolist()


def test_every_loss_has_a_target_for_every_class():
    for name in (*PAPER_LOSSES, "scrambled", *OTHER_LOSSES):
        assert len(training_loss(name, CIFAR).targets) == 100


@pytest.mark.parametrize("name", ["label smothing", "hierarchical", "hierarchical x", "", "soft"])
def test_an_unknown_loss_is_refused(name):
    with pytest.raises(StructentError, match=f"must be standard, structured, .* got '{name}'"):
        training_loss(name, CIFAR)
