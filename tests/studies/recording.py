"""A classifier that writes down which rows it was trained on, and which it predicted."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from structent import RandomPartition


@dataclass
class Fit:
    structure: RandomPartition
    trained_on: set[int]
    predicted: set[int] = field(default_factory=set)


FITS: list[Fit] = []  # of all instances: clones share nothing else


class RecordingClassifier(ClassifierMixin, BaseEstimator):
    """Nearest class means; the first column of X is the number of the row."""

    def __init__(self, structure=None, weights=None):
        self.structure = structure
        self.weights = weights

    def fit(self, X, y):
        self.classes_ = np.array(self.structure.classes)
        rest = X[:, 1:]
        # A class without rows is far from all others.
        self.means_ = np.array(
            [rest[y == c].mean(axis=0) if (y == c).any() else rest[0] + 99 for c in self.classes_]
        )
        self.fit_ = Fit(self.structure, set(X[:, 0].astype(int).tolist()))
        FITS.append(self.fit_)
        return self

    def predict_proba(self, X):
        self.fit_.predicted |= set(X[:, 0].astype(int).tolist())
        squared = ((X[:, None, 1:] - self.means_) ** 2).sum(axis=2)
        return softmax(-squared / 2, axis=1)


def fits_of(learn):
    """Call ``learn``, and return the fits that it made, with what it returned."""
    FITS.clear()
    returned = learn()
    return list(FITS), returned
