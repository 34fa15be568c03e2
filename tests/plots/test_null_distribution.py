"""The plot of a null distribution."""

import numpy as np
from matplotlib.figure import Figure

from structent.plots import plot_null_distribution
from structent.structure import catalog
from tests.significance.made import made_test


def test_every_copy_the_structure_and_none_are_drawn():
    found = made_test(catalog.months())
    ax = plot_null_distribution(found, Figure().add_subplot())
    copies, structure, none = [line.get_xdata() for line in ax.lines]
    np.testing.assert_array_equal(copies, found.null_losses.mean(axis=1))
    assert list(structure) == [found.losses.mean()] * 2
    assert list(none) == [found.losses_without.mean()] * 2
    assert sum(bar.get_height() for bar in ax.patches) == 99


def test_the_legend_says_what_is_what():
    ax = plot_null_distribution(made_test(catalog.months()), Figure().add_subplot())
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "scrambled copies (99)" in names
    assert any(name.endswith("p = 0.01") for name in names)


def test_a_single_copy_can_be_drawn():
    found = made_test(catalog.months(), n_copies=1)
    assert plot_null_distribution(found, Figure().add_subplot()).patches
