"""Hierarchies drawn as trees."""

from matplotlib.figure import Figure

from structent import hierarchy, trivial
from structent.plots import draw_structure, drawing_of
from structent.structure import catalog
from tests.plots.drawn import drawn, texts


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
