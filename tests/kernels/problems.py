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


@st.composite
def coarse_problems(draw):
    """A structure, logits, codes of classes and of sets, and the sets."""
    structure, logits, labels = draw(problems())
    k = structure.n_classes
    sets = draw(st.lists(st.sets(st.integers(0, k - 1), min_size=1), max_size=3))
    sets = [tuple(sorted(members)) for members in sets]
    codes = draw(arrays(np.int64, len(labels), elements=st.integers(0, k + len(sets) - 1)))
    return structure, logits, codes, sets


def members_of(sets, n_classes):
    """Which classes each code stands for, those of the classes first: (codes, classes)."""
    rows = [(c,) for c in range(n_classes)] + list(sets)
    return np.array([[c in members for c in range(n_classes)] for members in rows])


def some_sets(n_classes, labels):
    """Sets that hold the label of each row, and codes: a class, then two, three, all classes."""
    sizes = [1, min(2, n_classes), min(3, n_classes), n_classes]
    wanted = [
        tuple(sorted((y + step) % n_classes for step in range(sizes[i % 4])))
        for i, y in enumerate(labels.tolist())
    ]
    sets = sorted({members for members in wanted if len(members) > 1})
    code_of = {members: n_classes + s for s, members in enumerate(sets)}
    return sets, np.array([code_of.get(m, y) for m, y in zip(wanted, labels, strict=True)])


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
