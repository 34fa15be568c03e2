"""Logits and labels for tests of the loss, harmless and extreme."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.strategies import random_partitions


@st.composite
def problems(draw, max_rows=4, largest=8.0):
    """A structure, logits and labels."""
    structure = draw(random_partitions())
    n = draw(st.integers(1, max_rows))
    k = structure.n_classes
    logits = draw(arrays(np.float64, (n, k), elements=st.floats(-largest, largest)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, k - 1)))
    return structure, logits, labels


def _noise(k, n=6):
    rng = np.random.default_rng(k)
    return rng.normal(size=(n, k)), rng.integers(k, size=n)


def _plus_minus(size):
    def case(k):
        logits, labels = _noise(k)
        return np.where(logits > 0, size, -size) + logits, labels

    return case


def _wrong_class_at(size):
    def case(k):
        logits, labels = _noise(k)
        wrong = (labels + k // 2 + 1) % k
        logits[np.arange(len(labels)), wrong] = size
        return logits, labels

    return case


def _masked(k):
    """Logits of -inf, as of classes that a mask rules out, but never for the true class."""
    logits, labels = _noise(k)
    logits[logits < 0] = -np.inf
    logits[np.arange(len(labels)), labels] = -3.0
    return logits, labels


EXTREME_LOGITS = {
    "+-1e4": _plus_minus(1e4),
    "+-1e30": _plus_minus(1e30),
    "a wrong class at +300": _wrong_class_at(300.0),
    "a wrong class at +88": _wrong_class_at(88.0),
    "the denormal zone": _wrong_class_at(103.0),
    "the denormal zone of float64": _wrong_class_at(740.0),
    "masked classes": _masked,
}
