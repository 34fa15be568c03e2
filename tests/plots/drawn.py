"""Structures drawn into axes of the right size, and the names in them."""

from matplotlib.figure import Figure

from structent.plots import draw_structure, drawing_of


def drawn(structure, size=None):
    figure = Figure(figsize=size or drawing_of(structure).size)
    ax = figure.add_axes((0.02, 0.02, 0.96, 0.9))
    assert draw_structure(structure, ax) is ax
    figure.draw_without_rendering()
    return ax


def texts(ax):
    return [text.get_text() for text in ax.texts]
