"""How far apart classes are: told by what a model confuses, or by embeddings of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

from structent._checks import as_array
from structent._typing import FloatArray, Label
from structent.errors import StructureError
from structent.structure.labels import as_classes, class_indices, plain_values


def distances_from_confusion(confusion: ArrayLike) -> FloatArray:
    r"""Return how far apart classes are, by how often they are confused.

    With :math:`q_{ab}` the share of the rows of class a that are taken for b, and :math:`c_b` its
    mean over all classes a, which is what a model that knows nothing would give,

    .. math:: D_{ab} = \log K - \log \tfrac12 (q_{ab} / c_b + q_{ba} / c_a)

    for K classes: 0 where all that is taken for one is the other, log K where two classes are
    confused as often as by chance, and more where they are confused less. Shares correct for
    classes with more rows, chance for classes that are predicted more often.

    A confusion that never occurs counts as half the rarest that does (its logarithm would be
    infinite). Where nothing is confused, all classes are equally far apart.

    Parameters
    ----------
    confusion
        ``confusion[true, predicted]``, (classes, classes): how often rows of a class are taken for
        another, or, which tells more, the mean of the probabilities that they are given. Every
        class must have rows.

    Examples
    --------
    >>> takes_oak_for_ash = [[6, 4, 0], [4, 6, 0], [1, 1, 18]]
    >>> distances_from_confusion(takes_oak_for_ash).round(2).tolist()
    [[0.0, 0.97, 3.74], [0.97, 0.0, 3.74], [3.74, 3.74, 0.0]]
    """
    counts = _checked_confusion(confusion)
    shares = counts / counts.sum(axis=1, keepdims=True)
    by_chance = shares.mean(axis=0)
    # A class that is never predicted tells nothing by its column: it is at chance.
    lift = np.divide(shares, by_chance, out=np.ones_like(shares), where=by_chance > 0)
    likeness = (lift + lift.T) / 2
    apart = ~np.eye(len(likeness), dtype=bool)
    seen = likeness[apart & (likeness > 0)]
    likeness = np.maximum(likeness, seen.min() / 2 if len(seen) else 1.0)
    distances: FloatArray = np.where(apart, np.log(len(likeness)) - np.log(likeness), 0.0)
    return np.maximum(distances, 0.0)  # rounding alone can put a logarithm below 0


def distances_from_embeddings(
    embeddings: ArrayLike, labels: ArrayLike | Sequence[Any]
) -> tuple[FloatArray, tuple[Label, ...]]:
    r"""Return how far apart the means of the classes are, and the classes, sorted.

    Means of few rows differ by chance. What they differ by on average, the trace of the pooled
    covariance within classes times :math:`1/n_a + 1/n_b`, is taken off the squared distance, which
    is not let below 0. With one row a class (vectors of words, say) nothing is taken off.

    Parameters
    ----------
    embeddings
        One row a label, (n, dimensions), scaled alike.
    labels
        The class of each row, (n,).

    Examples
    --------
    >>> distances, classes = distances_from_embeddings([[0.0, 0], [3, 4]], ["oak", "ash"])
    >>> classes, distances.tolist()
    (('ash', 'oak'), [[0.0, 5.0], [5.0, 0.0]])
    """
    points = _checked_numbers(embeddings, "embeddings")
    values = plain_values(labels)
    if len(values) != len(points) or len(points) == 0:
        raise StructureError(
            f"embeddings must have one row for each label, got {len(points)} rows and "
            f"{len(values)} labels"
        )
    classes = as_classes(_sorted_if_possible(set(values)))
    codes = class_indices(values, classes)
    counts = np.bincount(codes).astype(np.float64)
    means = np.zeros((len(classes), points.shape[1]))
    np.add.at(means, codes, points)
    means /= counts[:, None]
    within = float(((points - means[codes]) ** 2).sum())
    spread = within / max(len(points) - len(classes), 1)  # the trace of the pooled covariance
    by_chance = spread * (1 / counts[:, None] + 1 / counts)
    squared = squareform(pdist(means, "sqeuclidean")) - by_chance
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(np.maximum(squared, 0.0)), classes


def checked_distances(distances: ArrayLike, n_classes: int) -> FloatArray:
    """Return distances that are symmetric, none negative, 0 from each class to itself."""
    checked = _checked_square(distances, "distances")
    if len(checked) != n_classes:
        raise StructureError(
            f"distances must have one row for each of the {n_classes} classes, got {len(checked)}"
        )
    if not np.allclose(checked, checked.T):
        raise StructureError(
            "distances must be symmetric, got others from a to b than from b to a; "
            "(D + D.T) / 2 makes them so"
        )
    if not np.allclose(np.diagonal(checked), 0.0):
        raise StructureError("distances must be 0 from a class to itself, got others")
    return (checked + checked.T) / 2


def _checked_confusion(confusion: ArrayLike) -> FloatArray:
    checked = _checked_square(confusion, "confusion")
    empty = np.flatnonzero(checked.sum(axis=1) == 0)
    if len(empty):
        raise StructureError(
            f"confusion must have rows of every class, got none in row {empty[0]}; "
            "leave out classes without rows"
        )
    return checked


def _checked_square(values: ArrayLike, name: str) -> FloatArray:
    checked = _checked_numbers(values, name)
    if checked.shape[0] != checked.shape[1] or len(checked) == 0:
        raise StructureError(
            f"{name} must have one row and one column a class, got shape {checked.shape}"
        )
    if (checked < 0).any():
        raise StructureError(f"{name} must not be negative, got {checked.min():g}")
    return checked


def _checked_numbers(values: ArrayLike, name: str) -> FloatArray:
    checked = as_array(values, name)
    if checked.dtype.kind not in "fiub" or checked.ndim != 2:
        raise StructureError(
            f"{name} must be numbers on two axes, got {checked.dtype} of shape {checked.shape}"
        )
    numbers = checked.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise StructureError(f"{name} must be finite numbers, got NaN or infinity")
    return numbers


def _sorted_if_possible(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # str and int have no order among each other
        return sorted(values, key=lambda value: (type(value).__name__, value))
