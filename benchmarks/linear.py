"""The linear model on embeddings, beside scikit-learn's ``LogisticRegression``."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import interleaved_medians
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure import RandomPartition
from structent.structure.catalog import cifar100

TITLE = "The linear model on 1,280 features of 5,000 rows, until converged"


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield case, structent's time, scikit-learn's time, and the ratio with its target."""
    yield _row("CIFAR-100 hierarchy, float64", cifar100(), np.float64, "at most 1.5")
    yield _row("CIFAR-100 hierarchy, float32", cifar100(), np.float32, "no target")
    yield _row("no structure, float64", None, np.float64, "no target")


def _row(
    case: str, structure: RandomPartition | None, dtype: type, target: str
) -> tuple[str, str, str, str]:
    X, y = _embeddings(dtype)
    ours = StructuredLogisticRegression(structure)
    peer = LogisticRegression(max_iter=200)
    seconds = interleaved_medians(
        {"ours": lambda: ours.fit(X, y), "peer": lambda: peer.fit(X, y)}, rounds=3
    )
    return (
        case,
        f"{seconds['ours']:.2f} s ({ours.n_iter_} iterations)",
        f"{seconds['peer']:.2f} s ({peer.n_iter_[0]} iterations)",
        f"{seconds['ours'] / seconds['peer']:.2f} ({target})",
    )


def _embeddings(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return rows about the centres of their classes, which lie about those of the superclasses."""
    structure = cifar100()
    rng = np.random.default_rng(0)
    superclass = structure.levels["superclass"][0]
    centres = 0.5 * rng.normal(size=(superclass.n_blocks, 1280))[superclass.block_of]
    centres += 0.5 * rng.normal(size=centres.shape)
    labels = rng.integers(structure.n_classes, size=5000)
    X = centres[labels] + 4.0 * rng.normal(size=(len(labels), 1280))
    return X.astype(dtype), np.array(structure.classes)[labels]
