"""The distribution of largest structured entropy, by convex optimisation."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import entr

from structent._typing import FloatArray
from structent.entropy.quantities import Blocks
from structent.structure import RandomPartition
from structent.structure.samplers import checked_fixed

# If several distributions maximise, the one with the largest Shannon entropy is the limit as the
# weight of the singletons goes to 0. Each step starts from the last one.
_VANISHING_WEIGHTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_MOST_NEWTON_STEPS = 60


def maximum_entropy_distribution(structure: RandomPartition) -> FloatArray:
    r"""Distribution that maximises the structured entropy of the structure, (classes,).

    If several do, it is the one with the largest Shannon entropy (to about 1e-8).

    Notes
    -----
    Without the constraint that p sums to 1, the convex function

    .. math:: F(p) = \sum_t w_t \sum_{B \in \mathcal{S}_t} P(B) \log P(B) - \sum_j p_j

    has its minimum at a multiple of the wanted p: F(cp) is least at :math:`c = e^{H(p)}`, where it
    is :math:`-e^{H(p)}`. It is minimised over :math:`\log p`, which keeps p positive.

    Examples
    --------
    The hospital example of the paper, where :math:`p_1 = p_2 = 1 / (2 (1 + 2^{-q_1}))`:

    >>> from structent import hierarchy
    >>> hospital = hierarchy(
    ...     {"died": ("sick",), "readmitted": ("sick",), "well": ("not sick",)}, weights=[0.3, 0.7]
    ... )
    >>> maximum_entropy_distribution(hospital).round(6).tolist()
    [0.309488, 0.309488, 0.381024]
    >>> round(1 / (2 * (1 + 2**-0.7)), 6)
    0.309488
    """
    log_p = np.zeros(checked_fixed(structure).n_classes)
    if structure.is_strictly_proper:
        return _normalised(_minimiser(Blocks.of(structure), log_p))
    for weight in _VANISHING_WEIGHTS:
        log_p = _minimiser(Blocks.of(structure.with_singleton_weight(weight)), log_p)
    return _normalised(log_p)


@dataclass(frozen=True)
class _Objective:
    """F as a function of log p, and its derivatives."""

    blocks: Blocks

    def value(self, log_p: FloatArray) -> float:
        coarse = np.exp(log_p) @ self.blocks.indicator
        return float(-(entr(coarse) + coarse) @ self.blocks.weights)

    def gradient(self, log_p: FloatArray) -> FloatArray:
        p = np.exp(log_p)
        log_coarse = np.log(p @ self.blocks.indicator)
        gradient: FloatArray = p * (self.blocks.indicator @ (self.blocks.weights * log_coarse))
        return gradient

    def curvature_along(self, log_p: FloatArray, direction: FloatArray) -> FloatArray:
        p = np.exp(log_p)
        per_block = self.blocks.weights / (p @ self.blocks.indicator)
        per_block = per_block * ((p * direction) @ self.blocks.indicator)
        along: FloatArray = p * (self.blocks.indicator @ per_block)
        return along + self.gradient(log_p) * direction

    def curvature_scale(self, log_p: FloatArray) -> FloatArray:
        p = np.exp(log_p)
        per_block = self.blocks.weights / (p @ self.blocks.indicator)
        scale: FloatArray = p**2 * (self.blocks.indicator @ per_block)
        return scale + np.abs(self.gradient(log_p))


def _minimiser(blocks: Blocks, log_p: FloatArray) -> FloatArray:
    objective = _Objective(blocks)
    found = minimize(
        objective.value,
        log_p,
        jac=objective.gradient,
        hessp=objective.curvature_along,
        method="trust-ncg",
        options={"gtol": 1e-8, "max_trust_radius": 10.0},
    )
    return _polished(objective, found.x)


def _polished(objective: _Objective, log_p: FloatArray) -> FloatArray:
    """Return log p with all its digits, by Newton's method.

    The solver compares values of F, which determine only half of the digits. Two steps are enough
    unless some p_j is 0 at the maximum: then log p_j falls by about 1 per step.
    """
    shape = (log_p.size, log_p.size)
    for _ in range(_MOST_NEWTON_STEPS):
        gradient = objective.gradient(log_p)
        if np.abs(gradient).max() < np.finfo(np.float64).eps:
            break
        curvature = LinearOperator(shape, matvec=partial(objective.curvature_along, log_p))
        scale = objective.curvature_scale(log_p)
        unscaled = LinearOperator(shape, matvec=partial(np.multiply, 1.0 / scale))
        step, _ = cg(curvature, -gradient, rtol=1e-12, M=unscaled)
        log_p = log_p + step
    return log_p


def _normalised(log_p: FloatArray) -> FloatArray:
    p = np.exp(log_p - log_p.max())
    normalised: FloatArray = p / p.sum()
    return normalised
