"""The loss against the reference and against Keras's own cross-entropies."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import (
    FixedStructure,
    LabelError,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    ordinal,
    trivial,
)
from structent.kernels import reference
from structent.losses.keras import BlockAccuracy, StructuredCrossEntropy, StructuredLogLoss
from structent.structure.catalog import california_counties, cifar100, months
from tests.losses.keras.autodiff import double_precision, value_and_gradient
from tests.strategies import random_partitions

STRUCTURES = {
    "cifar100": cifar100(),
    "months": months(),
    "ordinal": ordinal(range(7)),
    "circle that width does not divide": circular(range(7), width=3),
    "ragged hierarchy": hierarchy({"a": ("x", "y"), "b": ("x",), "c": ("z", "u"), "d": ()}),
    "a draw of counties": SpanningTreePartitions(california_counties(), 8, 0.4).sample(3),
    "no singletons": RandomPartition([Partition.from_blocks([[0, 3], [1, 2], [4]])]),
    "one block": RandomPartition([Partition.from_blocks([range(4)])]),
    "blocks of uneven size": RandomPartition([Partition(range(40), [0] * 9 + list(range(1, 32)))]),
}


def problem(structure, n=6, scale=3.0, seed=0):
    """Logits, class indices, and distributions with zeros."""
    rng = np.random.default_rng(seed)
    k = structure.n_classes
    logits = rng.normal(scale=scale, size=(n, k)).astype(np.float32)
    distributions = rng.dirichlet(np.full(k, 0.3), size=n) * (rng.random((n, k)) < 0.7)
    return logits, rng.integers(0, k, n), distributions.astype(np.float32)


def expected_of_labels(structure, logits, labels):
    """Loss of each row and its gradient, in float64."""
    arguments = (logits.astype(np.float64), labels, structure.block_of, structure.weights)
    value = reference.structured_cross_entropy_from_logits(*arguments, xp=np)
    return value, reference.gradient_from_logits(*arguments, xp=np)


def expected_of_distributions(structure, logits, distributions):
    """Loss of each row and its gradient: those of the classes, by their share in the target."""
    logits, distributions = logits.astype(np.float64), distributions.astype(np.float64)
    value = reference.structured_cross_entropy_of_distributions(
        logits, distributions, structure.block_of, structure.weights, xp=np
    )
    gradient = np.zeros_like(logits)
    for label in range(structure.n_classes):
        labels = np.full(len(logits), label)
        gradient += distributions[:, [label]] * expected_of_labels(structure, logits, labels)[1]
    return value, gradient


def assert_agrees(found, expected, rtol=1e-5, atol=2e-6):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


# The reference


@pytest.mark.parametrize("name", STRUCTURES)
def test_value_and_gradient_for_class_indices_are_those_of_the_reference(name):
    structure = STRUCTURES[name]
    logits, labels, _ = problem(structure)
    loss = StructuredCrossEntropy(structure, reduction="none")
    found = value_and_gradient(loss, labels, logits)
    assert_agrees(found, expected_of_labels(structure, logits, labels))


@pytest.mark.parametrize("name", STRUCTURES)
def test_value_and_gradient_for_distributions_are_those_of_the_reference(name):
    structure = STRUCTURES[name]
    logits, _, distributions = problem(structure)
    loss = StructuredCrossEntropy(structure, reduction="none")
    found = value_and_gradient(loss, distributions, logits)
    assert_agrees(found, expected_of_distributions(structure, logits, distributions))


@settings(max_examples=10)
@given(random_partitions(classes=list(range(6))), st.integers(0, 2**32 - 1))
def test_random_structures_agree_with_the_reference(structure, seed):
    logits, labels, distributions = problem(structure, n=3, seed=seed)
    loss = StructuredCrossEntropy(structure, reduction="none")
    of_labels = value_and_gradient(loss, labels, logits)
    assert_agrees(of_labels, expected_of_labels(structure, logits, labels))
    of_distributions = value_and_gradient(loss, distributions, logits)
    assert_agrees(of_distributions, expected_of_distributions(structure, logits, distributions))


def test_double_precision_is_kept():
    structure = cifar100()
    logits, labels, distributions = problem(structure)
    with double_precision():
        loss = StructuredCrossEntropy(structure, reduction="none")
        of_labels = value_and_gradient(loss, labels, logits.astype(np.float64))
        of_distributions = value_and_gradient(loss, distributions, logits.astype(np.float64))
    expected = expected_of_labels(structure, logits, labels)
    assert_agrees(of_labels, expected, rtol=1e-12, atol=1e-13)
    expected = expected_of_distributions(structure, logits, distributions)
    assert_agrees(of_distributions, expected, rtol=1e-12, atol=1e-13)


def test_small_blocks_are_gathered_and_large_ones_masked_with_one_result():
    family = np.random.default_rng(5).integers(0, 60, 400)
    structure = hierarchy({c: (f"o{family[c] % 3}", f"f{family[c]}") for c in range(400)})
    logits, labels, _ = problem(structure)
    loss = StructuredCrossEntropy(structure, reduction="none")
    has_table = [view.members is not None for view in loss._blocks.views]
    assert has_table == [False, True]
    found = value_and_gradient(loss, labels, logits)
    assert_agrees(found, expected_of_labels(structure, logits, labels))


# Extreme logits

PAIRS = RandomPartition(
    [Partition.from_blocks([[0, 1], [2, 3], [4, 5]]), Partition.singletons(range(6))], [0.6, 0.4]
)
EXTREMES = [
    [1e4, -1e4, 9999.0, -1e4, 1e4, -9998.0],  # ten thousands
    [1e4, 10000.3, -9999.7, -10000.1, -10001.2, -1e4],  # far from each other, and near
    [0.0, 1.0, -2.0, 300.0, 0.5, 0.0],  # a wrong class at 300
    [0.0, -1.0, -95.0, -96.0, -101.0, -103.5],  # the denormal zone
    [1e30] * 6,
    [-3e38, -3e38, 0.0, -1e38, -2e38, 1e-45],  # nearly the smallest and the largest there are
]


@pytest.mark.parametrize("structure", [PAIRS, trivial(range(6)), ordinal(range(6))])
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(structure):
    labels = np.tile(np.arange(6), len(EXTREMES))
    logits = np.repeat(np.array(EXTREMES, np.float32), 6, axis=0)
    expected = expected_of_labels(structure, logits, labels)
    loss = StructuredCrossEntropy(structure, reduction="none")
    for y_true in (labels, np.eye(6, dtype=np.float32)[labels]):
        assert_agrees(value_and_gradient(loss, y_true, logits), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("structure", [PAIRS, trivial(range(6)), ordinal(range(6))])
def test_masked_classes_that_are_not_the_target_do_no_harm(structure):
    logits = np.array([[0.3, -np.inf, 2.0, 0.1, -np.inf, -np.inf]], np.float32).repeat(3, axis=0)
    labels = np.array([0, 2, 3])
    expected = expected_of_labels(structure, logits, labels)
    loss = StructuredCrossEntropy(structure, reduction="none")
    for y_true in (labels, np.eye(6, dtype=np.float32)[labels]):
        assert_agrees(value_and_gradient(loss, y_true, logits), expected)


def test_nan_stays_in_its_row():
    logits, labels, distributions = problem(PAIRS)
    logits[2, 1] = np.nan
    loss = StructuredCrossEntropy(PAIRS, reduction="none")
    for y_true in (labels, distributions):
        value, gradient = value_and_gradient(loss, y_true, logits)
        assert np.isnan(value).tolist() == [False, False, True, False, False, False]
        assert not np.isnan(np.delete(gradient, 2, axis=0)).any()


def test_a_class_index_that_is_no_class_makes_its_row_nan():
    logits, _, _ = problem(PAIRS, n=4)
    loss = StructuredCrossEntropy(PAIRS, reduction="none")
    value, gradient = value_and_gradient(loss, np.array([0, -1, 6, 5]), logits)
    assert np.isnan(value).tolist() == [False, True, True, False]
    assert np.isfinite(gradient).all()


# Keras's own losses

WEIGHTS = np.linspace(0, 2, 8, dtype=np.float32)


def probabilities(logits):
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("from_logits", "ignore_class", "sample_weight", "reduction"),
    [
        (True, None, None, "sum_over_batch_size"),
        (True, None, WEIGHTS, "mean_with_sample_weight"),
        (False, None, WEIGHTS, "sum_over_batch_size"),
        (False, None, None, "none"),
        (True, 2, WEIGHTS, "sum_over_batch_size"),
        (True, -1, WEIGHTS, "mean_with_sample_weight"),
        (False, -1, None, "mean"),
        (True, 2, None, "sum"),
    ],
)
def test_the_trivial_structure_is_sparse_categorical_crossentropy(
    from_logits, ignore_class, sample_weight, reduction
):
    logits, labels, _ = problem(trivial(range(5)), n=8)
    y_pred = logits if from_logits else probabilities(logits)
    labels[:3] = [4, 2, 4 if ignore_class is None else ignore_class]
    options = {"from_logits": from_logits, "ignore_class": ignore_class, "reduction": reduction}
    ours = StructuredCrossEntropy(trivial(range(5)), **options)
    theirs = keras.losses.SparseCategoricalCrossentropy(**options)
    found, expected = (
        value_and_gradient(loss, labels, y_pred, sample_weight=sample_weight)
        for loss in (ours, theirs)
    )
    assert_agrees(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("from_logits", "sample_weight", "reduction"),
    [
        (True, None, "sum_over_batch_size"),
        (False, WEIGHTS, "sum_over_batch_size"),
        (True, WEIGHTS, "mean_with_sample_weight"),
        (False, None, None),
    ],
)
def test_the_trivial_structure_is_categorical_crossentropy(from_logits, sample_weight, reduction):
    logits, _, distributions = problem(trivial(range(5)), n=8)
    y_pred = logits if from_logits else probabilities(logits)
    options = {"from_logits": from_logits, "reduction": reduction}
    ours = StructuredCrossEntropy(trivial(range(5)), **options)
    theirs = keras.losses.CategoricalCrossentropy(**options)
    found, expected = (
        value_and_gradient(loss, distributions, y_pred, sample_weight=sample_weight)
        for loss in (ours, theirs)
    )
    assert_agrees(found, expected, rtol=1e-6, atol=1e-6)


def test_probabilities_of_0_and_1_and_without_sum_1_are_treated_as_keras_does():
    proba = np.array([[0.0, 1.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 0.3]], np.float32)
    labels = np.array([0, 1, 2])
    ours = StructuredCrossEntropy(trivial(range(3)), from_logits=False, reduction="none")
    theirs = keras.losses.SparseCategoricalCrossentropy(reduction="none")
    assert_agrees(
        value_and_gradient(ours, labels, proba), value_and_gradient(theirs, labels, proba), 1e-6
    )


@pytest.mark.parametrize("name", ["months", "no singletons"])
def test_probabilities_give_the_loss_of_their_logits(name):
    structure = STRUCTURES[name]
    logits, labels, distributions = problem(structure, scale=1.0)
    loss = StructuredCrossEntropy(structure, from_logits=False, reduction="none")
    found = [
        np.asarray(keras.ops.convert_to_numpy(loss(y, probabilities(logits))))
        for y in (labels, distributions)
    ]
    expected = (
        expected_of_labels(structure, logits, labels)[0],
        expected_of_distributions(structure, logits, distributions)[0],
    )
    assert_agrees(found, expected)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 3), (2, 3, 1), (2, 2, 2), ()])
def test_class_indices_have_the_shapes_that_keras_takes(shape):
    structure = months()
    leading = shape[:-1] if shape[-1:] == (1,) else shape
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(*leading, 12)).astype(np.float32)
    labels = rng.integers(0, 12, shape)
    loss = StructuredCrossEntropy(structure, reduction="none")
    found, _ = value_and_gradient(loss, labels, logits)
    expected, _ = expected_of_labels(structure, logits.reshape(-1, 12), labels.reshape(-1))
    np.testing.assert_allclose(found, expected.reshape(leading), rtol=1e-5)


def test_one_hot_rows_of_any_rank_are_the_class_indices_they_stand_for():
    structure = months()
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 12)).astype(np.float32)
    labels = rng.integers(0, 12, (2, 3))
    loss = StructuredCrossEntropy(structure, reduction="none")
    sparse, one_hot = (value_and_gradient(loss, y, logits)[0] for y in (labels, np.eye(12)[labels]))
    np.testing.assert_allclose(sparse, one_hot, rtol=1e-5)


def test_a_mask_of_keras_counts_as_in_its_own_loss():
    from structent.losses.keras.private import set_mask

    logits, _, _ = problem(trivial(range(5)), n=4)
    values = []
    for kind in (
        StructuredCrossEntropy(trivial(range(5)), ignore_class=3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3),
    ):
        y_pred = keras.ops.convert_to_tensor(logits)
        set_mask(y_pred, keras.ops.convert_to_tensor([True, False, True, True]))
        values.append(float(kind(np.array([0, 1, 3, 2]), y_pred)))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_16_bits_are_summed_in_32(dtype):
    structure = cifar100()
    logits, labels, _ = problem(structure)
    low = keras.ops.cast(logits, dtype)
    loss = StructuredCrossEntropy(structure, reduction="none")
    found = loss(labels, low)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    rounded = keras.ops.convert_to_numpy(keras.ops.cast(low, "float32"))
    expected, _ = expected_of_labels(structure, rounded, labels)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected, rtol=1e-5)


def test_a_floatx_of_16_bits_does_not_round_class_indices():
    structure = trivial(range(3000))
    keras.config.set_floatx("bfloat16")
    try:
        loss = StructuredCrossEntropy(structure, reduction="none")
        logits = np.zeros((1, 3000), np.float32)
        logits[0, 2999] = 5.0
        found = float(loss(np.array([2999]), logits)[0])
    finally:
        keras.config.set_floatx("float32")
    assert found == pytest.approx(np.log(np.exp(5.0) + 2999) - 5.0, rel=1e-5)


# Bad input


def test_logits_of_another_number_of_classes_are_refused():
    loss = StructuredCrossEntropy(months())
    with pytest.raises(StructureError, match=r"covers 12 classes but y_pred has shape \(2, 11\)"):
        loss(np.array([0, 1]), np.zeros((2, 11)))


@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 12, 1), ()])
def test_y_true_of_a_shape_that_does_not_fit_is_refused(shape):
    loss = StructuredCrossEntropy(months())
    with pytest.raises(StructureError, match=r"y_true must be class indices of shape \(2,\)"):
        loss(np.zeros(shape), np.zeros((2, 12)))


def test_a_class_to_ignore_among_one_hot_rows_is_refused():
    loss = StructuredCrossEntropy(months(), ignore_class=0)
    with pytest.raises(StructureError, match="ignore_class must be None"):
        loss(np.eye(12)[:2], np.zeros((2, 12)))


@pytest.mark.parametrize("structure", [None, [[0, 1], [2]], Partition.singletons(range(3))])
def test_what_is_no_structure_is_refused(structure):
    with pytest.raises(StructureError, match="must be a RandomPartition"):
        StructuredCrossEntropy(structure)


def test_a_structure_for_evaluation_is_refused_where_the_structure_is_fixed():
    with pytest.raises(StructureError, match="eval_structure must be None"):
        StructuredCrossEntropy(months(), eval_structure=months())


def test_a_structure_for_evaluation_has_the_classes_of_the_sampler():
    sampler = FixedStructure(months())
    with pytest.raises(StructureError, match="must have the 12 classes of the sampler"):
        StructuredCrossEntropy(sampler, eval_structure=trivial(range(12)))


def test_metrics_refuse_a_sampler_and_a_level_that_is_not_there():
    with pytest.raises(
        StructureError, match=r"must be a RandomPartition, got FixedStructure; .* from a sampler"
    ):
        StructuredLogLoss(FixedStructure(months()))
    with pytest.raises(LabelError, match="season"):
        BlockAccuracy(months(), "season")
