"""Structures as text."""

import numpy as np
from hypothesis import given

from structent import circular, hierarchy, ordinal, trivial
from structent.structure import catalog
from tests.strategies import random_partitions


def assert_fits_a_screen(text):
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@given(random_partitions(max_partitions=9))
def test_any_structure_fits_a_screen(structure):
    assert_fits_a_screen(str(structure))


def test_characters_that_would_end_a_line_are_spelled_out():
    text = str(trivial(["oak\r\n", "\x1e"]))
    assert text.splitlines()[0] == "2 classes: oak\\r\\n, \\x1e"


def test_large_structures_fit_a_screen():
    for structure in (
        catalog.cifar100(),
        ordinal(range(500)),
        circular([f"a rather long name of hour number {i}" for i in range(48)], width=7),
        trivial(range(10_000)),
        hierarchy({"x": ("a very long name of a level " * 9,)}, level_names=["long name" * 20]),
    ):
        assert_fits_a_screen(str(structure))


def test_the_text_shows_weights_block_counts_and_levels():
    assert str(hierarchy({"oak": ("tree",), "elm": ("tree",), "rose": ("flower",)})) == (
        "3 classes: oak, elm, rose\n"
        "weight  blocks  level    blocks, largest first\n"
        "0.5000       2  level 1  tree (2), flower (1)\n"
        "0.5000       3  class    every class by itself"
    )


def test_what_is_left_out_is_counted():
    text = str(ordinal(range(100), singleton_weight=0.5))
    assert text.splitlines()[-1].endswith("and 82 partitions more, weights summed")
    shown = [float(line[:6]) for line in text.splitlines()[2:]]
    np.testing.assert_allclose(sum(shown), 1.0, atol=2e-3)


def test_the_short_form_says_what_it_is():
    assert repr(catalog.months()) == (
        "<RandomPartition of 12 classes, 4 partitions, singleton_weight 0.3>"
    )
    assert repr(catalog.months().partitions[0]) == (
        "<Partition of 12 classes into 4 blocks: 1..3, 4..6, 7..9, 10..12>"
    )
