"""Every adapter against the reference: value, gradient, extreme logits, all kinds of structures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from structent import SpanningTreePartitions, hierarchy, mix, ordinal, trivial
from structent.kernels import reference
from structent.kernels.layout import Layout
from structent.losses import jax as jax_losses
from structent.losses import keras as keras_losses
from structent.losses.torch import structured_cross_entropy
from structent.losses.torch.operator import labelled
from structent.losses.torch.portable import TensorLayout
from structent.losses.torch.rows import portable_rows_of_labels
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, problems

pytestmark = [pytest.mark.requires(name) for name in ("torch", "keras", "jax")]

STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5).sample(3),
    "states": SpanningTreePartitions(catalog.us_states(), 7, 0.2).sample(5),
    "ordinal": ordinal(range(9)),
    "ragged hierarchy": hierarchy({i: tuple("abc"[: i % 4]) for i in range(8)}),
    "mixture": mix([catalog.months(), ordinal(range(1, 13))]),
    "trivial": trivial(range(5)),
}


def torch_fused(structure, logits, labels):
    return _by_torch(
        lambda z: structured_cross_entropy(
            z, torch.from_numpy(labels), structure, reduction="none"
        ),
        logits,
    )


def torch_compiled(structure, logits, labels):
    block_of, weights = (
        torch.from_numpy(a.copy()) for a in (structure.block_of, structure.weights)
    )
    return _by_torch(
        lambda z: labelled(z, torch.from_numpy(labels), block_of, weights, None, -100, True)[0],
        logits,
    )


def torch_portable(structure, logits, labels):
    layout = TensorLayout.of(Layout.of(structure), torch.device("cpu"))
    losses, _, gradient, _ = portable_rows_of_labels(
        torch.from_numpy(logits), torch.from_numpy(labels), layout, None, -100, with_gradient=True
    )
    return losses.numpy(), gradient.numpy()


def keras_on_torch(structure, logits, labels):
    loss = keras_losses.StructuredCrossEntropy(structure, reduction=None)
    return _by_torch(lambda z: loss(torch.from_numpy(labels), z), logits)


def jax_fixed(structure, logits, labels):
    return _by_jax(lambda z: jax_losses.structured_cross_entropy(z, labels, structure), logits)


def jax_drawn(structure, logits, labels):
    arrays = jax_losses.partition_arrays(structure)
    return _by_jax(lambda z: jax_losses.structured_cross_entropy(z, labels, arrays), logits)


def _by_torch(loss, logits):
    z = torch.from_numpy(logits).requires_grad_()
    losses = loss(z)
    (gradient,) = torch.autograd.grad(losses.sum(), z)
    return losses.detach().numpy(), gradient.numpy()


def _by_jax(loss, logits):
    losses, pull_back = jax.vjp(loss, jnp.asarray(logits))
    (gradient,) = pull_back(jnp.ones_like(losses))
    return np.asarray(losses), np.asarray(gradient)


ADAPTERS = pytest.mark.parametrize(
    "adapter",
    [torch_fused, torch_compiled, torch_portable, keras_on_torch, jax_fixed, jax_drawn],
)


def assert_conforms(adapter, structure, logits, labels):
    logits = logits.astype(np.float32)
    losses, gradient = adapter(structure, logits, labels)
    arguments = (logits.astype(np.float64), labels, structure.block_of, structure.weights)
    wanted = reference.structured_cross_entropy_from_logits(*arguments, xp=np)
    wanted_gradient = reference.gradient_from_logits(*arguments, xp=np)
    np.testing.assert_allclose(losses, wanted, rtol=4e-6, atol=4e-6)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=4e-6, atol=4e-6)


@ADAPTERS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_value_and_gradient_are_those_of_the_reference(adapter, structure):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(7, structure.n_classes))
    assert_conforms(adapter, structure, logits, rng.integers(structure.n_classes, size=7))


@ADAPTERS
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(adapter, structure, case):
    assert_conforms(adapter, structure, *case(structure.n_classes))


@ADAPTERS
@given(problems())
@settings(max_examples=25)
def test_random_structures_give_what_the_reference_gives(adapter, problem):
    assert_conforms(adapter, *problem)
