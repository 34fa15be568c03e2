"""The plot of paired differences."""

import numpy as np
from matplotlib.figure import Figure

from structent.plots import plot_differences
from structent.structure import catalog
from tests.comparison.made import made_comparison


def test_every_fold_the_mean_and_the_interval_are_drawn_beside_zero():
    comparison = made_comparison(catalog.months())
    ax = plot_differences(comparison, Figure().add_subplot())
    drawn = [line.get_xdata() for line in ax.lines]
    zero, *rest = drawn
    assert list(zero) == [0.0, 0.0]
    for found, lines in zip(
        (comparison.against_scrambled, comparison.against_none), (rest[:3], rest[3:]), strict=True
    ):
        folds, interval, mean = lines
        np.testing.assert_array_equal(folds, found.per_fold)
        assert list(interval) == [found.low, found.high]
        assert list(mean) == [found.mean]
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "against\nscrambled copies",
        "against\nno structure",
    ]
    assert "nats a row" in ax.get_xlabel()
