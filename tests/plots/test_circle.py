"""Circular structures drawn as rings."""

from structent import circular
from structent.structure import catalog
from tests.plots.drawn import drawn, texts


def test_a_circle_has_one_arc_for_each_block():
    ax = drawn(catalog.months())
    arcs = [line for line in ax.lines if line.get_linewidth() == 6]
    assert len(arcs) == 3 * 4
    assert texts(ax) == [str(month) for month in range(1, 13)]


def test_a_circle_of_many_partitions_says_how_many_are_shown():
    assert "8 of 24\npartitions" in texts(drawn(circular(range(24), width=5)))
