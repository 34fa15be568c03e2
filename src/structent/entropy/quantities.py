"""Entropy and related quantities of structured random variables: the paper's section 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, eye_array
from scipy.special import entr, rel_entr, xlogy

from structent._checks import checked_distribution
from structent._typing import FloatArray
from structent.errors import StructureError
from structent.structure import RandomPartition
from structent.structure.samplers import checked_fixed

Information = TypeVar("Information", FloatArray, float)


def structured_entropy(
    p: ArrayLike, structure: RandomPartition, *, base: float | None = None
) -> FloatArray:
    r"""Entropy of a structured random variable, in nats or to another base (Definition 8).

    .. math:: H(Y_Z) = \sum_t w_t \sum_{B \in \mathcal{S}_t} -P(Y \in B) \log P(Y \in B) \qquad (1)

    Parameters
    ----------
    p
        Probabilities of the classes along the last axis, (..., classes).
    structure
        The random partition :math:`Z`; its weights are :math:`w_t`.
    base
        The base of the logarithm; None for nats, 2 for bits.

    Returns
    -------
    The entropy of each distribution, (...).

    Examples
    --------
    >>> from structent import Partition
    >>> sick_or_well = RandomPartition([Partition.from_blocks([[0, 1], [2]])])
    >>> float(structured_entropy([0.25, 0.25, 0.5], sick_or_well, base=2))
    1.0
    """
    p = checked_distribution(p, "p", n_classes=[checked_fixed(structure).n_classes])
    blocks = Blocks.of(structure)
    return in_base(entr(blocks.coarsened(p)) @ blocks.weights, base)


def structured_cross_entropy(
    p: ArrayLike, q: ArrayLike, structure: RandomPartition, *, base: float | None = None
) -> FloatArray:
    r"""Cross-entropy of the distribution q under the true p (section 3.3).

    .. math:: H^\dagger_Z(p, q) = -\sum_t w_t \sum_{B \in \mathcal{S}_t} P(B) \log Q(B)

    It is infinite if q gives 0 to a block that p allows. Shapes as in :func:`structured_entropy`; p
    and q broadcast against each other. For a loss on logits see ``structent.losses``.

    Examples
    --------
    >>> from structent import Partition
    >>> sick_or_well = RandomPartition([Partition.from_blocks([[0, 1], [2]])])
    >>> float(structured_cross_entropy([0.5, 0.5, 0.0], [0.2, 0.3, 0.5], sick_or_well, base=2))
    1.0
    """
    p = checked_distribution(p, "p", n_classes=[checked_fixed(structure).n_classes])
    q = checked_distribution(q, "q", n_classes=[structure.n_classes])
    blocks = Blocks.of(structure)
    surprise = -xlogy(blocks.coarsened(p), blocks.coarsened(q))
    return in_base(surprise @ blocks.weights, base)


def structured_relative_entropy(
    p: ArrayLike, q: ArrayLike, structure: RandomPartition, *, base: float | None = None
) -> FloatArray:
    r"""Relative entropy (Kullback-Leibler divergence) of p from q (Definition 15).

    .. math:: D_Z(p \,\|\, q) = \sum_t w_t D(\mathcal{S}_t(p) \,\|\, \mathcal{S}_t(q)) \qquad (4)

    It is 0 exactly if p and q give the same probability to every block of positive weight. Shapes
    as in :func:`structured_cross_entropy`.

    Examples
    --------
    >>> from structent import Partition
    >>> sick_or_well = RandomPartition([Partition.from_blocks([[0, 1], [2]])])
    >>> float(structured_relative_entropy([0.1, 0.4, 0.5], [0.4, 0.1, 0.5], sick_or_well))
    0.0
    """
    p = checked_distribution(p, "p", n_classes=[checked_fixed(structure).n_classes])
    q = checked_distribution(q, "q", n_classes=[structure.n_classes])
    blocks = Blocks.of(structure)
    return in_base(rel_entr(blocks.coarsened(p), blocks.coarsened(q)) @ blocks.weights, base)


def joint_structured_entropy(
    p_xy: ArrayLike,
    structure_x: RandomPartition | None = None,
    structure_y: RandomPartition | None = None,
    *,
    base: float | None = None,
) -> FloatArray:
    r"""Entropy of the pair (X, Y) under the joint random partition (Definition 22).

    .. math:: H(X_W, Y_Z) = H((X, Y)_{W \times Z}) \qquad (10)

    Parameters
    ----------
    p_xy
        Joint probabilities, (..., classes of x, classes of y).
    structure_x, structure_y
        The random partitions :math:`W` of x and :math:`Z` of y; None for the trivial one.
    base
        The base of the logarithm; None for nats.

    Returns
    -------
    The entropy of each joint distribution, (...).

    Examples
    --------
    >>> float(joint_structured_entropy([[0.25, 0.25], [0.25, 0.25]], base=2))
    2.0
    """
    pair = _Pair(p_xy, structure_x, structure_y)
    return in_base(pair.weighted_sum(entr(pair.p_xy)), base)


def conditional_structured_entropy(
    p_xy: ArrayLike,
    structure_x: RandomPartition | None = None,
    structure_y: RandomPartition | None = None,
    *,
    base: float | None = None,
) -> FloatArray:
    r"""Entropy of Y that is left once X is known (Definition 13).

    .. math:: H(Y_Z | X_W) = \sum_{i,j} q_i r_j H(\mathcal{S}_i(Y) | \mathcal{R}_j(X)) \qquad (3)

    Arguments as in :func:`joint_structured_entropy`.

    Examples
    --------
    >>> float(conditional_structured_entropy([[0.5, 0.0], [0.0, 0.5]]))
    0.0
    """
    pair = _Pair(p_xy, structure_x, structure_y)
    # rel_entr(a, b) = a log(a / b), and 0 where a is 0, for every b.
    return in_base(pair.weighted_sum(-rel_entr(pair.p_xy, pair.p_x)), base)


def structured_mutual_information(
    p_xy: ArrayLike,
    structure_x: RandomPartition | None = None,
    structure_y: RandomPartition | None = None,
    *,
    base: float | None = None,
) -> FloatArray:
    r"""What X tells about Y, and Y about X (Definition 16).

    .. math:: I(Y_Z; X_W) = H(Y_Z) - H(Y_Z | X_W) \qquad (5)

    Computed as the relative entropy of the joint distribution from the product of its margins,
    which is equal and avoids the loss of digits in the difference. Arguments as in
    :func:`joint_structured_entropy`.

    Examples
    --------
    >>> float(structured_mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2))
    1.0
    """
    pair = _Pair(p_xy, structure_x, structure_y)
    # log(p_xy / p_x) - log(p_y): the product of two small margins could underflow.
    told = rel_entr(pair.p_xy, pair.p_x) - xlogy(pair.p_xy, pair.p_y)
    return in_base(pair.weighted_sum(told), base)


class _Pair:
    """The probabilities of the pairs of blocks of two structured variables, and the margins."""

    def __init__(
        self,
        p_xy: ArrayLike,
        structure_x: RandomPartition | None,
        structure_y: RandomPartition | None,
    ) -> None:
        both = {"structure_x": structure_x, "structure_y": structure_y}
        n_classes = [
            s if s is None else checked_fixed(s, name).n_classes for name, s in both.items()
        ]
        p = checked_distribution(p_xy, "p_xy", n_classes=n_classes)
        x, y = (
            Blocks.singletons(p.shape[axis]) if structure is None else Blocks.of(structure)
            for structure, axis in ((structure_x, -2), (structure_y, -1))
        )
        self.p_xy = y.coarsened(x.coarsened(p, axis=-2))  # (..., blocks of x, blocks of y)
        self.p_x = x.coarsened(p.sum(axis=-1))[..., :, None]
        self.p_y = y.coarsened(p.sum(axis=-2))[..., None, :]
        self.weights_x, self.weights_y = x.weights, y.weights

    def weighted_sum(self, terms: FloatArray) -> FloatArray:
        """Return the sum over the pairs of blocks, weighted by the weights of both."""
        summed: FloatArray = (terms @ self.weights_y) @ self.weights_x
        return summed


def in_base(nats: Information, base: float | None) -> Information:
    """Return an amount of information in the unit of another base."""
    if base is None:
        return nats
    if not 0 < base < np.inf or base == 1:
        raise StructureError(f"base must be a positive number other than 1, got {base!r}")
    return nats / float(np.log(base))


@dataclass(frozen=True)
class Blocks:
    """The blocks of all partitions with positive weight, equal partitions taken together.

    Attributes
    ----------
    indicator
        1 where a class is in a block, (classes, blocks), sparse: one entry per class and partition.
    weights
        The weight of each block's partition, (blocks,).
    """

    indicator: csr_array
    weights: FloatArray

    @classmethod
    def of(cls, structure: RandomPartition) -> Blocks:
        """Return the blocks of a structure.

        Partitions without weight are left out: 0 times an infinite value would be NaN.
        """
        weight_of: dict[bytes, float] = {}
        rows = {}
        for ids, weight in zip(structure.block_of, structure.weights.tolist(), strict=True):
            if weight > 0:
                rows[ids.tobytes()] = ids
                weight_of[ids.tobytes()] = weight_of.get(ids.tobytes(), 0.0) + weight
        n_blocks = [int(ids.max()) + 1 for ids in rows.values()]
        first_block = np.cumsum([0, *n_blocks[:-1]])
        block_of = np.stack(list(rows.values()), axis=1) + first_block  # (classes, partitions)
        ones = np.ones(block_of.size)
        row_ends = np.arange(structure.n_classes + 1) * len(rows)
        shape = (structure.n_classes, sum(n_blocks))
        indicator = csr_array((ones, block_of.ravel(), row_ends), shape)
        return cls(indicator, np.repeat(list(weight_of.values()), n_blocks))

    @classmethod
    def singletons(cls, n_classes: int) -> Blocks:
        """Return the blocks of the trivial structure."""
        return cls(csr_array(eye_array(n_classes)), np.ones(n_classes))

    def coarsened(self, p: FloatArray, *, axis: int = -1) -> FloatArray:
        """Return the probability of each block, summed over its classes along an axis."""
        moved = np.moveaxis(p, axis, -1)
        coarse: FloatArray = moved.reshape(-1, moved.shape[-1]) @ self.indicator
        return np.moveaxis(coarse.reshape(*moved.shape[:-1], len(self.weights)), -1, axis)
