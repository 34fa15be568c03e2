"""Reliability diagrams."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent.metrics import calibration_error
from structent.plots import plot_reliability, reliability
from structent.structure import catalog


@pytest.mark.parametrize("level", ["supercategory", "category", "superclass", "class"])
@pytest.mark.parametrize("n_rows", [5, 150, 1500])
def test_the_mean_gap_of_the_bins_is_the_calibration_error(level, n_rows):
    rng = np.random.default_rng(0)
    structure = catalog.cifar100()
    labels, proba = rng.integers(100, size=n_rows), rng.dirichlet(np.full(100, 0.1), size=n_rows)
    names = [structure.classes[label] for label in labels]
    bins = reliability(names, proba, structure, level)
    assert len(bins.hits) == min(n_rows, 15)
    expected = calibration_error(names, proba, structure, level=level)
    # Bins of equal numbers of rows, so that their plain mean is the mean over the rows.
    np.testing.assert_allclose(np.abs(bins.confidence - bins.hits).mean(), expected, rtol=1e-12)


def test_the_bins_of_a_level_are_the_means_over_its_partitions():
    rng = np.random.default_rng(1)
    structure = catalog.months()
    labels, proba = rng.integers(12, size=90), rng.dirichlet(np.ones(12), size=90)
    expected = np.zeros((2, 15))
    for partition in structure.levels["width 3"]:
        coarse = np.stack([proba[:, partition.block_of == b].sum(axis=1) for b in range(4)], axis=1)
        confidence, hit = coarse.max(axis=1), coarse.argmax(axis=1) == partition.block_of[labels]
        order = np.argsort(confidence)
        expected += [
            confidence[order].reshape(15, 6).mean(axis=1) / 3,
            hit[order].reshape(15, 6).mean(axis=1) / 3,
        ]
    months = labels + 1
    np.testing.assert_allclose(
        reliability(months, proba, structure, "width 3"), expected, rtol=1e-12
    )


def test_a_second_call_adds_a_second_model_to_the_legend():
    rng = np.random.default_rng(1)
    months, proba = rng.integers(1, 13, size=90), rng.dirichlet(np.ones(12), size=90)
    ax = Figure().add_subplot()
    for name in ("first", "second"):
        plot_reliability(months, proba, catalog.months(), "class", ax, name=name)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first", "second"]
    assert len(ax.lines) == 3  # and the line on which a model is right as often as it says
