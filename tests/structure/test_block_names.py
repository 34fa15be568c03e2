"""Names of blocks that nobody named."""

import numpy as np
from hypothesis import given

from structent import Partition, circular, trivial
from tests.strategies import partitions


def test_neighbours_are_runs_and_pairs_are_named_by_their_parts():
    months = circular(["jan", "feb", "mar", "apr"], width=3).partitions[0]
    assert months.names == ("jan..mar", "apr")
    pairs = months.product(Partition.from_blocks([["Marin", "Napa"], ["Yolo"]]))
    assert pairs.names == (
        "(jan..mar, Marin+Napa)",
        "(jan..mar, Yolo)",
        "(apr, Marin+Napa)",
        "('apr', 'Yolo')",
    )


def test_a_block_of_pairs_that_is_no_product_is_named_by_its_pairs():
    scrambled = Partition([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0, 1, 1, 0])
    assert scrambled.names == ("('a', 1)+('b', 2)", "('a', 2)+('b', 1)")


def test_pairs_are_named_the_same_whatever_their_order():
    pairs = trivial(["a", "b"]).product(trivial([1, 2])).partitions[0]
    halves = Partition(pairs.classes, [0, 1, 0, 1])
    assert set(halves.restrict(pairs.classes[::-1]).names) == {"(b+a, 1)", "(b+a, 2)"}


@given(partitions())
def test_names_differ_within_a_partition(partition):
    assert len(set(partition.names)) == partition.n_blocks


@given(partitions(), partitions())
def test_names_differ_within_a_product(first, second):
    pairs = first.product(second)
    assert len(set(pairs.names)) == pairs.n_blocks


def test_blocks_that_str_cannot_tell_apart_are_told_apart_by_repr():
    assert Partition([1, "1"], np.array([0, 1])).names == ("1", "'1'")
