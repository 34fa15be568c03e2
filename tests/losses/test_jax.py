"""The JAX loss: optax's own where there is no structure, the reference where there is one."""

from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from structent import (
    LabelError,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    ordinal,
    trivial,
)
from structent.kernels import reference
from structent.losses.jax import (
    PartitionArrays,
    formulas,
    partition_arrays,
    plan,
    structured_cross_entropy,
    structured_cross_entropy_with_distributions,
)
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, problems

pytestmark = pytest.mark.requires("jax")

COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=1)
STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "counties": COUNTIES.sample(0),
    "more partitions than are unrolled": ordinal(range(40), singleton_weight=0.2),
    "blocks large and small, no tree": RandomPartition(
        [
            Partition(range(30), [0] * 25 + [1] * 5),
            Partition(range(30), [i % 10 for i in range(30)]),
            Partition(range(30), [i // 2 for i in range(30)]),
        ],
        [0.5, 0.3, 0.2],
    ),
}
FORMS = {"a constant": lambda structure: structure, "arrays": partition_arrays}
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
# Each example compiles a function.
few_examples = settings(max_examples=10)


def noise(structure, n=6, seed=0, scale=3.0):
    """Logits that float32 holds exactly, labels and target distributions."""
    rng = np.random.default_rng(seed)
    k = structure.n_classes
    logits = rng.normal(scale=scale, size=(n, k)).astype(np.float32).astype(np.float64)
    return logits, rng.integers(k, size=n), rng.dirichlet(np.ones(k), n)


def expected_of_labels(structure, logits, labels):
    arguments = np.asarray(logits, np.float64), labels, structure.block_of, structure.weights
    value = reference.structured_cross_entropy_from_logits(*arguments, xp=np)
    return value, reference.gradient_from_logits(*arguments, xp=np)


def value_and_gradient(loss, logits, *arguments, **options):
    value, pull_back = jax.vjp(lambda z: loss(z, *arguments, **options), jnp.asarray(logits))
    return value, pull_back(jnp.ones_like(value))[0]


def assert_close(found, expected, rtol=2e-6, atol=2e-6):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), other, rtol=rtol, atol=atol)


# Against the reference


@every_form
@few_examples
@given(problem=problems())
def test_value_and_gradient_are_those_of_the_reference(form, problem):
    structure, logits, labels = problem
    with jax.enable_x64(True):
        found = value_and_gradient(structured_cross_entropy, logits, labels, form(structure))
    assert_close(found, expected_of_labels(structure, logits, labels), rtol=1e-11, atol=1e-12)


@every_form
@few_examples
@given(problem=problems(), data=st.data())
def test_the_value_for_distributions_is_that_of_the_reference(form, problem, data):
    structure, logits, _ = problem
    distributions = data.draw(arrays(np.float64, logits.shape, elements=st.floats(0, 2)))
    with jax.enable_x64(True):
        found = structured_cross_entropy_with_distributions(logits, distributions, form(structure))
    expected = reference.structured_cross_entropy_of_distributions(
        logits, distributions, structure.block_of, structure.weights, xp=np
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@every_form
@every_structure
def test_structures_in_float32(structure, form):
    logits, labels, _ = noise(structure)
    found = value_and_gradient(structured_cross_entropy, logits, labels, form(structure))
    assert_close(found, expected_of_labels(structure, logits, labels))


@every_form
@every_structure
def test_a_distribution_has_the_mean_loss_and_gradient_of_its_classes(structure, form):
    logits, _, distributions = noise(structure, n=2)
    found = value_and_gradient(
        structured_cross_entropy_with_distributions, logits, distributions, form(structure)
    )
    values, gradients = zip(
        *(
            expected_of_labels(structure, logits, np.full(len(logits), label))
            for label in range(structure.n_classes)
        ),
        strict=True,
    )
    mean_value = np.einsum("nc,cn->n", distributions, values)
    assert_close(found, (mean_value, np.einsum("nc,cnj->nj", distributions, gradients)))


@every_form
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS)
@pytest.mark.parametrize("name", ["months", "blocks large and small, no tree"])
def test_extreme_logits(name, case, form):
    structure = STRUCTURES[name]
    logits, labels = case(structure.n_classes)
    logits = logits.astype(np.float32)
    found = value_and_gradient(structured_cross_entropy, logits, labels, form(structure))
    assert_close(found, expected_of_labels(structure, logits, labels))


@every_form
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS)
@pytest.mark.parametrize("name", ["cifar100", "months"])
def test_extreme_logits_with_the_label_as_a_distribution(name, case, form):
    structure = STRUCTURES[name]
    logits, labels = case(structure.n_classes)
    logits = logits.astype(np.float32)
    one_hot = np.eye(structure.n_classes)[labels]
    found = value_and_gradient(
        structured_cross_entropy_with_distributions, logits, one_hot, form(structure)
    )
    # Blocks are seen from the largest logit: 2e4 away, where float32 has steps of 2e-3.
    assert_close(found, expected_of_labels(structure, logits, labels), rtol=2e-6, atol=5e-4)


@every_form
@pytest.mark.parametrize("below", [60.0, 69.0, 70.5, 71.0, 72.0, 80.0, 87.5, 88.8, 95.0, 103.5])
def test_a_label_far_below_the_top_keeps_value_and_gradient(below, form):
    structure = STRUCTURES["months"]
    logits = np.linspace(-below, 1.0 - below, 12, dtype=np.float32)[None]
    logits[0, 6] = 0.0
    found = value_and_gradient(structured_cross_entropy, logits, [0], form(structure))
    assert_close(found, expected_of_labels(structure, logits, [0]), rtol=1e-6, atol=1e-6)


def test_a_small_cotangent_meets_a_small_probability():
    structure = STRUCTURES["months"]
    logits = np.zeros((1, 12), np.float32)
    logits[0, 6] = 65.0
    scaled = jax.grad(lambda z: 1e-20 * structured_cross_entropy(z, [0], structure).sum())
    _, expected = expected_of_labels(structure, logits, [0])
    np.testing.assert_allclose(1e20 * np.float64(scaled(logits)), expected, rtol=1e-5, atol=1e-6)


def test_a_partition_without_weight_counts_nothing_even_where_its_loss_is_infinite():
    logits = jnp.array([[-jnp.inf, 0.0, 0.0]])
    drawn = PartitionArrays(jnp.array([[0, 0, 1], [0, 1, 2]]), jnp.array([1.0, 0.0]))
    found = structured_cross_entropy(logits, jnp.array([0]), drawn)
    np.testing.assert_allclose(found, [np.log(2)], rtol=1e-6)


def test_the_loss_of_an_impossible_label_is_infinite_and_its_gradient_finite():
    logits = np.array([[-np.inf, 0.0, -np.inf, 1.0]], np.float32)
    pairs = RandomPartition([Partition(range(4), [0, 1, 0, 1]), Partition.singletons(range(4))])
    value, gradient = value_and_gradient(structured_cross_entropy, logits, [0], pairs)
    assert np.isposinf(value).all()
    assert np.isfinite(gradient).all()


# Faster ways, each tied to the reference

TREE = RandomPartition(
    [Partition(range(20), [i // size for i in range(20)]) for size in (10, 5, 2)]
    + [Partition.singletons(range(20))],
    [0.3, 0.1, 0.4, 0.2],
)


def expected_of_distributions(structure, logits, distributions):
    """The mean loss and gradient of the classes, class by class."""
    value, gradient = np.zeros(len(logits)), np.zeros(logits.shape)
    for label, p in enumerate(distributions.T):
        of_label = expected_of_labels(structure, logits, np.full(len(logits), label))
        value += np.where(p == 0, 0, p * of_label[0])
        gradient += p[:, None] * of_label[1]
    return value, gradient


@few_examples
@given(problem=problems(largest=400.0))
def test_any_partitions_may_be_summed_by_matrix_products(problem):
    structure, logits, labels = problem
    logits = logits.astype(np.float32)
    with (
        patch.object(plan, "_MANY_CLASSES", 0.5),
        patch.object(formulas, "FEW_PARTITIONS", 0),
        patch.object(formulas, "compiled", plan._fixed.__wrapped__),
    ):
        found = value_and_gradient(structured_cross_entropy, logits, labels, structure)
    assert_close(found, expected_of_labels(structure, logits, labels))


@few_examples
@given(problem=problems())
def test_the_blocks_of_a_tree_are_ranges_of_its_order(problem):
    structure, _, _ = problem
    known, (block_of, _) = plan.compiled(structure)
    if known.ranges is None:
        return
    position, start, size = known.ranges
    offset = position[None, :, None] - start[:, None]  # (classes, classes, partitions)
    is_inside = (offset >= 0) & (offset < size[:, None])
    np.testing.assert_array_equal(
        is_inside, (block_of[:, :, None] == block_of[:, None]).transpose(1, 2, 0)
    )


@few_examples
@given(
    logits=arrays(np.float32, (7, 20), elements=st.floats(-100, 100, width=32)),
    distributions=arrays(np.float64, (7, 20), elements=st.sampled_from([0.0, 0.25, 1.0])),
)
def test_distributions_in_a_tree_some_rows_at_a_time(logits, distributions):
    # Two rows at a time, and one is left. Logits so far apart underflow in float32.
    with patch("structent.losses.jax.distributions._CACHED_LOGITS", 40):
        found = value_and_gradient(
            structured_cross_entropy_with_distributions, logits, distributions, TREE
        )
    expected = expected_of_distributions(TREE, logits, distributions)
    # Sums of up to 20 losses of up to 200.
    assert_close(found, expected, rtol=4e-6, atol=2e-5)


def test_the_gradient_by_a_distribution_is_the_loss_of_each_class():
    logits, _, distributions = noise(TREE, n=3)
    found = jax.grad(lambda p: structured_cross_entropy_with_distributions(logits, p, TREE).sum())(
        jnp.asarray(distributions)
    )
    expected = [expected_of_labels(TREE, logits, np.full(3, c))[0] for c in range(20)]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=2e-6)


@pytest.mark.parametrize("largest", [3.0, 800.0])
@pytest.mark.parametrize("twice", [jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))])
def test_the_loss_of_distributions_in_a_tree_is_differentiable_twice(twice, largest):
    logits, _, distributions = noise(TREE, n=1)
    logits[0, 5] = largest
    with jax.enable_x64(True):
        found = twice(
            lambda z: structured_cross_entropy_with_distributions(z, distributions[0], TREE)
        )(logits[0])
    expected = sum(
        p * reference.exact_curvature(logits, [c], TREE.block_of, TREE.weights, xp=np)[0]
        for c, p in enumerate(distributions[0])
    )
    np.testing.assert_allclose(np.diag(found), expected, atol=1e-12)


# Against optax


@pytest.mark.parametrize("where", [None, "examples", "classes"])
def test_the_trivial_structure_is_optax(where):
    structure = trivial(range(9))
    logits, labels, _ = noise(structure)
    counted = {
        None: None,
        "examples": jnp.arange(6) % 3 > 0,
        "classes": jnp.asarray(np.arange(9) != (labels[:, None] + 4) % 9),
    }[where]
    found, expected = (
        value_and_gradient(loss, np.float32(logits), jnp.asarray(labels), *more, where=counted)
        for loss, more in (
            (structured_cross_entropy, [structure]),
            (optax.softmax_cross_entropy_with_integer_labels, []),
        )
    )
    assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_the_trivial_structure_is_optax_for_distributions():
    structure = trivial(range(9))
    logits, _, distributions = noise(structure)
    found = value_and_gradient(
        structured_cross_entropy_with_distributions, logits, distributions, structure
    )
    expected = value_and_gradient(optax.softmax_cross_entropy, logits, jnp.asarray(distributions))
    assert_close(found, expected, rtol=1e-6, atol=1e-6)


# Axes and masks


@pytest.mark.parametrize("axis", [0, 1, -2, 2])
def test_the_classes_may_be_on_any_axis(axis):
    structure = STRUCTURES["months"]
    logits = np.random.default_rng(0).normal(size=(3, 4, 12))
    labels = np.random.default_rng(1).integers(12, size=(3, 4))
    moved = np.moveaxis(logits, -1, axis)
    expected, gradient = expected_of_labels(structure, logits.reshape(12, 12), labels.reshape(12))
    found = value_and_gradient(structured_cross_entropy, moved, labels, structure, axis=axis)
    expected_gradient = np.moveaxis(gradient.reshape(3, 4, 12), -1, axis)
    assert_close(found, (expected.reshape(3, 4), expected_gradient))


def test_distributions_may_be_on_any_axis():
    structure = STRUCTURES["months"]
    logits, _, distributions = noise(structure)
    found = structured_cross_entropy_with_distributions(
        logits.T, distributions.T, structure, axis=0
    )
    expected = structured_cross_entropy_with_distributions(logits, distributions, structure)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3)])
def test_the_result_has_the_shape_of_the_labels(shape):
    structure = STRUCTURES["months"]
    labels = jnp.zeros(shape, int)
    assert structured_cross_entropy(jnp.zeros((*shape, 12)), labels, structure).shape == shape


@every_form
def test_an_example_that_does_not_count_has_no_loss_and_no_gradient_whatever_it_holds(form):
    structure = STRUCTURES["months"]
    logits, labels, _ = noise(structure)
    expected = expected_of_labels(structure, logits, labels)
    logits[2], labels[2] = np.nan, -1
    for array in expected:
        array[2] = 0
    counted = np.arange(6) != 2
    found = value_and_gradient(
        structured_cross_entropy, logits, labels, form(structure), where=counted
    )
    assert_close(found, expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_class_that_does_not_count_is_one_with_the_logit_minus_infinity(axis):
    structure = STRUCTURES["months"]
    logits, labels, _ = noise(structure)
    counted = np.random.default_rng(5).random(logits.shape) < 0.6
    counted[np.arange(6), labels] = True
    expected = expected_of_labels(structure, np.where(counted, logits, -np.inf), labels)
    if axis == 0:
        logits, counted, expected = logits.T, counted.T, (expected[0], expected[1].T)
    found = value_and_gradient(
        structured_cross_entropy, logits, labels, structure, axis=axis, where=counted
    )
    assert_close(found, expected)


# Transformations


@every_structure
def test_jit_changes_nothing(structure):
    logits, labels, _ = noise(structure)
    jitted = jax.jit(structured_cross_entropy, static_argnames="structure")
    found = value_and_gradient(jitted, logits, labels, structure)
    assert_close(found, expected_of_labels(structure, logits, labels))


@every_form
@pytest.mark.parametrize("largest", [3.0, 300.0])
def test_vmap_is_a_loop(largest, form):
    structure = STRUCTURES["cifar100"]
    logits, labels, _ = noise(structure)
    logits[1, 7] = largest
    given = form(structure)
    one = jax.value_and_grad(lambda z, y: structured_cross_entropy(z, y, given))
    found = jax.vmap(one)(jnp.asarray(logits), jnp.asarray(labels))
    assert_close(found, expected_of_labels(structure, logits, labels))


def test_vmap_over_drawn_partitions():
    draws = [COUNTIES.sample(step) for step in range(3)]
    logits, labels, _ = noise(draws[0])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(partition_arrays, draws))
    found = jax.vmap(lambda s: structured_cross_entropy(logits, labels, s))(stacked)
    expected = [expected_of_labels(draw, logits, labels)[0] for draw in draws]
    np.testing.assert_allclose(found, expected, rtol=2e-6)


@every_form
@pytest.mark.parametrize("largest", [3.0, 800.0])
def test_the_diagonal_of_the_hessian_is_the_exact_curvature(largest, form):
    structure = STRUCTURES["months"]
    logits, labels, _ = noise(structure, n=1)
    logits[0, (labels[0] + 5) % 12] = largest
    with jax.enable_x64(True):
        drawn = form(structure)
        hessian = jax.hessian(lambda z: structured_cross_entropy(z, labels[0], drawn))(logits[0])
    expected = reference.exact_curvature(
        logits, labels, structure.block_of, structure.weights, xp=np
    )
    np.testing.assert_allclose(np.diag(hessian), expected[0], atol=1e-12)


def test_the_gradient_by_the_weights_is_the_loss_of_each_partition():
    structure = STRUCTURES["cifar100"]
    logits, labels, _ = noise(structure)
    drawn = partition_arrays(structure)
    found = jax.grad(
        lambda w: structured_cross_entropy(logits, labels, drawn._replace(weights=w)).sum()
    )(drawn.weights)
    expected = [
        expected_of_labels(RandomPartition([partition]), logits, labels)[0].sum()
        for partition in structure.partitions
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("transform", "error", "message"),
    [
        (jax.jacfwd, TypeError, "forward-mode"),
        (lambda loss: jax.jacrev(jax.grad(loss)), ValueError, "[Rr]everse-mode"),
    ],
    ids=["forward mode", "reverse mode twice"],
)
def test_what_jax_cannot_differentiate_is_jaxs_own_error(transform, error, message):
    structure = STRUCTURES["months"]
    with pytest.raises(error, match=message):
        transform(lambda z: structured_cross_entropy(z, 3, structure))(jnp.zeros(12))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("classes_per_block", [1, 2])
def test_low_precision_accumulates_in_float32(dtype, classes_per_block):
    # In bfloat16 a sum of ones stops at 256, and in float16 at 2048.
    k = 10_000
    structure = RandomPartition([Partition(range(k), np.arange(k) // classes_per_block)])
    value, gradient = value_and_gradient(
        structured_cross_entropy, jnp.zeros((2, k), dtype), [0, 5], structure
    )
    assert value.dtype == gradient.dtype == dtype
    rounding = {"rtol": float(jnp.finfo(dtype).eps)}
    np.testing.assert_allclose(np.float64(value), np.log(k / classes_per_block), **rounding)
    np.testing.assert_allclose(
        np.float64(gradient[0, 0]), 1 / k - 1 / classes_per_block, **rounding
    )


def test_fifty_drawn_partitions_need_one_compilation():
    draws = [COUNTIES.sample(step) for step in range(50)]
    logits, labels, _ = noise(draws[0])
    traces = []

    @jax.jit
    def loss(logits, labels, structure):
        traces.append(structure)
        return structured_cross_entropy(logits, labels, structure).mean()

    step = jax.value_and_grad(loss)
    found = [step(logits, labels, partition_arrays(draw)) for draw in draws]
    expected = [expected_of_labels(draw, logits, labels) for draw in draws]
    assert len(traces) == 1
    assert len({float(value) for value, _ in found}) == 50
    for (value, gradient), (losses, gradients) in zip(found, expected, strict=True):
        assert_close((value, gradient), (losses.mean(), gradients / len(labels)))


# Bad input


@every_form
@pytest.mark.parametrize("structure", [trivial(range(12)), STRUCTURES["months"]])
def test_nan_logits_give_nan_in_their_row_only(structure, form):
    logits, labels, _ = noise(structure)
    expected = expected_of_labels(structure, logits, labels)
    logits[1, 4] = np.nan
    for array in expected:
        array[1] = np.nan
    found = value_and_gradient(structured_cross_entropy, logits, labels, form(structure))
    assert_close(found, expected)


@every_form
def test_nan_logits_give_nan_in_their_row_only_for_distributions(form):
    structure = STRUCTURES["months"]
    logits, _, distributions = noise(structure)
    logits[1, 4] = np.nan
    found = structured_cross_entropy_with_distributions(logits, distributions, form(structure))
    assert np.isnan(found).tolist() == [False, True, False, False, False, False]


def test_a_distribution_without_weight_on_a_masked_class_has_a_finite_gradient():
    structure = STRUCTURES["months"]
    logits, _, distributions = noise(structure)
    logits[:, 3:6], distributions[:, 3:6] = -np.inf, 0
    value, gradient = value_and_gradient(
        structured_cross_entropy_with_distributions, logits, distributions, structure
    )
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("label", [-1, 12])
@pytest.mark.parametrize("structure", [trivial(range(12)), STRUCTURES["months"]])
def test_inside_jit_a_label_out_of_range_gives_nan(structure, label):
    jitted = jax.jit(lambda z, y: structured_cross_entropy(z, y, structure))
    found = jitted(jnp.zeros((2, 12)), jnp.array([0, label]))
    assert np.isnan(found).tolist() == [False, True]


LOGITS, LABELS, MONTHS = jnp.zeros((2, 12)), jnp.array([0, 5]), STRUCTURES["months"]


@pytest.mark.parametrize(
    ("logits", "labels", "structure", "options", "error", "message"),
    [
        (LOGITS[:, 1:], LABELS, MONTHS, {}, StructureError, "covers 12 classes .* has 11 entries"),
        (LOGITS, LABELS, MONTHS, {"axis": 0}, StructureError, "covers 12 classes .* has 2 entries"),
        (LOGITS, LABELS, MONTHS, {"axis": 2}, StructureError, "axis must be one of the 2"),
        (LOGITS.astype(int), LABELS, MONTHS, {}, StructureError, "floating-point .* got int32"),
        (LOGITS, LABELS * 1.0, MONTHS, {}, LabelError, "indices of classes, got float32"),
        (LOGITS, LABELS[:1], MONTHS, {}, LabelError, r"shape \(2,\) .* got \(1,\)"),
        (LOGITS, LABELS - 1, MONTHS, {}, LabelError, "between 0 and 11, got -1"),
        (LOGITS, LABELS + 7, MONTHS, {}, LabelError, "between 0 and 11, got 12"),
        (LOGITS, LABELS, MONTHS, {"where": LABELS[:1]}, StructureError, r"where .* got \(1,\)"),
        (LOGITS, LABELS, COUNTIES, {}, StructureError, r"partition_arrays\(sampler.sample\(step"),
        (LOGITS, LABELS, "months", {}, StructureError, "RandomPartition .* got str"),
    ],
)
def test_bad_input_is_refused(logits, labels, structure, options, error, message):
    with pytest.raises(error, match=message):
        structured_cross_entropy(logits, labels, structure, **options)


def test_a_wrong_number_of_classes_is_refused_while_tracing():
    with pytest.raises(StructureError, match="covers 12 classes"):
        jax.jit(structured_cross_entropy)(LOGITS[:, 1:], LABELS, partition_arrays(MONTHS))


def test_distributions_must_have_the_shape_of_the_logits():
    with pytest.raises(StructureError, match=r"shape of the logits, \(2, 12\), got \(2,\)"):
        structured_cross_entropy_with_distributions(LOGITS, LABELS, MONTHS)


def test_a_sampler_has_no_arrays_before_it_is_drawn_from():
    with pytest.raises(StructureError, match=r"partition_arrays\(sampler.sample\(step"):
        partition_arrays(COUNTIES)
