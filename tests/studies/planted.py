"""Gaussian classes in blocks within blocks, and how often the best possible answer is right."""

from typing import NamedTuple

import numpy as np


class Planted(NamedTuple):
    """The centres of classes, (classes, dimensions), and the block of each class at every level."""

    centres: np.ndarray
    partitions: list[np.ndarray]

    @classmethod
    def of(cls, shape, separations, rng, *, n_dimensions=20):
        """Return ``shape[0]`` blocks of ``shape[1]`` blocks ..., apart by the separations."""
        centres = np.zeros((1, n_dimensions))
        parents = []
        for n_children, separation in zip(shape, separations, strict=True):
            parents = [np.repeat(each, n_children) for each in [*parents, np.arange(len(centres))]]
            centres = np.repeat(centres, n_children, axis=0)
            centres = centres + separation * rng.normal(size=centres.shape)
        return cls(centres, parents[1:])

    def rows(self, n_a_class, rng):
        """Return features and labels, the same number of rows for each class."""
        centres = np.repeat(self.centres, n_a_class, axis=0)
        return centres + rng.normal(size=centres.shape), np.arange(len(centres)) // n_a_class

    def bayes_accuracies(self, rng, n_a_class=200):
        """Return how often the most probable block is the true one, for each partition."""
        X, labels = self.rows(n_a_class, rng)
        density = np.exp(-((X[:, None] - self.centres) ** 2).sum(axis=2) / 2)  # (n, classes)
        blocks = [density @ (each[:, None] == np.unique(each)) for each in self.partitions]
        return [
            float(np.mean(of_block.argmax(axis=1) == each[labels]))
            for each, of_block in zip(self.partitions, blocks, strict=True)
        ]
