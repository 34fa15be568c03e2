"""Drawings of structures, by their kind."""

import subprocess
import sys

import pytest

from structent import (
    FixedStructure,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    ordinal,
    trivial,
)
from structent.plots import drawing_of
from structent.structure import catalog
from tests.plots.drawn import drawn

CROSSED = RandomPartition([Partition(range(4), [0, 1, 0, 1]), Partition(range(4), [0, 0, 1, 1])])


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


@pytest.mark.parametrize(
    ("structure", "counted"),
    [
        (trivial(["a"]), "A tree of 1 class;"),
        (SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5), "2 classes and 1 edge between"),
        (SpanningTreePartitions(LabelGraph([("a", "b")]), 1, 0.5), "into 1 connected block."),
    ],
)
def test_one_thing_is_not_called_many(structure, counted):
    assert counted in drawing_of(structure).summary


def test_structures_are_drawn_without_scikit_learn():
    code = "import sys; sys.modules['sklearn'] = None; import structent.plots"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("structure", [catalog.months(), catalog.cifar100(), ordinal(["$a$", "b"])])
def test_names_are_never_taken_for_mathematics(structure):
    renamed = structure.relabel({c: f"${c}$ \\frac" for c in structure.classes})
    drawn(renamed)  # bad mathematics raises
