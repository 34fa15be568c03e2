"""Confusion matrices in the order of a structure."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent import (
    FixedStructure,
    LabelError,
    SpanningTreePartitions,
    StructureError,
    hierarchy,
    ordinal,
    trivial,
)
from structent.plots import plot_confusion, structure_order
from structent.structure import catalog


def plotted(structure, n_rows=400, size=(7, 7)):
    rng = np.random.default_rng(0)
    k = len(structure.classes)
    labels, proba = rng.integers(k, size=n_rows), rng.dirichlet(np.ones(k), size=n_rows)
    figure = Figure(figsize=size)
    names = [structure.classes[label] for label in labels]
    ax = plot_confusion(names, proba, structure, figure.add_subplot(), classes=structure.classes)
    figure.draw_without_rendering()
    return labels, proba, ax


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize(
    "structure",
    [
        catalog.months(),
        catalog.cifar100(),
        SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
        FixedStructure(catalog.months()),
    ],
)
def test_a_cell_is_the_share_of_the_true_class_that_the_model_gave_to_another(structure):
    labels, proba, ax = plotted(structure)
    shown, order = ax.get_images()[0].get_array(), structure_order(structure)
    for row, true in enumerate(order):
        predicted = proba[labels == true].argmax(axis=1)
        for column, other in enumerate(order):
            if len(predicted):
                assert shown[row, column] == pytest.approx(np.mean(predicted == other), rel=1e-12)
            else:
                assert shown.mask[row, column]


def test_few_classes_are_all_named_in_the_order_of_the_structure():
    plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    assert names(plotted(plants)[2]) == ["oak", "maple", "rose"]


def test_of_many_classes_the_blocks_are_named():
    shown = names(plotted(catalog.cifar100())[2])
    assert len(shown) == 20
    assert {"fish", "people", "reptiles"} <= set(shown)


def test_of_many_classes_without_blocks_some_are_named():
    shown = names(plotted(trivial(range(500)), n_rows=1000)[2])
    assert shown[0] == "0"
    assert 10 <= len(shown) <= 100


def test_a_line_goes_round_each_block():
    plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    (line,) = plotted(plants)[2].lines
    ends = {tuple(point) for point in line.get_xydata() if np.isfinite(point).all()}
    # Two trees, one flower: both blocks meet at the corner of the second cell, (1.5, 1.5).
    assert ends == {(1.5, y) for y in (-0.5, 0.5, 1.5, 2.5)} | {
        (x, 1.5) for x in (-0.5, 0.5, 1.5, 2.5)
    }


def test_the_cuts_of_an_order_are_not_outlined():
    assert len(plotted(ordinal(range(7)))[2].lines) == 0


def test_labels_that_do_not_fit_are_refused():
    ax, plants = Figure().add_subplot(), trivial(["oak", "rose"])
    with pytest.raises(LabelError, match="0 is not a class of the structure"):
        plot_confusion([0], [[1.0, 0.0]], plants, ax)
    with pytest.raises(StructureError, match="y_true has 2 rows but proba has 1"):
        plot_confusion(["oak", "rose"], [[1.0, 0.0]], plants, ax)
    with pytest.raises(StructureError, match="there must be at least one row, got none"):
        plot_confusion([], np.empty((0, 2)), plants, ax)
