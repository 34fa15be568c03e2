"""Structures to files: what is written is read as the same structure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    circular,
    hierarchy,
    trivial,
)
from structent.inputs import parse_structure, write_structure
from tests.strategies import random_partitions

CLASSES = ["oak", "elm", "rose", "cat"]
text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4)


@given(random_partitions())
def test_json_keeps_everything(tmp_path_factory, structure):
    path = tmp_path_factory.mktemp("json") / "s.json"
    write_structure(structure, path)
    assert parse_structure(str(path), structure.classes).structure == structure


@st.composite
def hierarchies(draw):
    """Hierarchies that have a level between one group for all and one for each class."""
    classes = draw(st.lists(text, min_size=3, max_size=8, unique=True))
    groups = st.lists(st.sampled_from("ABC"), min_size=2, max_size=2)
    drawn = {label: draw(groups) for label in classes}
    drawn[classes[0]], drawn[classes[1]], drawn[classes[2]] = ["A", "A"], ["A", "A"], ["B", "A"]
    # Behind a mark no class has: a group named as a class could be that class's parent.
    return hierarchy({label: tuple(f"group {g}" for g in path) for label, path in drawn.items()})


@given(hierarchies())
def test_a_hierarchy_comes_back_from_its_table(tmp_path_factory, structure):
    path = tmp_path_factory.mktemp("csv") / "s.csv"
    write_structure(structure, path)
    again = parse_structure(str(path), structure.classes).structure
    # A level that says nothing is left out, and two that say the same are one order or the other.
    kept = [p for p in structure.partitions if 1 < p.n_blocks < structure.n_classes]
    assert again.classes == structure.classes
    assert list(again.partitions[:-1]) == kept
    assert again.partitions[-1].is_singletons


def test_a_class_without_groups_comes_back_as_its_own(tmp_path):
    ragged = hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ()})
    write_structure(ragged, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text() == "class,level 1\noak,tree\nelm,tree\nrose,rose\n"
    again = parse_structure(str(tmp_path / "s.csv"), ragged.classes).structure
    assert again.partitions == ragged.partitions


@pytest.mark.parametrize(
    "structure",
    [
        circular(CLASSES, width=2),
        SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5),
        trivial(CLASSES),
        hierarchy({("a", 1): ("x",), ("b", 2): ("x",), ("c", 3): ("y",)}),
        hierarchy({"": ("x",), "b": ("x",), "c": ("y",)}),
    ],
    ids=["circle", "sampler", "trivial", "pairs", "empty name"],
)
def test_a_table_holds_hierarchies_of_plain_names_alone(structure, tmp_path):
    with pytest.raises(StructentError, match=r"a \.csv file holds .* to a \.json file"):
        write_structure(structure, tmp_path / "s.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(StructentError, match="cannot be written: No such file or directory"):
        write_structure(trivial(CLASSES), tmp_path / "no" / "s.json")
    with pytest.raises(StructentError, match=r"to a \.json or \.csv file, got s\.nwk"):
        write_structure(trivial(CLASSES), "s.nwk")


def test_a_level_called_class_comes_back_from_its_table(tmp_path):
    paths = {"cat": ("mammal",), "dog": ("mammal",), "trout": ("fish",)}
    structure = hierarchy(paths, level_names=["class"])
    write_structure(structure, tmp_path / "animals.csv")
    found = parse_structure(str(tmp_path / "animals.csv"), structure.classes).structure
    assert found == structure
