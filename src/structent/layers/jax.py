"""The last layer for JAX: pure functions that turn vectors of classes and blocks into a kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from structent._optional import load_optional

load_optional("jax", extra="jax", purpose="kernel_from_blocks")

import jax  # noqa: E402  load_optional must come first
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from structent.errors import StructureError  # noqa: E402
from structent.layers.blocks import BlockPlan, Operations, block_plan  # noqa: E402
from structent.structure import PartitionSampler, RandomPartition  # noqa: E402
from structent.structure.similarity import SimilarityFactor  # noqa: E402

__all__ = ["BlockVectors", "blocks_from_kernel", "initial_blocks", "kernel_from_blocks"]


_plan: Any = lru_cache(maxsize=64)(block_plan)  # compiled once, however often it is traced


class BlockVectors(NamedTuple):
    """The parameters of a layer: a pytree, for any optimiser.

    Attributes
    ----------
    classes
        The vectors of the classes, (classes, features).
    blocks
        The vectors of the blocks, (blocks, features).
    """

    classes: Any
    blocks: Any


def kernel_from_blocks(
    vectors: BlockVectors,
    structure: RandomPartition | PartitionSampler,
    *,
    singleton_weight: float | None = None,
) -> jax.Array:
    r"""Return the kernel of a dense layer, (features, classes), from vectors of classes and blocks.

    .. math:: W_c = \sqrt{s} \, v_c + \sum_t \sqrt{w_t} \, v_{t, B_t(c)}

    Weight decay on the vectors is the Gaussian prior under which the weights of two classes have
    the covariance ``structure.similarity()``. The structure is a constant of a compiled function.

    Parameters
    ----------
    vectors
        The vectors, from :func:`initial_blocks` or :func:`blocks_from_kernel`.
    structure
        How the classes are related, in the order of the outputs. For a sampler, its expected
        similarity is used.
    singleton_weight
        The weight s of the singletons; the other weights stay in proportion. None keeps the
        structure's weights.

    Examples
    --------
    >>> from structent.structure.catalog import cifar100
    >>> vectors = initial_blocks(jax.random.key(0), 512, cifar100())
    >>> logits = jnp.zeros((8, 512)) @ kernel_from_blocks(vectors, cifar100())
    >>> logits.shape
    (8, 100)
    """
    plan: BlockPlan = _plan(structure, singleton_weight)
    own, of_blocks = (jnp.asarray(part) for part in vectors)
    _check_shapes(own, of_blocks, plan)
    matrix = None if plan.matrix is None else jnp.asarray(plan.matrix, own.dtype)
    kernel: jax.Array = plan.class_vectors(own, of_blocks, matrix, plan.parents, _OPERATIONS).T
    return kernel


def initial_blocks(
    key: Any,
    in_features: int,
    structure: RandomPartition | PartitionSampler,
    *,
    singleton_weight: float | None = None,
    dtype: Any = jnp.float32,
) -> BlockVectors:
    """Return random vectors; their kernel has LeCun's variance ``1 / in_features``.

    Parameters
    ----------
    key
        A key of ``jax.random``.
    in_features
        The number of features.
    structure, singleton_weight
        As in :func:`kernel_from_blocks`.
    dtype
        The type of the vectors.
    """
    factor: SimilarityFactor = _plan(structure, singleton_weight).factor
    keys = jax.random.split(key)
    classes, blocks = (
        jax.random.normal(one, (rows, in_features), dtype) / in_features**0.5
        for one, rows in zip(keys, (factor.n_classes, factor.n_blocks), strict=True)
    )
    return BlockVectors(classes, blocks)


def blocks_from_kernel(
    kernel: Any,
    structure: RandomPartition | PartitionSampler,
    *,
    singleton_weight: float | None = None,
) -> BlockVectors:
    """Return the vectors with the smallest norm that give a trained kernel, (features, classes)."""
    factor: SimilarityFactor = _plan(structure, singleton_weight).factor
    table = np.asarray(kernel)
    if table.ndim != 2 or table.shape[1] != factor.n_classes:
        raise StructureError(
            f"kernel must be (features, {factor.n_classes}), a column for each class of the "
            f"structure, got shape {table.shape}"
        )
    vectors = factor.block_vectors(table.T)
    return BlockVectors(*(jnp.asarray(part, table.dtype) for part in vectors))


def _check_shapes(own: jax.Array, of_blocks: jax.Array, plan: BlockPlan) -> None:
    expected = (plan.factor.n_classes, plan.factor.n_blocks)
    if own.ndim != 2 or of_blocks.ndim != 2 or (len(own), len(of_blocks)) != expected:
        raise StructureError(
            f"the structure has {expected[0]} classes and {expected[1]} blocks, got vectors of "
            f"shape {own.shape} and {of_blocks.shape}; initial_blocks makes them"
        )


_OPERATIONS = Operations(
    matmul=jnp.matmul,
    multiply=jnp.multiply,
    add=lambda x, y, scale: x + scale * y,
    take=lambda table, index: jnp.take(table, index, axis=0),
    split=lambda table, sizes: jnp.split(table, np.cumsum(sizes)[:-1].tolist()),
)
