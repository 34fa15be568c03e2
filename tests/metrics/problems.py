"""Rows to be scored, and the definitions that scores are held against."""

import numpy as np
from hypothesis import strategies as st

from structent import metrics
from tests.strategies import distributions, random_partitions

# Every metric, with the options that make it say most.
METRICS = {
    "structured log loss": (metrics.structured_log_loss, {}),
    "block log loss": (metrics.block_log_loss, {"level": "level 1"}),
    "block accuracy": (metrics.block_accuracy, {"level": "level 1"}),
    "mistake severity": (metrics.mistake_severity, {}),
    "average distance": (metrics.average_distance, {"k": 2}),
    "calibration error": (metrics.calibration_error, {"level": "level 1", "n_bins": 4}),
    "skill": (metrics.skill, {}),
}


@st.composite
def dyadic(draw, size):
    """Multiples of 1/64 with sum 1: their sums are exact, so that ties are ties."""
    cuts = sorted(draw(st.lists(st.integers(0, 64), min_size=size - 1, max_size=size - 1)))
    return np.diff([0, *cuts, 64]) / 64


@st.composite
def scored_rows(draw, probabilities=distributions, max_rows=8):
    """A structure, labels and probabilities."""
    structure = draw(random_partitions())
    n = draw(st.integers(1, max_rows))
    y_true = draw(st.lists(st.sampled_from(structure.classes), min_size=n, max_size=n))
    proba = np.stack([draw(probabilities(structure.n_classes)) for _ in range(n)])
    return structure, y_true, proba


def block_with(label, partition):
    """The classes of the block that holds a class."""
    (block,) = [block for block in partition.blocks if label in block]
    return block


def probability(block, row, classes):
    """The probability that a row gives to a block."""
    return sum(q for q, label in zip(row, classes, strict=True) if label in block)


def mean_over_level(structure, level, of_partition):
    """The mean of a score over the partitions of a level, in proportion to their weights."""
    members = [t for t, name in enumerate(structure.level_of) if name == level]
    weights = structure.weights[members]
    if weights.sum() == 0:
        weights = np.ones(len(members))
    scores = [of_partition(structure.partitions[t]) for t in members]
    return sum(w * s for w, s in zip(weights, scores, strict=True) if w > 0) / weights.sum()


def random_rows(structure, n, seed=0):
    """Labels, probabilities and weights without ties."""
    rng = np.random.default_rng(seed)
    y_true = [structure.classes[c] for c in rng.integers(structure.n_classes, size=n)]
    proba = rng.dirichlet(np.full(structure.n_classes, 0.5), size=n)
    return y_true, proba, rng.random(n) + 0.1
