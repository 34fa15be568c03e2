"""The last layer for JAX: a kernel matrix from the vectors of classes and blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structent import StructureError
from structent.layers.blocks import block_plan
from structent.layers.jax import (
    BlockVectors,
    blocks_from_kernel,
    initial_blocks,
    kernel_from_blocks,
)
from structent.structure import catalog
from tests.layers.problems import STRUCTURES, similarity, unit_vectors

pytestmark = pytest.mark.requires("jax")


@pytest.mark.parametrize("singleton_weight", [None, 0.2])
@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - {"trivial"}))
def test_kernels_of_unit_vectors_have_the_similarity_as_their_products(name, singleton_weight):
    structure = STRUCTURES[name]
    vectors = BlockVectors(*unit_vectors(structure, block_plan(structure, singleton_weight)))
    kernel = kernel_from_blocks(vectors, structure, singleton_weight=singleton_weight)
    expected = similarity(structure, singleton_weight)
    np.testing.assert_allclose(np.asarray(kernel.T @ kernel), expected, atol=1e-5)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_trained_kernel_gives_vectors_that_give_it_back(name):
    structure = STRUCTURES[name]
    kernel = np.random.default_rng(0).normal(size=(5, len(structure.classes))).astype(np.float32)
    vectors = blocks_from_kernel(kernel, structure)
    np.testing.assert_allclose(kernel_from_blocks(vectors, structure), kernel, atol=1e-5)
    own, of_blocks = (np.asarray(part, np.float64) for part in vectors)
    prior = np.trace(kernel @ np.linalg.inv(similarity(structure)) @ kernel.T)
    assert (own**2).sum() + (of_blocks**2).sum() == pytest.approx(prior, rel=1e-4)


@pytest.mark.parametrize("name", ["cifar100", "a tree with many blocks"])
def test_it_is_jitted_and_has_the_gradients_of_the_product(name):
    structure = STRUCTURES[name]
    vectors = initial_blocks(jax.random.key(0), 6, structure, singleton_weight=0.5)
    target = jax.random.normal(jax.random.key(1), (6, len(structure.classes)))

    @jax.jit
    def loss(parameters):
        kernel = kernel_from_blocks(parameters, structure, singleton_weight=0.5)
        return jnp.sum(kernel * target)

    found = jax.grad(loss)(vectors)
    factor = block_plan(structure, 0.5).factor
    np.testing.assert_allclose(found.classes, 0.5**0.5 * target.T, rtol=1e-5)
    np.testing.assert_allclose(found.blocks, factor.matrix.T @ np.asarray(target.T), atol=1e-4)


def test_the_first_kernel_has_the_variance_of_lecun():
    vectors = initial_blocks(jax.random.key(0), 400, catalog.cifar100())
    kernel = kernel_from_blocks(vectors, catalog.cifar100())
    assert float(kernel.var()) == pytest.approx(1 / 400, rel=0.05)
    assert (
        initial_blocks(jax.random.key(0), 4, catalog.months(), dtype=jnp.bfloat16).blocks.dtype
        == jnp.bfloat16
    )


def test_vectors_and_kernels_that_do_not_fit_are_refused():
    vectors = initial_blocks(jax.random.key(0), 4, catalog.months())
    with pytest.raises(StructureError, match="the structure has 100 classes and 32 blocks, got"):
        kernel_from_blocks(vectors, catalog.cifar100())
    with pytest.raises(
        StructureError, match=r"kernel must be \(features, 12\).*got shape \(5, 4\)"
    ):
        blocks_from_kernel(np.zeros((5, 4)), catalog.months())
