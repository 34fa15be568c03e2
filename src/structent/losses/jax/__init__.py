"""Structured cross-entropy for JAX: pure functions in the manner of optax's losses."""

from structent._optional import load_optional

load_optional("jax", extra="jax", purpose="structured_cross_entropy for JAX")

from structent.losses.jax.functional import (  # noqa: E402  after the check that JAX is installed
    structured_cross_entropy,
    structured_cross_entropy_with_distributions,
)
from structent.losses.jax.plan import PartitionArrays, partition_arrays  # noqa: E402

__all__ = [
    "PartitionArrays",
    "partition_arrays",
    "structured_cross_entropy",
    "structured_cross_entropy_with_distributions",
]
