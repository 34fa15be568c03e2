"""What is measured of a network, against the project's metrics in NumPy."""

import numpy as np
import pytest

from structent.experiments.cifar100.measures import Measures
from structent.structure import catalog
from tests.experiments.cifar100.by_numpy import measured

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 100, 300)
# Right often enough that no accuracy is 0 or 1.
LOGITS = (RNG.normal(size=(300, 100)) + 3 * np.eye(100)[LABELS]).astype(np.float32)


def test_measures_are_the_metrics_of_probabilities_and_of_the_likeliest_classes():
    values = Measures(catalog.cifar100()).of(LABELS, LOGITS)

    assert values == pytest.approx(measured(LABELS, LOGITS), abs=2e-5)


def test_no_measure_is_trivial_on_these_rows():
    accuracies = [measured(LABELS, LOGITS)[f"accuracy{level}"] for level in ("", " 2", " 3", " 4")]

    assert accuracies == sorted(accuracies)
    assert 0.1 < accuracies[0] < accuracies[3] < 0.99


def test_accuracy_of_a_level_is_that_of_the_likeliest_class_and_not_of_the_likeliest_block():
    structure = catalog.cifar100()
    trees = [structure.classes.index(tree) for tree in ("oak_tree", "maple_tree", "pine_tree")]
    logits = np.full((1, 100), -10.0, dtype=np.float32)
    logits[0, trees] = 2.0
    logits[0, structure.classes.index("rocket")] = 2.5
    values = Measures(structure).of(np.array(trees[:1]), logits)

    assert [values[f"accuracy{level}"] for level in ("", " 2", " 3", " 4")] == [0, 0, 0, 0]


def test_rows_that_were_measured_before_do_not_count():
    measures = Measures(catalog.cifar100())
    measures.of(LABELS[:100], LOGITS[:100])

    assert measures.of(LABELS, LOGITS) == Measures(catalog.cifar100()).of(LABELS, LOGITS)
