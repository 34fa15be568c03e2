"""Structures drawn as matrices, and how similar their classes are."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent import FixedStructure, Partition, RandomPartition, SpanningTreePartitions, hierarchy
from structent.plots import plot_similarity, structure_order
from structent.structure import catalog
from tests.plots.drawn import drawn

CROSSED = RandomPartition([Partition(range(4), [0, 1, 0, 1]), Partition(range(4), [0, 0, 1, 1])])


def test_any_other_structure_is_the_weight_that_keeps_classes_together():
    image = drawn(CROSSED).get_images()[0]
    expected = [
        [1.0, 0.5, 0.5, 0.0],
        [0.5, 1.0, 0.0, 0.5],
        [0.5, 0.0, 1.0, 0.5],
        [0.0, 0.5, 0.5, 1.0],
    ]
    np.testing.assert_array_equal(image.get_array(), expected)


def plotted(structure, **options):
    figure = Figure(figsize=(7, 7))
    ax = plot_similarity(structure, figure.add_subplot(), **options)
    figure.draw_without_rendering()
    return ax


@pytest.mark.parametrize(
    "structure",
    [
        catalog.months(),
        catalog.cifar100(),
        FixedStructure(catalog.months()),
        SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
    ],
)
def test_a_cell_is_the_similarity_of_two_classes_in_the_order_of_the_structure(structure):
    shown, order = plotted(structure).get_images()[0].get_array(), structure_order(structure)
    np.testing.assert_array_equal(shown, structure.similarity()[np.ix_(order, order)])


def test_the_similarity_of_a_sampler_takes_the_draws_that_are_asked_for():
    counties = SpanningTreePartitions(catalog.california_counties(), 10, 0.0)
    shown = plotted(counties, n_draws=1).get_images()[0].get_array()
    assert set(np.unique(shown)) == {0.0, 1.0}


def test_few_classes_are_named_and_of_many_the_blocks():
    plants = hierarchy({"oak": ("tree",), "rose": ("flower",), "maple": ("tree",)})
    few, many = (
        [label.get_text() for label in plotted(structure).get_yticklabels()]
        for structure in (plants, catalog.cifar100())
    )
    assert few == ["oak", "maple", "rose"]
    assert len(many) == 20
    assert "fish" in many
