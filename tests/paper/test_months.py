"""Problem 2 as the paper has it: its grid, its structures, and a run end to end."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss

from paper import months
from paper.experiment import key
from paper.months import Months
from paper.weather import draw
from structent import StructuredBoostingClassifier, circular
from structent.errors import StructentError

YEAR = range(1, 13)
# The three ways to cut the year into quarters.
QUARTERS = [
    {(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)},
    {(2, 3, 4), (5, 6, 7), (8, 9, 10), (1, 11, 12)},
    {(3, 4, 5), (6, 7, 8), (9, 10, 11), (1, 2, 12)},
]


def settings_of(method, weight, trial=0):
    return next(
        settings
        for settings in Months(Path(), "paper", (500,)).runs()
        if (settings["method"], settings["singleton_weight"], settings["trial"])
        == (method, weight, trial)
    )


@pytest.fixture
def structure_of(monkeypatch):
    """Return the structure that a run of the paper trains with."""
    monkeypatch.setattr(months, "draw", lambda *_arguments, **_options: None)
    monkeypatch.setattr(months, "boosted_trial", lambda _rows, structure, *_, **__: structure)
    return lambda *which: Months(Path(), "paper").run(settings_of(*which), 1)


def blocks(partition):
    return {tuple(sorted(block)) for block in partition.blocks}


def circle_of(structure):
    """Return the order of classes in which neighbours share most blocks, starting with 1."""
    together = Counter(
        frozenset(pair)
        for partition in structure.partitions
        for block in partition.blocks
        for pair in combinations(block, 2)
    )
    # Of three rotations neighbours are together in two, the next but one in one.
    neighbours = [pair for pair, times in together.items() if times == 2]
    order = [1]
    while len(order) < 12:
        order.append(next(b for p in neighbours if order[-1] in p for b in p if b not in order))
    return order


# The grid


@pytest.mark.parametrize(
    ("preset", "n_runs"),
    [
        ("paper", 5 * 5 * (1 + 9 + 9 + 3 + 3)),
        ("quick", 5 * 5 * (1 + 9 + 9 + 3 + 3)),
        ("smoke", 2 * 5),
    ],
)
def test_every_run_of_a_preset_is_there_once(preset, n_runs):
    runs = Months(Path(), preset).runs()
    assert len(runs) == len({key(settings) for settings in runs}) == n_runs
    assert {settings["preset"] for settings in runs} == {preset}


def test_the_papers_grid_is_whole_for_every_size_and_trial():
    tenths = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    wanted = {("standard", None, 1.0)}
    wanted |= {("fixed", None, weight) for weight in tenths}
    wanted |= {("variable", 4, weight) for weight in tenths}
    wanted |= {("fixed, scrambled", None, weight) for weight in (0.1, 0.3, 0.5)}
    wanted |= {("variable, scrambled", 4, weight) for weight in (0.1, 0.3, 0.5)}
    cells = {}
    for run in Months(Path(), "paper").runs():
        arm = (run["method"], run["n_blocks"], run["singleton_weight"])
        cells.setdefault((run["size"], run["trial"]), set()).add(arm)
    assert cells == {
        (size, trial): wanted for size in (500, 1000, 2000, 5000, 10_000) for trial in range(5)
    }


def test_some_sizes_are_the_same_runs_as_among_all():
    every = [key(settings) for settings in Months(Path(), "paper").runs()]
    some = [key(settings) for settings in Months(Path(), "paper", (2000, 500)).runs()]
    assert len(some) == 2 * 125
    assert set(some) < set(every)
    with pytest.raises(StructentError, match="--sizes must be among 200, got 500"):
        Months(Path(), "smoke", (500,)).runs()


# The structures


def test_standard_has_no_structure(structure_of):
    (only,) = structure_of("standard", 1.0).partitions
    assert blocks(only) == {(month,) for month in YEAR}


@pytest.mark.parametrize("weight", [0.1, 0.7])
def test_fixed_is_the_year_cut_into_quarters_in_three_ways(structure_of, weight):
    structure = structure_of("fixed", weight)
    *cut, singletons = structure.partitions
    assert [blocks(partition) for partition in cut] == QUARTERS
    assert blocks(singletons) == {(month,) for month in YEAR}
    np.testing.assert_allclose(structure.weights, [*[(1 - weight) / 3] * 3, weight])
    assert structure_of("fixed", weight, 3) == structure


def test_fixed_scrambled_is_quarters_of_a_shuffled_year_that_trials_shuffle_anew(structure_of):
    orders = []
    for trial in range(5):
        structure = structure_of("fixed, scrambled", 0.3, trial)
        order = circle_of(structure)
        assert sorted(order) == list(YEAR)
        *cut, singletons = structure.partitions
        shuffled = [
            {tuple(sorted(order[(start + step) % 12] for step in range(3))) for start in starts}
            for starts in (range(0, 12, 3), range(1, 12, 3), range(2, 12, 3))
        ]
        assert all(blocks(partition) in shuffled for partition in cut)
        assert len({frozenset(blocks(partition)) for partition in cut}) == 3
        assert singletons.n_blocks == 12
        np.testing.assert_allclose(structure.weights, [0.7 / 3] * 3 + [0.3])
        orders.append(tuple(min(order, [1, *reversed(order[1:])])))
    assert len({*orders, tuple(YEAR)}) == 6
    assert structure_of("fixed, scrambled", 0.3, 2) == structure_of("fixed, scrambled", 0.3, 2)


def test_variable_cuts_the_year_into_four_arcs_anew_for_every_tree(structure_of):
    sampler = structure_of("variable", 0.2, 1)
    drawn = [sampler.sample(tree) for tree in range(30)]
    for structure in drawn:
        cut, singletons = structure.partitions
        assert cut.n_blocks == 4
        # On a circle four arcs have four places where a month and the next are in two blocks.
        places = [cut.block_of[month - 1] != cut.block_of[month % 12] for month in YEAR]
        assert sum(places) == 4
        assert singletons.n_blocks == 12
        np.testing.assert_allclose(structure.weights, [0.8, 0.2])
    assert len({frozenset(blocks(structure.partitions[0])) for structure in drawn}) > 20
    assert structure_of("variable", 0.2, 2).sample(0) != sampler.sample(0)


def test_variable_scrambled_is_another_circle_of_months_in_every_trial(structure_of):
    circles = []
    for trial in range(5):
        sampler = structure_of("variable, scrambled", 0.5, trial)
        edges = {frozenset(edge) for edge in sampler.graph.edges}
        order = [1]
        while len(order) < 12:
            order.append(next(b for e in edges if order[-1] in e for b in e if b not in order))
        assert edges == {frozenset({order[at], order[at - 1]}) for at in range(12)}
        assert (sampler.n_blocks, sampler.singleton_weight) == (4, 0.5)
        circles.append(frozenset(edges))
    months_in_order = frozenset(frozenset({month, month % 12 + 1}) for month in YEAR)
    assert len({*circles, months_in_order}) == 6


# Runs


def test_a_run_is_the_classifier_of_its_structure_on_the_rows_of_its_trial(weather):
    experiment = Months(weather, "smoke")
    runs = [run for run in experiment.runs() if run["trial"] == 1]
    settings = next(run for run in runs if run["method"] == "fixed")
    result = experiment.run(settings, 1)
    rows = draw(weather, "month", n_train=200, n_validation=100, n_test=200, trial=1)
    model = StructuredBoostingClassifier(
        circular(YEAR, width=3, singleton_weight=0.3), engine="xgboost", n_estimators=20,
        learning_rate=0.3, max_depth=2, reg_lambda=1.0, subsample=0.632, early_stopping_rounds=30,
        random_state=1, n_jobs=1,
    ).fit(*rows.train, eval_set=tuple(rows.validation))  # fmt: skip
    wanted = {
        part: log_loss(labels, model.predict_proba(features), labels=list(YEAR))
        for part, (features, labels) in (("validation", rows.validation), ("test", rows.test))
    }
    assert result["validation"] == pytest.approx([wanted["validation"]], abs=1e-6)
    assert result["test"] == pytest.approx([wanted["test"]], abs=1e-6)
    assert (result["depth"], result["trees"]) == ([2], [model.best_iteration_ + 1])


def test_every_run_of_the_smoke_preset_ends_with_a_loss_and_ends_so_again(weather):
    experiment = Months(weather, "smoke")
    results = [experiment.run(settings, 1) for settings in experiment.runs()]
    losses = np.array([[*result["validation"], *result["test"]] for result in results])
    assert np.isfinite(losses).all()
    # Better than knowing nothing, log 12 = 2.48; no two runs are the same.
    assert (losses < np.log(12)).all()
    assert len(np.unique(losses[:, 1])) == 10
    last = experiment.runs()[-1]
    assert experiment.run(last, 1) == results[-1]
