"""Circular structures: the paper's section 4.2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import StructureError, circular


def test_the_months_are_cut_as_in_the_paper():
    structure = circular(range(1, 13), width=3, singleton_weight=0.4)
    expected = [
        [{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}],
        [{2, 3, 4}, {5, 6, 7}, {8, 9, 10}, {11, 12, 1}],
        [{3, 4, 5}, {6, 7, 8}, {9, 10, 11}, {12, 1, 2}],
        [{month} for month in range(1, 13)],
    ]
    found = [set(map(frozenset, partition.blocks)) for partition in structure.partitions]
    assert found == [set(map(frozenset, blocks)) for blocks in expected]
    assert structure.weights.tolist() == pytest.approx([0.2, 0.2, 0.2, 0.4])


@given(st.integers(1, 15), st.data())
def test_every_rotation_is_there_once_and_cuts_the_circle_into_runs(n_classes, data):
    width = data.draw(st.integers(1, n_classes))
    structure = circular(range(n_classes), width=width, singleton_weight=0.25)
    rotations = structure.levels[f"width {width}"]
    n_expected = width if n_classes % width == 0 else n_classes
    assert len(set(rotations)) == len(rotations) == (1 if width == n_classes else n_expected)
    for partition in rotations:
        sizes = sorted(map(len, partition.blocks))
        assert sizes == sorted(
            [width] * (n_classes // width) + [n_classes % width] * (n_classes % width > 0)
        )
        for block in partition.blocks:
            starts = [c for c in block if (c - 1) % n_classes not in block]
            assert len(starts) == (0 if len(block) == n_classes else 1)


@given(st.integers(2, 12), st.integers(1, 12))
def test_a_rotation_of_the_classes_changes_nothing(n_classes, width):
    width = min(width, n_classes)
    structure = circular(range(n_classes), width=width)
    turned = structure.relabel({c: (c + 1) % n_classes for c in range(n_classes)})
    again = turned.restrict(range(n_classes))
    assert set(again.partitions) == set(structure.partitions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "width must be between 1 and 4, the number of classes, got 0"),
        ({"width": 5}, "width must be between 1 and 4, the number of classes, got 5"),
        ({"width": 2.0}, "width must be a whole number, got 2.0"),
        ({"width": True}, "width must be a whole number, got True"),
        ({"singleton_weight": -0.1}, "singleton_weight must be between 0 and 1, got -0.1"),
        ({"singleton_weight": float("nan")}, "singleton_weight must be between 0 and 1, got nan"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(StructureError, match=message):
        circular(["n", "e", "s", "w"], **arguments)
