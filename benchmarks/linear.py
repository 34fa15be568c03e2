"""The linear model on embeddings, compared with scikit-learn's; its prior with plain ridge."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import interleaved_medians, ratio
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure import RandomPartition
from structent.structure.catalog import cifar100

TITLE = "The linear model on 1,280 features of 5,000 rows, until converged"
MISSES = """Why a goal is missed: a prior with little weight on the singletons makes the problem
worse conditioned, so that it takes more iterations. An iteration takes as long as one of ridge."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield case, structent's time, scikit-learn's time, and the ratio with its goal."""
    yield _row("CIFAR-100 hierarchy, float64", cifar100(), np.float64, 1.5)
    yield _row("CIFAR-100 hierarchy, float32", cifar100(), np.float32, 1.5)
    yield _row("no structure, float64", None, np.float64, 1.0)
    yield _prior_row("plain loss, prior 0.6 against ridge", 1.0, 0.6, 1.3)
    # With the same C, this prior penalises a class's own part five times as much as ridge does.
    yield _prior_row("plain loss, prior 0.2 against ridge", 1.0, 0.2, 1.5)
    yield _prior_row("structured loss, prior 0.6 against ridge", None, 0.6, 1.3)


def _row(
    case: str, structure: RandomPartition | None, dtype: type, at_most: float
) -> tuple[str, str, str, str]:
    features, labels = _embeddings(dtype)
    ours = StructuredLogisticRegression(structure)
    peer = LogisticRegression(max_iter=200)
    return _compared(case, ours, peer, features, labels, at_most)


def _prior_row(
    case: str, weights: float | None, prior: float, at_most: float
) -> tuple[str, str, str, str]:
    """Compare a model that has a prior with the same model without it."""
    features, labels = _embeddings(np.float64)
    ours = StructuredLogisticRegression(cifar100(), weights=weights, prior=prior)
    peer = StructuredLogisticRegression(cifar100(), weights=weights)
    return _compared(case, ours, peer, features, labels, at_most)


def _compared(
    case: str, ours: Any, peer: Any, features: np.ndarray, labels: np.ndarray, at_most: float
) -> tuple[str, str, str, str]:
    seconds = interleaved_medians(
        {"ours": lambda: ours.fit(features, labels), "peer": lambda: peer.fit(features, labels)},
        rounds=3,
    )
    return (
        case,
        f"{seconds['ours']:.2f} s ({np.max(ours.n_iter_)} iterations)",
        f"{seconds['peer']:.2f} s ({np.max(peer.n_iter_)} iterations)",
        ratio(seconds["ours"], seconds["peer"], at_most),
    )


def _embeddings(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return features like those of a network's last layer: non-negative, correlated, overlapping.

    Two thirds of such rows are classified correctly, so the fit is neither trivial nor hopeless.
    """
    structure, n, d = cifar100(), 5000, 1280
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(structure.n_classes, d))
    for level in ("category", "superclass"):
        partition = structure.levels[level][0]
        centres += rng.normal(size=(partition.n_blocks, d))[partition.block_of]
    labels = rng.integers(structure.n_classes, size=n)
    spectrum = np.arange(1, d + 1) ** -0.5
    latent = (0.15 * centres[labels] + rng.normal(size=(n, d))) * spectrum * 12.0
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    features = np.maximum(latent @ rotation, 0.0)
    return features.astype(dtype), np.array(structure.classes)[labels]
