"""The JAX loss of examples that are labelled by classes, blocks and sets of classes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structent import LabelError, RandomPartition, SpanningTreePartitions, trivial
from structent.kernels import reference
from structent.losses.jax import partition_arrays, structured_cross_entropy
from structent.structure import catalog
from tests.kernels.problems import members_of

pytestmark = pytest.mark.requires("jax")

MONTHS = catalog.months()
LABEL_SETS = MONTHS.encode_with_blocks([1, {1, 2, 3}, {7, 12}, set(range(1, 13))])
MEMBERS = members_of(LABEL_SETS.coarse_sets, 12)
FORMS = pytest.mark.parametrize("form", [lambda s: s, partition_arrays], ids=["fixed", "drawn"])


def expected(name, logits, codes, structure=MONTHS):
    return getattr(reference, name)(
        np.asarray(logits, dtype=np.float64), codes, structure.block_of, structure.weights,
        xp=np, members=MEMBERS,
    )  # fmt: skip


def expected_losses(logits, codes, structure=MONTHS):
    return expected("structured_cross_entropy_from_logits", logits, codes, structure)


def problem(n=4):
    logits = np.random.default_rng(0).normal(scale=2, size=(n, 12)).astype(np.float32)
    return logits, np.tile(LABEL_SETS.codes, n)[:n]


@FORMS
def test_under_jit_vmap_and_grad_the_loss_is_that_of_the_reference(form):
    logits, codes = problem()
    structure = form(MONTHS)

    @jax.jit
    def losses_and_gradients(z, y):
        one = jax.value_and_grad(
            lambda row, code: structured_cross_entropy(row, code, structure, label_sets=LABEL_SETS)
        )
        return jax.vmap(one)(z, y)

    losses, gradients = losses_and_gradients(logits, codes)
    np.testing.assert_allclose(losses, expected_losses(logits, codes), rtol=4e-6, atol=4e-6)
    wanted = expected("gradient_from_logits", logits, codes)
    np.testing.assert_allclose(gradients, wanted, rtol=4e-6, atol=4e-6)


def test_the_diagonal_of_the_hessian_is_the_exact_curvature():
    logits, codes = problem()
    with jax.enable_x64(True):
        hessian = jax.hessian(
            lambda z: structured_cross_entropy(z, codes[1], MONTHS, label_sets=LABEL_SETS)
        )(logits[1].astype(np.float64))
    wanted = expected("exact_curvature", logits[1:2], codes[1:2])[0]
    np.testing.assert_allclose(np.diag(hessian), wanted, atol=1e-12)


def test_classes_may_be_on_any_axis_and_examples_or_classes_may_not_count():
    logits, codes = problem()
    found = structured_cross_entropy(logits.T, codes, MONTHS, axis=0, label_sets=LABEL_SETS)
    np.testing.assert_allclose(found, expected_losses(logits, codes), rtol=4e-6, atol=4e-6)
    where = np.array([True, False, True, True])
    found = structured_cross_entropy(
        logits, codes + 99 * ~where, MONTHS, where=where, label_sets=LABEL_SETS
    )
    wanted = where * expected_losses(logits, codes)
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=4e-6)
    by_class = np.ones((4, 12), dtype=bool)
    by_class[:, 1] = False  # codes 0, 1-3, 7 and 12, and any stay possible
    found = structured_cross_entropy(logits, codes, MONTHS, where=by_class, label_sets=LABEL_SETS)
    wanted = expected_losses(np.where(by_class, logits, -np.inf), codes)
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=4e-6)


def test_drawn_partitions_need_one_compilation():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    a, b, c = sampler.classes[:3]
    label_sets = trivial(sampler.classes).encode_with_blocks([a, {b, c}])
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(2, 58)), dtype=jnp.float32)
    n_traces = 0

    @jax.jit
    def loss(z, structure):
        nonlocal n_traces
        n_traces += 1
        return structured_cross_entropy(z, label_sets.codes, structure, label_sets=label_sets)

    for step in range(3):
        drawn = sampler.sample(step)
        wanted = reference.structured_cross_entropy_from_logits(
            np.asarray(logits, dtype=np.float64), label_sets.codes, drawn.block_of, drawn.weights,
            xp=np, members=members_of(label_sets.coarse_sets, 58),
        )  # fmt: skip
        np.testing.assert_allclose(loss(logits, partition_arrays(drawn)), wanted, rtol=4e-6)
    assert n_traces == 1


def test_the_gradient_by_the_weights_is_the_loss_of_each_partition():
    logits, codes = problem()
    drawn = partition_arrays(MONTHS)
    found = jax.grad(
        lambda w: structured_cross_entropy(
            logits, codes, drawn._replace(weights=w), label_sets=LABEL_SETS
        ).sum()
    )(drawn.weights)
    wanted = [expected_losses(logits, codes, RandomPartition([p])).sum() for p in MONTHS.partitions]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_low_precision_accumulates_in_float32():
    logits, codes = problem()
    low = jnp.asarray(logits, dtype=jnp.bfloat16)
    found = structured_cross_entropy(low, codes, MONTHS, label_sets=LABEL_SETS)
    assert found.dtype == jnp.bfloat16
    wanted = expected_losses(low.astype(jnp.float32), codes)
    np.testing.assert_allclose(found.astype(jnp.float32), wanted, rtol=2**-8)


def test_inside_jit_a_code_beyond_the_table_gives_nan():
    jitted = jax.jit(lambda z, y: structured_cross_entropy(z, y, MONTHS, label_sets=LABEL_SETS))
    found = jitted(jnp.zeros((2, 12)), jnp.array([LABEL_SETS.codes[1], len(LABEL_SETS.sets)]))
    assert np.isnan(found).tolist() == [False, True]


def test_classes_alone_with_label_sets_that_hold_no_set_take_the_usual_way():
    few = trivial(["a", "b"]).encode_with_blocks(["a"])
    with pytest.raises(LabelError, match="between 0 and 1, got 2"):
        structured_cross_entropy(
            jnp.zeros((1, 2)), jnp.array([2]), trivial(["a", "b"]), label_sets=few
        )
