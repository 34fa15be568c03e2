"""Mistakes by name."""

import json
from dataclasses import replace

import numpy as np
import pytest

from structent import LabelGraph, SpanningTreePartitions, circular, hierarchy
from structent.studies.mistakes import (
    MOST_CONFUSIONS,
    Confusion,
    frequent_confusions,
    shares_within_blocks,
)
from tests.studies.made import made_comparison

PLANTS = hierarchy(
    {"oak": ("tree",), "maple": ("tree",), "rose": ("flower",), "lily": ("flower",)},
    level_names=["kind"],
)
OAK, MAPLE, ROSE, LILY = range(4)


def judged(structure, labels, none, with_structure):
    """A comparison whose models predicted these classes, by number."""
    sure = np.eye(len(structure.classes))
    proba = {"none": sure[none], "structure": sure[with_structure]}
    return replace(made_comparison(structure), labels=np.array(labels), proba=proba)


def test_confusions_are_counted_for_both_models_with_the_most_frequent_first():
    found = frequent_confusions(
        judged(
            PLANTS,
            [OAK, OAK, OAK, ROSE, LILY],
            [ROSE, ROSE, MAPLE, ROSE, ROSE],
            [MAPLE, MAPLE, MAPLE, ROSE, LILY],
        )
    )
    assert found == [
        Confusion("oak", "maple", 1, 3, 3, {"kind": (1, 1)}, None),
        Confusion("oak", "rose", 2, 0, 3, {"kind": (0, 1)}, None),
        Confusion("lily", "rose", 1, 0, 1, {"kind": (1, 1)}, None),
    ]


def test_ten_confusions_of_each_model_are_kept_and_those_of_both_once():
    comparison = made_comparison(circular(range(12), width=3))
    found = frequent_confusions(comparison)
    counts = np.zeros((2, 12, 12), dtype=int)
    for place, arm in enumerate(("none", "structure")):
        for true, predicted in zip(
            comparison.labels, comparison.proba[arm].argmax(axis=1), strict=True
        ):
            counts[place, true, predicted] += true != predicted
    pairs = [(each.true, each.predicted) for each in found]
    assert len(set(pairs)) == len(pairs)
    assert MOST_CONFUSIONS <= len(pairs) <= 2 * MOST_CONFUSIONS
    for each in found:
        none, structure = counts[:, each.true, each.predicted]
        assert (each.n_none, each.n_structure) == (none, structure)
    for place in range(2):
        most = np.sort(counts[place].ravel())[::-1][:MOST_CONFUSIONS]
        kept = sorted((counts[place][pair] for pair in pairs), reverse=True)[:MOST_CONFUSIONS]
        assert kept == most.tolist()


def test_the_share_within_a_block_is_that_of_the_mistakes_alone():
    labels = [OAK, OAK, OAK, ROSE, LILY]
    (found,) = shares_within_blocks(
        judged(PLANTS, labels, [ROSE, ROSE, MAPLE, ROSE, ROSE], [MAPLE, ROSE, OAK, ROSE, LILY])
    )
    assert found.level == "kind"
    assert found.none == pytest.approx(2 / 4)
    assert found.structure == pytest.approx(1 / 2)
    assert found.chance == pytest.approx(1 / 3)


def test_a_level_of_several_partitions_counts_each_alike():
    # Arcs of two around a circle of four begin at 0 or at 1: 0 and 1 share one of two.
    square = circular(range(4), width=2)
    (found,) = shares_within_blocks(judged(square, [0, 0], [1, 2], [1, 1]))
    assert (found.none, found.structure) == (pytest.approx(0.25), pytest.approx(0.5))
    (first, _) = frequent_confusions(judged(square, [0, 0], [1, 2], [1, 1]))
    assert first.together == {"width 2": (1, 2)}


def test_without_mistakes_there_is_nothing_to_share():
    right = judged(PLANTS, [OAK], [OAK], [OAK])
    assert frequent_confusions(right) == []
    (found,) = shares_within_blocks(right)
    assert np.isnan([found.none, found.structure, found.chance]).all()
    assert found.to_dict() == {"level": "kind", "none": None, "structure": None, "chance": None}


def test_on_a_graph_a_confusion_has_its_number_of_edges():
    path = SpanningTreePartitions(LabelGraph([("S", "M"), ("M", "L")]), 2, 0.5)
    first, second = frequent_confusions(judged(path, [0, 0, 0], [2, 2, 1], [2, 2, 1]))
    assert (first.edges, second.edges) == (2, 1)
    together, n_draws = second.together["blocks"]
    assert 0 < together < n_draws == 10


def test_the_result_as_data_has_them():
    found = made_comparison(PLANTS).to_dict()["mistakes"]
    assert json.loads(json.dumps(found))["within_blocks"][0]["level"] == "kind"
    assert {"true", "predicted", "n_none", "n_structure"} <= set(found["confusions"][0])
