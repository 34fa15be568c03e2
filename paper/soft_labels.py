"""Labels that are distributions: soft labels and smoothed labels, and models that learn from them.

Losses that we compare with, with the hierarchy or without structure, are built on these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from structent._typing import FloatArray
from structent.estimators.linear_objective import LinearObjective
from structent.kernels.layout import Layout
from structent.metrics.distance import class_distances
from structent.structure import RandomPartition, SpanningTreePartitions, trivial
from structent.studies.levels import edges_between

_SMOOTHING = 0.1
# Copies of a row with less weight than this are left out.
_LEAST_SHARE = 1e-4
# A fit ends when no entry of the gradient exceeds this, or when gains are rounding errors.
_TOL, _ROUNDING = 1e-6, 2.0**-30


def distances_between(structure: RandomPartition | SpanningTreePartitions) -> FloatArray:
    """Return the distances between classes, (classes, classes); on a graph, numbers of edges."""
    if isinstance(structure, SpanningTreePartitions):
        return edges_between(structure.graph)
    every = np.arange(structure.n_classes)
    return class_distances(structure, every[:, None], every[None, :])


def soft_labels(structure: RandomPartition | SpanningTreePartitions, beta: float) -> FloatArray:
    """Return the soft labels of Bertinetto et al. (2020), one row per true class.

    The probability of a class is proportional to exp(-beta d), where d is its distance from the
    true class as a share of the largest distance. In a tree it is the height of the lowest common
    ancestor.

    Examples
    --------
    >>> from structent import hierarchy
    >>> plants = hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)})
    >>> soft_labels(plants, beta=2 * np.log(2)).round(3).tolist()[0]  # 1 : 1/2 : 1/4
    [0.571, 0.286, 0.143]
    """
    distance = distances_between(structure)
    closeness = np.exp(-beta * distance / distance.max())
    shares: FloatArray = closeness / closeness.sum(axis=1, keepdims=True)
    return shares


def smoothed_labels(n_classes: int, share: float = _SMOOTHING) -> FloatArray:
    """Return labels of which a share is spread evenly over all classes, one row per true class.

    >>> smoothed_labels(2).round(3).tolist()
    [[0.95, 0.05], [0.05, 0.95]]
    """
    return (1.0 - share) * np.eye(n_classes) + share / n_classes


class SoftLabelModel:
    """A linear model of classes, in sorted order; ``weights`` are (features + 1, classes)."""

    def __init__(self, classes: NDArray[Any], weights: FloatArray) -> None:
        self.classes_ = classes
        self.weights = weights

    def predict_proba(self, features: NDArray[Any]) -> FloatArray:
        """Return the probabilities of the classes, (n, classes)."""
        logits = features @ self.weights[:-1] + self.weights[-1]
        proba: FloatArray = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        return proba


def fit_distributions(
    features: NDArray[Any],
    distributions: FloatArray,
    classes: NDArray[Any],
    *,
    penalty: float,
    start: SoftLabelModel | None = None,
) -> SoftLabelModel:
    r"""Return logistic regression on labels that are distributions q over the classes.

    .. math:: \frac{1}{n} \sum_i \left( \log \sum_c e^{z_{ic}} - \sum_c q_{ic} z_{ic} \right)
        + \frac{1}{2Cn} \sum_{jc} W_{jc}^2, \qquad z_i = x_i W + b

    The labels are only in a term that is linear in W and b. So this is the objective of the linear
    model as if all rows had the first class, plus that term.

    Parameters
    ----------
    features
        The features, (n, features), in float32 or float64.
    distributions
        The distribution of each row, (n, classes).
    classes
        The classes, sorted.
    penalty
        C.
    start
        A model to start from; if None, all weights are 0.
    """
    n = len(features)
    of_first = LinearObjective(
        features, np.zeros(n, dtype=np.int64), np.ones(n),
        Layout.of(trivial(classes.tolist())), penalty=1.0 / (penalty * n),
    )  # fmt: skip
    difference = (np.arange(len(classes)) == 0) - distributions
    by_coef, by_intercept = difference.T @ features / n, difference.mean(axis=0)
    parts = of_first.split(np.concatenate([by_coef.ravel(), by_intercept]))
    slope = np.concatenate([part.ravel() for part in parts])

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = of_first(parameters)
        return value + float(slope @ parameters), gradient + slope

    weights = np.zeros((features.shape[1] + 1, len(classes))) if start is None else start.weights
    found = minimize(
        objective, of_first.joined(weights[:-1].T, weights[-1]), jac=True, method="L-BFGS-B",
        options={"maxiter": 1000, "maxls": 50, "ftol": _ROUNDING, "gtol": _TOL},
    )  # fmt: skip
    coef, intercept = of_first.split(found.x)
    return SoftLabelModel(classes, np.vstack([coef.T, intercept]))


def copied_rows(
    codes: NDArray[Any], distributions: FloatArray
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """Return weighted rows with single classes that replace labels that are distributions.

    A row is copied once for each class, with the probability of the class as its weight: the mean
    loss of its copies is the cross-entropy of its distribution. Shares below 1e-4 are left out.

    Examples
    --------
    >>> rows, classes, weights = copied_rows(np.array([1]), np.array([[1.0, 0.0], [0.25, 0.75]]))
    >>> rows.tolist(), classes.tolist(), weights.tolist()
    ([0, 0], [0, 1], [0.25, 0.75])
    """
    shares = distributions[codes]
    rows, classes = np.nonzero(shares >= _LEAST_SHARE)
    return rows, classes, shares[rows, classes]
