"""Drawings of structures, by their kind."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent import (
    FixedStructure,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    ordinal,
    trivial,
)
from structent.plots import draw_structure, drawing_of
from structent.structure import catalog

CROSSED = RandomPartition([Partition(range(4), [0, 1, 0, 1]), Partition(range(4), [0, 0, 1, 1])])


def drawn(structure, size=None):
    figure = Figure(figsize=size or drawing_of(structure).size)
    ax = figure.add_axes((0.02, 0.02, 0.96, 0.9))
    assert draw_structure(structure, ax) is ax
    figure.draw_without_rendering()
    return ax


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("structure", "kind"),
    [
        (catalog.cifar100(), "A tree of 100 classes"),
        (trivial(["a", "b"]), "A tree of 2 classes"),
        (catalog.months(), "A circle of 12 classes"),
        (ordinal(range(7)), "A scale of 7 classes from 0 to 6"),
        (SpanningTreePartitions(catalog.us_states(), 5, 0.3), "A graph of 49 classes"),
        (CROSSED, "A matrix of 4 classes"),
        (FixedStructure(catalog.months()), "A circle of 12 classes"),
    ],
)
def test_a_structure_is_drawn_by_its_kind(structure, kind):
    assert drawing_of(structure).summary.startswith(kind)


class FirstHalves:
    classes = tuple(range(4))

    def sample(self, iteration):
        return ordinal(range(4)) if iteration == 0 else trivial(range(4))


def test_of_a_sampler_without_a_graph_the_first_draw_is_shown():
    assert drawing_of(FirstHalves()).summary.startswith("A scale of 4 classes")


def test_what_is_no_structure_is_refused():
    with pytest.raises(StructureError, match="must be a RandomPartition or a sampler, got list"):
        drawing_of([["a"], ["b"]])


def test_every_class_of_cifar_is_named_in_its_tree():
    names = set(texts(drawn(catalog.cifar100())))
    assert set(catalog.cifar100().classes) <= names
    assert {"animals", "fish"} <= names


def test_names_in_a_tree_do_not_overlap():
    figure = Figure(figsize=drawing_of(catalog.cifar100()).size)
    ax = draw_structure(catalog.cifar100(), figure.add_axes((0.01, 0.01, 0.98, 0.9)))
    figure.draw_without_rendering()
    boxes = sorted((t.get_window_extent() for t in ax.texts), key=lambda b: (b.x0, b.y0))
    overlaps = [
        1
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if a.shrunk(0.9, 0.8).overlaps(b.shrunk(0.9, 0.8))
    ]
    assert overlaps == []


def test_a_class_whose_path_ends_early_is_drawn_once():
    animals = hierarchy(
        {"cat": ("animal", "mammal"), "dog": ("animal", "mammal"), "trout": ("fish",)}
    )
    assert texts(drawn(animals)) == ["animal", "mammal", "cat", "dog", "trout"]


def test_a_tree_without_room_shows_its_first_levels_and_says_so():
    ax = drawn(catalog.cifar100(), size=(4, 3))
    assert ax.get_title("right") == "the first 2 of 4 levels"
    assert "animals" in texts(ax)
    assert "oak_tree" not in texts(ax)


def test_a_list_without_room_shows_its_first_rows_and_says_so():
    ax = drawn(trivial(range(5000)), size=(4, 3))
    shown = len(ax.texts)
    assert ax.get_title("right") == f"the first {shown} of 5000 rows"
    assert 10 <= shown < 1000


def test_a_circle_has_one_arc_for_each_block():
    ax = drawn(catalog.months())
    arcs = [line for line in ax.lines if line.get_linewidth() == 6]
    assert len(arcs) == 3 * 4
    assert texts(ax) == [str(month) for month in range(1, 13)]


def test_a_circle_of_many_partitions_says_how_many_are_shown():
    assert "8 of 24\npartitions" in texts(drawn(circular(range(24), width=5)))


def test_a_scale_has_a_bar_as_long_as_the_weight_of_each_threshold():
    ax = drawn(ordinal(range(7), singleton_weight=0.4))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.1] * 6, rtol=1e-12)


def test_any_other_structure_is_the_weight_that_keeps_classes_together():
    image = drawn(CROSSED).get_images()[0]
    expected = [
        [1.0, 0.5, 0.5, 0.0],
        [0.5, 1.0, 0.0, 0.5],
        [0.5, 0.0, 1.0, 0.5],
        [0.0, 0.5, 0.5, 1.0],
    ]
    np.testing.assert_array_equal(image.get_array(), expected)


@pytest.mark.parametrize("structure", [catalog.months(), catalog.cifar100(), ordinal(["$a$", "b"])])
def test_names_are_never_taken_for_mathematics(structure):
    renamed = structure.relabel({c: f"${c}$ \\frac" for c in structure.classes})
    drawn(renamed)  # bad mathematics raises


def test_a_graph_names_every_county():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    assert set(texts(drawn(sampler))) == set(sampler.classes)


def test_a_graph_without_room_says_how_many_names_are_left_out():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    ax = drawn(sampler, size=(3, 3))
    n_left_out = 58 - len(ax.texts)
    assert n_left_out > 0
    assert f"{n_left_out} names left out" in ax.get_title("left")


def test_a_graph_of_two_classes_can_be_drawn():
    assert texts(drawn(SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5))) == ["a", "b"]
