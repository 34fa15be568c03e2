"""The plot of a learning curve."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent.studies.comparison import LearningCurve
from structent.plots import plot_learning_curve

CURVE = LearningCurve(
    (100, 1000), np.array([[2.0, 2.2], [1.0, 1.4]]), np.array([[1.9, 1.9], [0.9, 0.9]])
)


def test_means_are_drawn_at_the_numbers_of_rows():
    ax = plot_learning_curve(CURVE, Figure().add_subplot())
    points = [bars.lines[0].get_xydata().tolist() for bars in ax.containers]
    assert points == [
        [[100, pytest.approx(2.1)], [1000, pytest.approx(1.2)]],
        [[100, 1.9], [1000, 0.9]],
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["100", "1,000"]


def test_bars_are_standard_errors():
    ax = plot_learning_curve(CURVE, Figure().add_subplot())
    (bar, _) = ax.containers[0].lines[2][0].get_segments()
    # Two folds, 2.0 and 2.2: a standard deviation of .2 / sqrt(2), so an error of .1.
    np.testing.assert_allclose(bar[:, 1], [2.0, 2.2], rtol=1e-12)


def test_one_fold_has_no_error():
    one = LearningCurve((100,), np.array([[2.0]]), np.array([[1.9]]))
    ax = plot_learning_curve(one, Figure().add_subplot())
    assert not ax.containers[0].has_yerr
