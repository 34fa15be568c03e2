"""The metrics against NumPy loops over rows and partitions."""

import keras
import numpy as np
import pytest

from structent import RandomPartition, hierarchy, ordinal, trivial
from structent.kernels import reference
from structent.losses.keras import BlockAccuracy, StructuredLogLoss
from structent.structure.catalog import cifar100, months


def rows(n_classes, n=30, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)).astype(np.float32)
    return logits, rng.integers(0, n_classes, n), rng.random(n).astype(np.float32)


def slow_accuracy(structure, level, logits, labels):
    """For each row, the weight of the level's partitions whose true block has the guess."""
    chosen = structure.level(level)
    hits = []
    for row, label in zip(logits, labels, strict=True):
        guess = structure.classes[int(row.argmax())]
        truth = structure.classes[int(label)]
        hit = 0.0
        for partition, weight in zip(chosen.partitions, chosen.weights, strict=True):
            hit += weight * any(guess in block and truth in block for block in partition.blocks)
        hits.append(hit)
    return np.array(hits)


LEVELS = [
    (cifar100(), "supercategory"),
    (cifar100(), "superclass"),
    *((months(), level) for level in months().levels),
    (ordinal(range(5)).reweight([0.4, 0.1, 0.2, 0.0, 0.3]), next(iter(ordinal(range(5)).levels))),
]


@pytest.mark.parametrize(("structure", "level"), LEVELS, ids=[level for _, level in LEVELS])
def test_block_accuracy_is_that_of_a_loop(structure, level):
    logits, labels, weights = rows(structure.n_classes)
    hits = slow_accuracy(structure, level, logits, labels)
    metric = BlockAccuracy(structure, level)
    for part in (slice(0, 10), slice(10, 30)):
        metric.update_state(labels[part], logits[part])
    assert float(metric.result()) == pytest.approx(hits.mean(), rel=1e-6)
    metric.reset_state()
    metric.update_state(labels, logits, sample_weight=weights)
    assert float(metric.result()) == pytest.approx(np.average(hits, weights=weights), rel=1e-5)


def test_the_accuracy_of_the_classes_is_keras_own():
    logits, labels, _ = rows(12)
    found = BlockAccuracy(months(), "class")(labels, logits)
    expected = keras.metrics.SparseCategoricalAccuracy()(labels, logits)
    assert float(found) == pytest.approx(float(expected))


@pytest.mark.parametrize("from_logits", [True, False])
def test_the_structured_log_loss_is_the_mean_of_the_reference(from_logits):
    structure = months()
    logits, labels, weights = rows(12)
    expected = reference.structured_cross_entropy_from_logits(
        logits.astype(np.float64), labels, structure.block_of, structure.weights, xp=np
    )
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    metric = StructuredLogLoss(structure, from_logits=from_logits)
    y_pred = logits if from_logits else shares
    for part in (slice(0, 10), slice(10, 30)):
        metric.update_state(labels[part], y_pred[part])
    assert float(metric.result()) == pytest.approx(expected.mean(), rel=1e-5)
    metric.reset_state()
    metric.update_state(labels, y_pred, sample_weight=weights)
    assert float(metric.result()) == pytest.approx(np.average(expected, weights=weights), rel=1e-5)


@pytest.mark.parametrize("shape", [(30, 1), (5, 6), (5, 6, 1)])
@pytest.mark.parametrize(
    "metric", [BlockAccuracy(months(), "width 3"), StructuredLogLoss(months())]
)
def test_metrics_take_class_indices_of_every_shape_and_one_hot_rows(metric, shape):
    logits, labels, _ = rows(12)
    metric.reset_state()
    expected = float(metric(labels, logits))
    leading = shape[:-1] if shape[-1] == 1 else shape
    shaped = logits.reshape(*leading, 12)
    for y_true in (labels.reshape(shape), np.eye(12)[labels].reshape(shaped.shape)):
        metric.reset_state()
        assert float(metric(y_true, shaped)) == pytest.approx(expected, rel=1e-5)


def test_the_true_class_of_a_distribution_is_its_likeliest():
    plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
    distributions = np.array([[0.4, 0.0, 0.6], [0.2, 0.5, 0.3]])
    logits = np.array([[9.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
    assert float(BlockAccuracy(plants, "level 1")(distributions, logits)) == 0.5


def test_numbers_of_16_bits_are_scored_in_32():
    structure = trivial(range(50))
    logits, labels, _ = rows(50)
    low = keras.ops.cast(logits, "bfloat16")
    rounded = keras.ops.convert_to_numpy(keras.ops.cast(low, "float32"))
    found = float(StructuredLogLoss(structure)(labels, low))
    assert found == pytest.approx(float(StructuredLogLoss(structure)(labels, rounded)), rel=1e-6)


def test_a_class_index_that_is_no_class_makes_the_score_nan():
    for metric in (BlockAccuracy(months(), "class"), StructuredLogLoss(months())):
        assert np.isnan(float(metric(np.array([0, -1]), np.zeros((2, 12), np.float32))))


def test_metrics_are_named_after_their_level():
    structure: RandomPartition = months()
    assert BlockAccuracy(structure, "width 3").name == "width_3_accuracy"
    assert BlockAccuracy(structure, "class", name="acc").name == "acc"
