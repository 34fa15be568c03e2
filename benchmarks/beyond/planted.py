"""Classes planted in nested blocks: centres of blocks within blocks, and how well one can do."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax


@dataclass(frozen=True, eq=False)
class Planted:
    """Gaussian classes: their centres, (classes, dimensions), and the planted partitions."""

    centres: np.ndarray
    partitions: list[np.ndarray]

    @classmethod
    def of(cls, shape, separations, rng, *, n_dimensions=20):
        """Return ``shape[0]`` blocks of ``shape[1]`` blocks ..., apart by the separations."""
        counts = np.cumprod(shape)
        block_of = [np.arange(counts[-1]) // (counts[-1] // count) for count in counts]
        centres = sum(
            separation * rng.normal(size=(count, n_dimensions))[blocks]
            for separation, count, blocks in zip(separations, counts, block_of, strict=True)
        )
        return cls(centres, block_of[:-1])

    def rows(self, n_a_class, rng):
        """Return features and labels, the same number of rows for each class."""
        labels = np.repeat(np.arange(len(self.centres)), n_a_class)
        return self.centres[labels] + rng.normal(size=(len(labels), self.centres.shape[1])), labels

    def bayes_accuracies(self, rng, n_a_class=200):
        """Return the accuracy of the best possible answer at each planted partition."""
        features, labels = self.rows(n_a_class, rng)
        logits = features @ self.centres.T - (self.centres**2).sum(axis=1) / 2
        proba = softmax(logits, axis=1)
        accuracies = []
        for block_of in self.partitions:
            of_block = proba @ np.eye(block_of.max() + 1)[block_of]
            accuracies.append(float((of_block.argmax(axis=1) == block_of[labels]).mean()))
        return accuracies
