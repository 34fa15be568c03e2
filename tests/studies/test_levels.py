"""The levels that are scored, of samplers, too."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

from structent import FixedStructure, LabelGraph, SpanningTreePartitions, mix, ordinal
from structent.metrics import level_report
from structent.structure import catalog
from structent.studies.levels import (
    N_SCORED_DRAWS,
    edges_between,
    scored_structure,
    scores_by_level,
)
from tests.strategies import connected_graphs

RING = LabelGraph([(i, (i + 1) % 6) for i in range(6)])
SAMPLER = SpanningTreePartitions(RING, 3, 0.4)


def rows_of(n_classes, n_rows=80, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(n_classes, size=n_rows), rng.dirichlet(np.ones(n_classes), size=n_rows)


def test_a_fixed_structure_is_scored_as_it_is():
    months = catalog.months()
    assert scored_structure(months) is months
    assert scored_structure(FixedStructure(months)) is months


def test_a_sampler_is_scored_by_its_first_draws_and_its_classes():
    scored = scored_structure(SAMPLER)
    assert list(scored.levels) == ["blocks", "class"]
    assert scored.levels["blocks"] == tuple(
        SAMPLER.sample(i).partitions[0] for i in range(N_SCORED_DRAWS)
    )
    assert scored.singleton_weight == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("n_blocks", "weight", "levels"),
    [(1, 0.5, ["blocks", "class"]), (6, 0.5, ["class"]), (3, 0.0, ["blocks", "class"])],
)
def test_extreme_samplers_have_their_classes_as_the_last_level(n_blocks, weight, levels):
    assert list(scored_structure(SpanningTreePartitions(RING, n_blocks, weight)).levels) == levels


def test_a_mixture_with_a_sampler_keeps_the_levels_of_both():
    mixed = mix([ordinal(range(6)), SAMPLER])
    levels = list(scored_structure(mixed).levels)
    assert "blocks" in levels
    assert levels[-1] == "class"
    assert len(levels) > 2


@settings(max_examples=25)
@given(connected_graphs(max_size=12))
def test_edges_between_classes_are_those_of_networkx(graph):
    between = edges_between(graph)
    lengths = dict(networkx.all_pairs_shortest_path_length(networkx.Graph(list(graph.edges))))
    for i, first in enumerate(graph.classes):
        for j, second in enumerate(graph.classes):
            assert between[i, j] == (lengths[first][second] if first != second else 0)


def test_mistakes_on_a_graph_are_measured_in_edges():
    labels, proba = rows_of(6)
    found = scores_by_level(labels, proba, SAMPLER, classes=range(6))
    steps = np.abs(labels - proba.argmax(axis=1))
    edges = np.minimum(steps, 6 - steps)  # around the ring, the shorter way
    assert found.mistake_severity == pytest.approx(edges[edges > 0].mean())
    assert found.average_distance == pytest.approx(edges.mean())


def test_without_mistakes_the_severity_is_zero():
    found = scores_by_level([0, 5], np.eye(6)[[0, 5]], SAMPLER, classes=range(6))
    assert found.mistake_severity == found.average_distance == 0.0


def test_rows_known_by_a_set_have_no_distance():
    labels = np.array([0, frozenset({1, 2})], dtype=object)
    proba = np.eye(6)[[3, 5]]
    found = scores_by_level(labels, proba, SAMPLER, classes=range(6), allow_blocks=True)
    assert found.mistake_severity == 3.0


def test_a_fixed_structure_keeps_its_own_distance():
    months = catalog.months()
    labels, proba = rows_of(12)
    named = np.array(months.classes, dtype=object)[labels]
    options = {"classes": months.classes}
    assert scores_by_level(named, proba, months, **options) == level_report(
        named, proba, months, **options
    )
