"""Problem 3 as the paper has it: its table, its structures, and a run end to end."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import log_loss

from paper import counties
from paper.counties import ENGINES, Counties, engine_of
from paper.experiment import key
from paper.weather import draw
from structent import LabelGraph, SpanningTreePartitions, StructuredBoostingClassifier
from structent.errors import StructentError
from tests.paper.made_up_weather import COUNTIES, EDGES, weather_table, write_weather

# Blocks and singleton weights of the paper's table.
COMBINATIONS = {(10, 0.25), (10, 0.5), (10, 0.75), (5, 0.5), (20, 0.5)}
MAP = nx.Graph(EDGES)


def settings_of(method, n_blocks, weight, trial=0):
    return next(
        settings
        for settings in Counties(Path(), "paper", (500,)).runs()
        if (settings["method"], settings["n_blocks"], settings["singleton_weight"])
        == (method, n_blocks, weight)
        and settings["trial"] == trial
    )


@pytest.fixture
def structure_of(monkeypatch, weather):
    """Return the structure that a run of the paper trains with."""
    monkeypatch.setattr(counties, "draw", lambda *_arguments, **_options: None)
    monkeypatch.setattr(counties, "boosted_trial", lambda _rows, structure, *_, **__: structure)
    return lambda *which: Counties(weather, "paper").run(settings_of(*which), 1)


# The table


@pytest.mark.parametrize(
    ("preset", "n_runs"),
    [("paper", 6 * 5 * (1 + 5 + 2)), ("quick", 6 * 5 * (1 + 5 + 2)), ("smoke", 2 * (1 + 5 + 2))],
)
def test_every_run_of_a_preset_is_there_once(preset, n_runs):
    runs = Counties(Path(), preset).runs()
    assert len(runs) == len({key(settings) for settings in runs}) == n_runs
    assert {settings["preset"] for settings in runs} == {preset}


def test_runs_of_our_engine_say_so_and_those_of_xgboost_are_as_they_were_recorded():
    both = Counties(Path(), "smoke", engines=ENGINES).runs()
    recorded = Counties(Path(), "smoke").runs()
    assert [engine_of(settings) for settings in both] == ["structent"] * 16 + ["xgboost"] * 16
    assert both[16:] == recorded
    assert [{**settings, "engine": "structent"} for settings in recorded] == both[:16]


@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
def test_every_size_and_trial_has_standard_all_five_combinations_and_controls(preset):
    cells = {}
    for run in Counties(Path(), preset).runs():
        arms = cells.setdefault((run["size"], run["trial"]), {})
        arms.setdefault(run["method"], set()).add((run["n_blocks"], run["singleton_weight"]))
    for arms in cells.values():
        assert arms["standard"] == {(None, 1.0)}
        assert arms["variable"] == COMBINATIONS
        assert arms["variable, scrambled"] == {(10, 0.25), (10, 0.5)}
    sizes = (200,) if preset == "smoke" else (500, 1000, 2000, 5000, 10_000, 20_000)
    assert {size for size, _ in cells} == set(sizes)


def test_a_size_that_is_not_the_papers_is_refused():
    with pytest.raises(StructentError, match=r"--sizes must be among 500, .*20000, got 300"):
        Counties(Path(), "paper", (300,)).runs()


# The structures


def test_standard_has_no_structure(structure_of):
    (only,) = structure_of("standard", None, 1.0).partitions
    assert sorted(only.blocks) == [(county,) for county in COUNTIES]


@pytest.mark.parametrize(("n_blocks", "weight"), sorted(COMBINATIONS))
def test_variable_cuts_the_map_into_connected_blocks_anew_for_every_tree(
    structure_of, n_blocks, weight
):
    sampler = structure_of("variable", n_blocks, weight, 1)
    drawn = [sampler.sample(tree) for tree in range(10)]
    for structure in drawn:
        cut, singletons = structure.partitions
        assert cut.n_blocks == n_blocks
        assert all(nx.is_connected(MAP.subgraph(block)) for block in cut.blocks)
        assert singletons.n_blocks == 24
        np.testing.assert_allclose(structure.weights, [1 - weight, weight])
    assert len({structure.partitions[0] for structure in drawn}) > 5
    assert structure_of("variable", n_blocks, weight, 2).sample(0) != sampler.sample(0)


def test_scrambled_is_the_same_map_with_the_counties_shuffled_anew_in_every_trial(structure_of):
    maps = []
    for trial in range(5):
        sampler = structure_of("variable, scrambled", 10, 0.25, trial)
        assert (sampler.n_blocks, sampler.singleton_weight) == (10, 0.25)
        shuffled = nx.Graph(sampler.graph.edges)
        assert sorted(shuffled) == COUNTIES
        assert nx.is_isomorphic(shuffled, MAP)
        maps.append(frozenset(map(frozenset, shuffled.edges)))
    assert len({*maps, frozenset(map(frozenset, MAP.edges))}) == 6


# Runs


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_is_the_classifier_of_its_structure_on_the_rows_of_its_trial(weather, engine):
    experiment = Counties(weather, "smoke", engines=(engine,))
    runs = [run for run in experiment.runs() if run["trial"] == 1]
    settings = next(run for run in runs if run["n_blocks"] == 20)
    result = experiment.run(settings, 1)
    rows = draw(weather, "county", n_train=200, n_validation=100, n_test=200, trial=1)
    model = StructuredBoostingClassifier(
        SpanningTreePartitions(LabelGraph(EDGES, COUNTIES), 20, 0.5, seed=1), engine=engine,
        n_estimators=20, learning_rate=0.3, max_depth=2, reg_lambda=1.0, subsample=0.632,
        early_stopping_rounds=30, split_search="full", colsample=1.0, refit=False,
        random_state=1, n_jobs=1,
    ).fit(*rows.train, eval_set=tuple(rows.validation))  # fmt: skip
    wanted = log_loss(rows.test.labels, model.predict_proba(rows.test.features), labels=COUNTIES)
    assert result["test"] == pytest.approx([wanted], abs=1e-6)
    assert (result["depth"], result["trees"]) == ([2], [model.best_iteration_ + 1])


def test_every_method_of_the_smoke_preset_ends_with_a_loss_and_ends_so_again(weather):
    experiment = Counties(weather, "smoke")
    trial = [settings for settings in experiment.runs() if settings["trial"] == 0]
    results = [experiment.run(settings, 1) for settings in trial]
    losses = np.array([[*result["validation"], *result["test"]] for result in results])
    assert losses.shape == (8, 2)
    assert np.isfinite(losses).all()
    assert len(np.unique(losses[:, 1])) == 8
    assert experiment.run(trial[-1], 1) == results[-1]


def test_a_county_that_the_map_does_not_have_is_named(tmp_path):
    graph = {"nodes": COUNTIES[:20], "edges": EDGES[:19]}
    experiment = Counties(write_weather(tmp_path, weather_table(), graph), "smoke")
    with pytest.raises(StructentError, match="'county 2"):
        experiment.run(experiment.runs()[0], 1)
