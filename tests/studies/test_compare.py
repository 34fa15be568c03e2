"""Comparisons on planted data: what is found, and that it is found on rows not seen."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structent import (
    LabelError,
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    hierarchy,
)
from structent.metrics import block_log_loss
from structent.studies import LearnedStructure, compare
from structent.studies.compare import FEWEST_ROWS, affordable, seconds_needed, seconds_of_rows
from structent.studies.comparison import METRICS, Plan
from tests.estimators.problems import planted_problem

TREES = StructuredBoostingClassifier(
    n_estimators=25, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)
FAST = {"estimator": TREES, "n_jobs": 2}
SMALL = {**FAST, "n_folds": 3, "n_repeats": 1, "n_copies": 1}


def test_a_planted_structure_is_found_to_help_and_its_scrambled_copy_is_not():
    structure, features, labels = planted_problem(500, own=0.1)
    once = {**FAST, "n_repeats": 1, "n_copies": 1, "random_state": 0}
    found = compare(features, labels, structure, **once)
    assert found.verdict.finding == "helps", found.verdict
    assert found.against_none.is_lower
    assert found.against_scrambled.is_lower
    meaningless = structure.scramble(np.random.default_rng(1))
    assert compare(features, labels, meaningless, **once).verdict.finding != "helps"


@pytest.fixture(scope="module")
def small():
    structure, features, labels = planted_problem(240)
    return compare(features, labels, structure, random_state=4, **SMALL), labels


def test_scores_are_those_of_the_rows_held_out(small):
    found, labels = small
    assert found.levels == ("group", "class")
    assert found.scores["none"].by_level.shape == (3, 2, len(METRICS))
    for arm in ("none", "structure"):
        proba = found.proba[arm]
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        # Folds are of one size here, so that their mean is that of the rows.
        for level in found.levels:
            whole = block_log_loss(labels, proba, found.structure, level=level)
            assert found.mean(arm, level, "log loss") == pytest.approx(whole)


def test_differences_are_paired_by_fold(small):
    found, _ = small
    losses = {arm: scores.by_level[:, -1, 0] for arm, scores in found.scores.items()}
    np.testing.assert_allclose(found.against_none.per_fold, losses["structure"] - losses["none"])
    np.testing.assert_allclose(
        found.against_scrambled.per_fold, losses["structure"] - losses["scrambled"]
    )
    plain = found.chosen == 1.0
    assert (found.against_none.per_fold[plain] == 0).all()


def test_the_same_seed_finds_the_same(small):
    structure, features, labels = planted_problem(240)
    again = compare(features, labels, structure, random_state=4, **{**SMALL, "n_jobs": 1})
    np.testing.assert_array_equal(again.against_none.per_fold, small[0].against_none.per_fold)
    other = compare(features, labels, structure, random_state=5, **SMALL)
    assert (other.against_none.per_fold != small[0].against_none.per_fold).any()


def test_a_class_with_fewer_rows_than_folds_is_scored_where_it_falls_and_listed():
    structure, features, labels = planted_problem(200)
    kept = np.flatnonzero(labels != "class 03")
    kept = np.append(kept, np.flatnonzero(labels == "class 03")[:1])
    found = compare(features[kept], labels[kept], structure, **SMALL)
    assert found.task.rare == ("class 03",)
    assert found.task.counts[structure.classes.index("class 03")] == 1
    assert np.isfinite(found.scores["structure"].by_level).all()


def test_rows_of_a_group_share_a_fold():
    structure, features, labels = planted_problem(120)
    groups = np.repeat(np.arange(40), 3)
    # Without groups the copies of a row would be known from training.
    copies = np.arange(120) // 3 * 3
    apart = compare(features[copies], labels[copies], structure, groups=groups, **SMALL)
    known = compare(features[copies], labels[copies], structure, **SMALL)
    assert known.mean("none", "class", "log loss") < apart.mean("none", "class", "log loss")


def test_a_sampler_is_compared_by_its_classes():
    ring = SpanningTreePartitions(LabelGraph([(i, (i + 1) % 6) for i in range(6)]), 3, 0.5)
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=150)
    features = np.column_stack([np.cos(labels), np.sin(labels)]) + rng.normal(size=(150, 2))
    found = compare(features, labels, ring, **SMALL)
    assert found.levels == ("class",)
    assert set(found.chosen) <= {1.0, 0.1, 0.4, 0.7}


def test_a_small_budget_cuts_and_says_so():
    structure, features, labels = planted_problem(1500)
    found = compare(features, labels, structure, budget=0.01, **FAST)
    assert found.task.n_used == 1000
    assert found.task.n_rows == 1500
    assert "3 folds instead of 5" in found.plan.cuts
    assert len(found.chosen) == 3
    assert found.plan.cross_validation == "3 folds"


def test_repeats_that_the_time_did_not_allow_are_not_counted(monkeypatch):
    structure, features, labels = planted_problem(150)
    # By its full name, the module is hidden behind the function.
    module = sys.modules["structent.studies.compare"]
    monkeypatch.setattr(module, "_affordable_plan", lambda plan, rows, *_: (plan, len(rows)))
    found = compare(features, labels, structure, budget=1e-6, **{**SMALL, "n_repeats": 3})
    assert found.plan.cross_validation == "3 folds"
    assert found.plan.cuts == (
        "1 repeat of the cross-validation instead of 3, because the time was up",
    )
    assert len(found.chosen) == 3


def test_a_seed_that_was_drawn_repeats_the_comparison():
    structure, features, labels = planted_problem(120)
    unseeded = StructuredBoostingClassifier(
        n_estimators=5, learning_rate=0.3, max_depth=3, subsample=0.7
    )
    asked = {**SMALL, "estimator": unseeded}
    first = compare(features, labels, structure, **asked)
    again = compare(features, labels, structure, random_state=first.seed, **asked)
    np.testing.assert_array_equal(first.proba["none"], again.proba["none"])
    assert compare(features, labels, structure, **asked).seed != first.seed


def test_progress_is_told():
    structure, features, labels = planted_problem(150)
    told = []
    compare(features, labels, structure, **SMALL, progress=lambda *what: told.append(what))
    assert told[0] == ("a timed probe", 0, 1)
    assert told[-1] == ("folds", 3, 3)


def test_a_learning_curve_has_more_and_more_rows():
    structure, features, labels = planted_problem(200)
    curve = compare(features, labels, structure, learning_curve=True, **SMALL).learning_curve
    assert curve.sizes == (16, 33, 66, 133)
    assert curve.none.shape == curve.structure.shape == (4, 3)
    assert curve.none[0].mean() > curve.none[-1].mean()


def test_accuracy_may_decide():
    structure, features, labels = planted_problem(150)
    found = compare(features, labels, structure, metric="accuracy", **SMALL)
    wanted = found.scores["none"].by_level[:, -1, 1] - found.scores["structure"].by_level[:, -1, 1]
    np.testing.assert_allclose(found.against_none.per_fold, wanted)
    assert "accuracy" in found.verdict.sentence


def test_bad_input_is_refused():
    structure, features, labels = planted_problem(60)
    with pytest.raises(LabelError, match="'maple' is not a class"):
        compare(features, np.where(labels == "class 03", "maple", labels), structure)
    with pytest.raises(StructentError, match="metric must be 'log loss' or 'accuracy'"):
        compare(features, labels, structure, metric="f1")
    with pytest.raises(StructentError, match="n_folds must be between 3 and 60"):
        compare(features, labels, structure, n_folds=2)
    with pytest.raises(
        StructentError, match=r"one entry for each of the 60 rows, got shape \(3,\)"
    ):
        compare(features, labels, structure, groups=[1, 2, 3])
    with pytest.raises(StructentError, match="structure must be a RandomPartition"):
        compare(features, labels, None)
    with pytest.raises(StructentError, match=r"X must have one row for each of the 60 labels"):
        compare(features[:50], labels, structure)
    with pytest.raises(StructentError, match="fit takes an eval_set"):
        compare(features, labels, structure, estimator=StructuredLogisticRegression())
    with pytest.raises(StructentError, match="n_folds must be between 3 and 4, the number of gro"):
        compare(features, labels, structure, groups=np.arange(60) % 4)
    with pytest.raises(StructentError, match="got one that is to be learned"):
        compare(features, labels, LearnedStructure(), allow_blocks=True)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be between 1 and 1000, got 0"),
        ({"n_copies": 0}, "n_copies must be between 1 and 1000, got 0"),
        ({"n_jobs": 0}, "n_jobs must be between 1 and 32768, got 0"),
        ({"n_jobs": -5}, "n_jobs must be between 1 and 32768, got -5"),
        ({"random_state": -1}, "random_state must be between 0 and 4294967295, got -1"),
        ({"budget": float("nan")}, "budget must be a number of seconds above 0, got nan"),
        ({"budget": -1}, "budget must be a number of seconds above 0, got -1"),
        ({"budget": "600"}, "budget must be a number of seconds above 0, got '600'"),
    ],
)
def test_a_comparison_that_could_not_be_run_is_refused(asked, message):
    structure, features, labels = planted_problem(60)
    with pytest.raises(StructentError, match=message):
        compare(features, labels, structure, **asked)


def test_weights_are_chosen_among_the_candidates_and_none():
    structure = hierarchy({c: (c // 3,) for c in range(6)})
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=150)
    found = compare(rng.normal(size=(150, 2)), labels, structure, **SMALL)
    assert set(found.chosen) <= {0.1, 0.4, 0.7, 1.0}
    assert circular(range(6)).classes == found.task.classes


WHOLE = Plan(5, 2, 2, (0.1, 0.4, 0.7), ())


def planned(budget, *, n_rows=4000, seconds=1.0):
    return affordable(WHOLE, n_rows, budget, probed_rows=4000, probed_seconds=seconds, n_jobs=2)


def test_with_time_enough_nothing_is_cut():
    assert planned(1e9) == (WHOLE, 4000)


@given(st.floats(0.01, 1000), st.floats(0.01, 60), st.integers(1000, 10**6))
def test_the_plan_fits_into_the_budget_or_is_the_least_there_is(budget, seconds, n_rows):
    plan, rows = planned(budget, n_rows=n_rows, seconds=seconds)
    fit = seconds_of_rows(rows, probed_rows=4000, probed_seconds=seconds)
    is_least = (plan.n_folds, plan.n_repeats, plan.n_copies, len(plan.singleton_weights)) == (
        3, 1, 1, 1
    )  # fmt: skip
    assert seconds_needed(plan, fit, 2) <= budget or (is_least and rows == FEWEST_ROWS)
    assert rows == n_rows or is_least
    assert bool(plan.cuts) == (plan != WHOLE)


def test_everything_that_is_cut_is_said():
    plan, rows = planned(1.0, n_rows=100_000)
    assert plan.cuts == (
        "1 repeat of the cross-validation instead of 2",
        "1 scrambled copy in each fold instead of 2",
        "1 candidate for the weight of the singletons, 0.4, instead of 3",
        "3 folds instead of 5",
        f"{rows:,} rows, drawn at random, instead of 100,000",
    )
    assert plan.singleton_weights == (0.4,)


def test_time_is_counted_by_fits():
    plan = Plan(5, 1, 2, (0.4,), ())
    # In each of 5 folds a fit without structure, and 3 with one, at 1.4 times its time; then the
    # model to keep.
    assert seconds_needed(plan, 2.0, n_jobs=1) == pytest.approx(5 * 2.0 * (1 + 3 * 1.4) + 2.8)


GROUPS = hierarchy({f"c{i}": (f"g{i // 2}",) for i in range(4)}, level_names=["group"])
RNG = np.random.default_rng(0)
CODES = RNG.integers(4, size=120)
X = np.eye(4)[CODES] + RNG.normal(size=(120, 4))
Y = np.array(GROUPS.classes, dtype=object)[CODES]
MIXED = Y.copy()
MIXED[::2] = [f"g{code // 2}" for code in CODES[::2]]
FEW = StructuredBoostingClassifier(
    n_estimators=4, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)


def test_coarse_rows_are_learned_from_and_judged_where_they_can_be():
    found = compare(
        X, MIXED, GROUPS, n_folds=3, n_repeats=1, n_copies=1, estimator=FEW, n_jobs=1,
        allow_blocks=True,
    )  # fmt: skip
    assert found.task.n_used == 120
    assert sum(found.task.counts) == len(found.labels) == len(found.proba["none"]) == 60
    np.testing.assert_array_equal(found.labels, CODES[1::2])
    assert np.isfinite(found.scores["scrambled"].by_level).all()
    assert "60 rows are known by a block" in found.task.notes[-1]


def test_every_fold_needs_a_row_of_known_class():
    few = np.array([f"g{code // 2}" for code in CODES], dtype=object)
    few[:2] = Y[:2]
    with pytest.raises(StructentError, match="every fold must have a row that is known by its cl"):
        compare(X, few, GROUPS, n_folds=3, estimator=FEW, n_jobs=1, allow_blocks=True)


def test_a_block_is_refused_with_a_hint_unless_it_is_allowed():
    with pytest.raises(StructentError, match=r"the name of a block; .* allow_blocks=True"):
        compare(X, MIXED, GROUPS, n_folds=3)
