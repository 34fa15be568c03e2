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
from structent.metrics.distance import class_distances
from structent.structure import RandomPartition, SpanningTreePartitions
from structent.studies.levels import edges_between

_SMOOTHING = 0.1
# Copies of a row with less weight than this are left out.
_LEAST_SHARE = 1e-4


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

    .. math:: \sum_i \left( \log \sum_c e^{z_{ic}} - \sum_c q_{ic} z_{ic} \right)
        + \frac{1}{2C} \sum_{jc} W_{jc}^2, \qquad z_i = x_i W + b

    Parameters
    ----------
    features
        The features, (n, features).
    distributions
        The distribution of each row, (n, classes).
    classes
        The classes, sorted.
    penalty
        C.
    start
        A model to start from; if None, all weights are 0.
    """
    x, q = features.astype(np.float64), distributions
    shape = (x.shape[1] + 1, len(classes))

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        weights = parameters.reshape(shape)
        logits = x @ weights[:-1] + weights[-1]
        normaliser = logsumexp(logits, axis=1, keepdims=True)
        residual = np.exp(logits - normaliser) - q
        gradient = np.vstack(
            [x.T @ residual + weights[:-1] / penalty, residual.sum(axis=0, keepdims=True)]
        )
        loss = normaliser.sum() - (q * logits).sum() + (weights[:-1] ** 2).sum() / (2 * penalty)
        return float(loss), gradient.ravel()

    found = minimize(
        objective, np.zeros(shape).ravel() if start is None else start.weights.ravel(), jac=True,
        method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-9, "gtol": 1e-6},
    )  # fmt: skip
    return SoftLabelModel(classes, found.x.reshape(shape))


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
