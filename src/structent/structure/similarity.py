"""How similar the classes of a structure are, and each class as the weighted sum of its blocks.

K[i, j] is the probability that Z puts classes i and j into one block. Let F have one column for
each block of each partition t, with sqrt(w_t) where a class is in the block. Then K = F F^T. If
there are many classes, F is used and never K: F has one entry for each partition and class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from structent._checks import checked_integer
from structent._typing import FloatArray, IntArray
from structent.errors import StructureError
from structent.structure.partition import pooled

if TYPE_CHECKING:
    from structent.structure.random_partition import RandomPartition
    from structent.structure.samplers import PartitionSampler

# Draws of a sampler: the standard error of a similarity is at most 0.5 / sqrt(1000) = 0.016.
N_DRAWS = 1000
# The similarity of a sampler does not come from a fixed set of blocks, so its factor is a table.
_MOST_CLASSES_OF_A_SAMPLER = 2000


def similarity_of(
    structure: RandomPartition | PartitionSampler, n_draws: int = N_DRAWS
) -> FloatArray:
    """Return the similarity of the classes, (classes, classes), of a structure or of any sampler.

    Your own sampler needs no method ``similarity``: the mean over its draws is taken.

    Examples
    --------
    >>> from structent import FixedStructure, circular
    >>> seasons = circular(range(4), width=2, singleton_weight=0.5)
    >>> similarity_of(FixedStructure(seasons))[0].tolist()
    [1.0, 0.25, 0.0, 0.25]
    """
    own: Any = structure
    if not hasattr(structure, "similarity"):
        return mean_similarity(own, n_draws)
    similarity: FloatArray = (
        own.similarity(n_draws=n_draws) if hasattr(structure, "sample") else own.similarity()
    )
    return similarity


def similarity_of_blocks(block_of: IntArray, weights: FloatArray) -> FloatArray:
    """Return the weight of the partitions in which two classes share a block.

    Parameters
    ----------
    block_of
        The block of each class in each partition, numbered 0, 1, ..., (partitions, classes).
    weights
        The weight of each partition, with sum 1, (partitions,).

    Examples
    --------
    >>> block_of = np.array([[0, 0, 1], [0, 1, 2]], dtype=np.int32)
    >>> similarity_of_blocks(block_of, np.array([0.25, 0.75])).tolist()
    [[1.0, 0.25, 0.0], [0.25, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, of_rows, _ = _coarse(block_of, weights)
    weighted, members = (_block_columns(rows, each) for each in (of_rows, np.ones_like(of_rows)))
    similarity: FloatArray = (weighted @ members.T).toarray()
    np.fill_diagonal(similarity, 1.0)  # the sum of the weights, without its rounding
    return similarity


def mean_similarity(sampler: PartitionSampler, n_draws: int) -> FloatArray:
    """Return the mean over the first draws of a sampler: a pure function of its seed."""
    n_draws = checked_integer(n_draws, "n_draws", at_least=1, at_most=2**31 - 1)
    drawn = [sampler.sample(iteration) for iteration in range(n_draws)]
    block_of = np.concatenate([one.block_of for one in drawn])
    return similarity_of_blocks(block_of, np.concatenate([one.weights for one in drawn]) / n_draws)


def with_singletons_at(similarity: FloatArray, own: float, given: float | None) -> FloatArray:
    """Return the similarity of a structure after its singletons get another weight.

    The other partitions stay in proportion. None leaves the similarity as it is.

    Examples
    --------
    >>> half = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> with_singletons_at(half, 0.5, 0.2).tolist()
    [[1.0, 0.8], [0.8, 1.0]]
    """
    if given is None:
        return similarity
    changed: FloatArray = similarity * ((1.0 - given) / (1.0 - own))
    np.fill_diagonal(changed, 1.0)
    return changed


@dataclass(frozen=True, eq=False)
class SimilarityFactor:
    r"""A class as the weighted sum of its blocks: :math:`K = s I + B B^T`, without the table K.

    The vector of a class is :math:`\sqrt s` times its own vector, plus the sum of the vectors of
    its blocks, each times the root of the weight of its partition. If all these vectors have
    independent entries of variance 1, the vectors of the classes have the covariance K.

    Attributes
    ----------
    singleton_weight
        The weight s of the singletons.
    matrix
        The matrix B, (classes, blocks): sparse, with :math:`\sqrt{w_t}` where a class is in a block
        of partition t. For a sampler, the symmetric root of K - s I, (classes, classes), where s is
        the least eigenvalue of K.
    block_of
        The partitions without the singletons, from coarse to fine, blocks numbered within each,
        (partitions, classes); none for a sampler.
    weights
        Their weights, (partitions,).
    """

    singleton_weight: float
    matrix: csr_array | FloatArray
    block_of: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, structure: RandomPartition | PartitionSampler) -> SimilarityFactor:
        """Return the factor of a structure, or of the expected similarity of a sampler.

        Examples
        --------
        >>> from structent import hierarchy
        >>> plants = hierarchy({"oak": ("tree",), "maple": ("tree",), "rose": ("flower",)})
        >>> factor = SimilarityFactor.of(plants)  # half the weight on trees and flowers
        >>> factor.singleton_weight, (factor.matrix.toarray() ** 2).round(9).tolist()
        (0.5, [[0.5, 0.0], [0.5, 0.0], [0.0, 0.5]])
        """
        from structent.structure.samplers import (  # noqa: PLC0415  it needs this file
            FixedStructure,
        )

        fixed: Any = structure.structure if isinstance(structure, FixedStructure) else structure
        if not hasattr(fixed, "block_of"):
            return _factor_of_draws(fixed)
        rows, weights, singleton_weight = _coarse(fixed.block_of, fixed.weights)
        return cls(singleton_weight, _block_columns(rows, np.sqrt(weights)), rows, weights)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.matrix.shape[0])

    @property
    def n_blocks(self) -> int:
        """How many vectors of blocks there are, without the vectors of the classes themselves."""
        return int(self.matrix.shape[1])

    def class_vectors(self, own: NDArray[Any], of_blocks: NDArray[Any]) -> NDArray[Any]:
        """Return the vector of each class, (classes, features).

        Parameters
        ----------
        own
            The vectors of the classes themselves, (classes, features).
        of_blocks
            The vectors of the blocks, (blocks, features).
        """
        vectors: NDArray[Any] = np.sqrt(self.singleton_weight) * own + self.matrix @ of_blocks
        return vectors

    def block_vectors(self, of_classes: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        r"""Return the parts with the smallest squared norm that give these vectors of the classes.

        They are :math:`\sqrt s K^{-1} W` and :math:`B^T K^{-1} W`, and the sum of their squares is
        :math:`tr(W^T K^{-1} W)`. By the Woodbury identity, applying the inverse takes a sparse
        system with one equation for each block.
        """
        if self.singleton_weight == 0.0:
            raise StructureError(
                "vectors of blocks for given vectors of classes need a singleton weight above 0, "
                "got 0; with_singleton_weight(0.1) gives the structure one"
            )
        s, b = self.singleton_weight, csr_array(self.matrix)
        vectors = np.asarray(of_classes, dtype=np.float64)
        inverse: FloatArray = vectors / s
        if self.n_blocks > 0:
            system = splu((s * eye_array(self.n_blocks) + b.T @ b).tocsc())
            inverse = (vectors - b @ system.solve(b.T @ vectors)) / s
        return np.sqrt(s) * inverse, b.T @ inverse


def _factor_of_draws(sampler: Any) -> SimilarityFactor:
    n_classes = len(sampler.classes)
    if n_classes > _MOST_CLASSES_OF_A_SAMPLER:
        raise StructureError(
            f"the similarity of a sampler's classes is a table, for at most "
            f"{_MOST_CLASSES_OF_A_SAMPLER} of them, got {n_classes}; fix some of its draws: "
            "mix([sampler.sample(i) for i in range(20)])"
        )
    similarity = similarity_of(sampler)
    eigenvalues, vectors = np.linalg.eigh(similarity)
    # A mean of positive semi-definite matrices: negative eigenvalues are rounding errors.
    least = max(float(eigenvalues[0]), 0.0)
    root = np.sqrt(np.maximum(eigenvalues - least, 0.0))
    none = np.empty((0, n_classes), dtype=np.int32)
    return SimilarityFactor(least, (vectors * root) @ vectors.T, none, np.empty(0))


def _coarse(block_of: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray, float]:
    """Return the partitions without the singletons, their weights, and the singletons' weight."""
    found = pooled(block_of, weights)
    rows: IntArray = block_of[found.rows]
    return rows, found.weights, found.singleton_weight


def _block_columns(rows: IntArray, values: FloatArray) -> csr_array:
    """Return the value of each partition where a class is in a block of it, (classes, blocks)."""
    n_partitions, n_classes = rows.shape
    n_blocks = rows.max(axis=1, initial=-1) + 1
    numbered = rows + (np.cumsum(n_blocks) - n_blocks)[:, None]  # (partitions, classes)
    ends = np.arange(n_classes + 1) * n_partitions
    entries = np.tile(values, n_classes)
    return csr_array((entries, numbered.T.ravel(), ends), (n_classes, int(n_blocks.sum())))
