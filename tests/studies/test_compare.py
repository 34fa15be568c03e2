"""Comparisons on planted data: what is found, and that it is found on rows not seen."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

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
from structent.decisions import block_scores
from structent.metrics import block_log_loss
from structent.studies import LearnedStructure, compare, setup
from structent.studies import plan as plans
from structent.studies.comparison import METRICS
from structent.studies.plan import NONE, Candidate
from tests.estimators.problems import planted_problem

TREES = StructuredBoostingClassifier(
    n_estimators=25, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)
FAST = {"estimator": TREES, "n_jobs": 2}
SMALL = {**FAST, "n_folds": 3, "n_repeats": 1}


def test_a_planted_structure_is_found_to_help_and_its_scrambled_copy_is_not():
    structure, features, labels = planted_problem(500, own=0.1)
    once = {**FAST, "n_repeats": 1, "random_state": 0}
    found = compare(features, labels, structure, **once)
    assert found.verdict.finding == "use it", found.verdict
    assert found.against_none.is_lower
    assert found.against_scrambled.is_lower
    meaningless = structure.scramble(np.random.default_rng(1))
    assert compare(features, labels, meaningless, **once).verdict.finding != "use it"


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


def test_differences_are_paired_by_split(small):
    found, _ = small
    losses = {arm: scores.by_level[:, -1, 0] for arm, scores in found.scores.items()}
    np.testing.assert_allclose(found.against_none.per_split, losses["structure"] - losses["none"])
    np.testing.assert_allclose(
        found.against_scrambled.per_split, losses["structure"] - losses["scrambled"]
    )
    plain = np.array([candidate == NONE for candidate in found.chosen["structure"]])
    assert (found.against_none.per_split[plain] == 0).all()


def test_the_same_seed_finds_the_same(small):
    structure, features, labels = planted_problem(240)
    again = compare(features, labels, structure, random_state=4, **{**SMALL, "n_jobs": 1})
    np.testing.assert_array_equal(again.against_none.per_split, small[0].against_none.per_split)
    other = compare(features, labels, structure, random_state=5, **SMALL)
    assert (other.against_none.per_split != small[0].against_none.per_split).any()


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


def test_a_sampler_is_compared_by_its_draws_and_its_classes():
    ring = SpanningTreePartitions(LabelGraph([(i, (i + 1) % 6) for i in range(6)]), 3, 0.5)
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=150)
    features = np.column_stack([np.cos(labels), np.sin(labels)]) + rng.normal(size=(150, 2))
    found = compare(features, labels, ring, **SMALL)
    assert found.levels == ("blocks", "class")
    for scores in found.scores.values():
        assert ((scores.severity >= 1) & (scores.severity <= 3)).all()  # edges of a ring of six
        assert (scores.by_level[:, 0, 1] >= scores.by_level[:, 1, 1]).all()  # a block holds more
    assert set(found.chosen["structure"]) <= {NONE, *found.plan.candidates}


class _Slow:
    """A clock that is read: every look at it takes a second."""

    def __init__(self):
        self.seconds = 0.0

    def perf_counter(self):
        self.seconds += 1.0
        return self.seconds


def slow_clock(monkeypatch):
    clock = _Slow()
    # By its full name: the module of compare is hidden behind the function.
    for module in (sys.modules["structent.studies.compare"], setup):
        monkeypatch.setattr(module, "time", clock)


def test_splits_that_the_time_did_not_allow_are_missing_and_said_to_be(monkeypatch):
    structure, features, labels = planted_problem(150)
    slow_clock(monkeypatch)
    found = compare(
        features, labels, structure, budget=100, **{**SMALL, "n_repeats": 3, "n_jobs": 1}
    )
    n_done = found.n_splits
    assert 2 <= n_done < 9
    assert found.reduced == (f"{9 - n_done} of 9 splits are missing, because the time was up",)
    assert len(found.chosen["structure"]) == len(found.scores["none"].severity) == n_done
    whole = compare(features, labels, structure, **{**SMALL, "n_repeats": 3, "random_state": 0})
    assert whole.reduced == ()
    assert whole.n_splits == 9


def test_time_for_less_than_two_splits_is_an_error(monkeypatch):
    structure, features, labels = planted_problem(150)
    slow_clock(monkeypatch)
    with pytest.raises(StructentError, match="used up before 2 of 3 splits were done; allow more"):
        compare(features, labels, structure, budget=5, **{**SMALL, "n_jobs": 1})
    with pytest.raises(StructentError, match="used up before even the models without structure"):
        compare(features, labels, structure, budget=2, n_jobs=1)


def test_all_rows_are_used_and_the_plan_is_told_before_the_first_split():
    structure, features, labels = planted_problem(300)
    told = []
    found = compare(features, labels, structure, on_plan=told.append, **SMALL)
    assert told == [found.plan]
    assert found.task.n_rows == len(found.labels) == 300


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
    assert told[0] == ("splits", 0, 3)
    assert told[-1] == ("splits", 3, 3)


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
    np.testing.assert_allclose(found.against_none.per_split, wanted)
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
    with pytest.raises(StructentError, match="needs a StructuredBoostingClassifier, one like it"):
        compare(
            features, labels, structure, estimator=make_pipeline(StructuredLogisticRegression())
        )
    with pytest.raises(StructentError, match="model must be 'boosting', 'linear' or 'auto'"):
        compare(features, labels, structure, model="forest")
    with pytest.raises(StructentError, match="give a model or an estimator"):
        compare(features, labels, structure, model="linear", estimator=TREES)
    with pytest.raises(StructentError, match="n_folds must be between 3 and 4, the number of gro"):
        compare(features, labels, structure, groups=np.arange(60) % 4, n_folds=5)
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
        ({"budget": float("nan")}, "budget must be a number of seconds above 0, or None, got nan"),
        ({"budget": -1}, "budget must be a number of seconds above 0, or None, got -1"),
        ({"budget": "600"}, "budget must be a number of seconds above 0, or None, got '600'"),
    ],
)
def test_a_comparison_that_could_not_be_run_is_refused(asked, message):
    structure, features, labels = planted_problem(60)
    with pytest.raises(StructentError, match=message):
        compare(features, labels, structure, **asked)


def test_what_is_chosen_is_a_candidate_or_none():
    structure = hierarchy({c: (c // 3,) for c in range(6)})
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=150)
    found = compare(rng.normal(size=(150, 2)), labels, structure, **SMALL)
    for arm, n_choices in (("structure", 3), ("scrambled", 3)):
        assert set(found.chosen[arm]) <= {NONE, *found.plan.candidates}
        assert sum(found.n_chosen(arm).values()) == n_choices
    assert circular(range(6)).classes == found.task.classes


# Two kinds of model


def circle_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(8, size=n_rows)
    angle = 2 * np.pi * labels / 8 + rng.normal(scale=0.6, size=n_rows)
    return np.column_stack([np.cos(angle), np.sin(angle)]), labels


def test_auto_goes_on_with_the_model_that_is_better_without_structure():
    features, labels = circle_rows(200)  # a linear model fits these
    once = {"n_folds": 3, "n_repeats": 1, "random_state": 0, "n_jobs": 2}
    found = compare(features, labels, circular(range(8)), **once)
    assert found.model == "linear"
    assert set(found.raced) == {"boosting", "linear"}
    assert found.raced["linear"] < found.raced["boosting"]
    alone = compare(features, labels, circular(range(8)), model="linear", **once)
    assert alone.raced == {}
    np.testing.assert_array_equal(alone.against_none.per_split, found.against_none.per_split)


def test_a_linear_model_takes_a_table_with_text_and_missing_values():
    features, labels = circle_rows(160)
    table = pl.DataFrame(
        {
            "right": [None if i % 11 == 0 else float(x) for i, x in enumerate(features[:, 0])],
            "up": np.where(features[:, 1] > 0, "up", "down"),
        }
    )
    found = compare(
        table, labels, circular(range(8)), model="linear", n_folds=3, n_repeats=1, random_state=0
    )
    assert found.task.features == ("right", "up")
    assert np.isfinite(found.scores["structure"].by_level).all()
    model = found.best_model()
    assert isinstance(model, StructuredLogisticRegression)
    assert model.predict_proba(table).shape == (160, 8)


def test_a_linear_model_has_a_sampler_in_its_prior_alone():
    features, labels = circle_rows(120)
    ring = SpanningTreePartitions(LabelGraph([(i, (i + 1) % 8) for i in range(8)]), 3, 0.5)
    found = compare(features, labels, ring, model="linear", n_folds=3, n_repeats=1, random_state=0)
    assert {candidate.mechanism for candidate in found.plan.candidates} == {"parameters"}


def test_another_engine_has_the_structure_in_its_loss_alone():
    pytest.importorskip("xgboost")
    features, labels = circle_rows(120)
    trees = StructuredBoostingClassifier(
        engine="xgboost", n_estimators=5, learning_rate=0.3, max_depth=2, random_state=0, n_jobs=1
    )
    found = compare(
        features, labels, circular(range(8)), estimator=trees, n_folds=3, n_repeats=1, n_jobs=1
    )
    assert {candidate.mechanism for candidate in found.plan.candidates} == {"loss"}


# The model that is kept


@pytest.fixture(scope="module")
def useful():
    structure, features, labels = planted_problem(2500, own=0.1)
    once = {"n_repeats": 1, "random_state": 0}
    found = compare(features[:500], labels[:500], structure, **FAST, **once)
    return found, features[500:], labels[500:]


def test_the_best_model_has_what_was_chosen_most_often(useful):
    found, features, _ = useful
    assert found.verdict.finding == "use it"
    candidate = found.recommended
    assert candidate == next(iter(found.n_chosen("structure")))
    model = found.best_model()
    assert model.leaf_smoothing == (candidate.sharing or None)
    assert model.structure_.singleton_weight == pytest.approx(candidate.loss)
    assert model.predict_proba(features).shape == (2000, len(found.task.classes))


def test_a_model_without_structure_is_kept_where_it_is_not_to_be_used():
    structure, features, labels = planted_problem(300)
    noise = np.random.default_rng(0).normal(size=features.shape)
    found = compare(noise, labels, structure, random_state=0, **SMALL)
    assert found.verdict.finding != "use it"
    assert found.recommended == NONE
    model = found.best_model()
    assert model.structure_.singleton_weight == 1
    assert not model.leaf_smoothing
    assert model.predict_level(noise[:3], "group").shape == (3,)  # it still knows the blocks


def test_the_best_model_is_calibrated_by_rows_that_its_models_had_not_seen(useful):
    found, features, labels = useful
    model = found.best_model()
    assert len(model.block_scores_) == 500
    answers = model.predict_blocks(features, confidence=0.9)
    covered = [label in answer for label, answer in zip(labels, answers.sets, strict=True)]
    # A chain has few sets, so that the least one that is enough may cover more.
    assert np.mean(covered) > 0.88
    assert np.mean([len(answer) for answer in answers.sets]) < len(found.task.classes) - 2


def test_the_calibration_is_by_models_like_the_one_that_is_kept():
    structure, features, labels = planted_problem(300, own=0.3)
    found = compare(features, labels, structure, random_state=1, **{**FAST, "n_repeats": 1})
    chosen = found.chosen["structure"]
    assert len(set(chosen)) > 1, "the splits must have chosen differently for this test"
    forced = replace(found, verdict=replace(found.verdict, finding="use it"))
    candidate = forced.recommended
    like = next(
        split.structure.tried
        for split in found.keeper.done
        if split.structure.tried.candidate == candidate
    )
    classes = sorted(structure.classes)
    proba = np.empty((300, len(classes)))
    for split in found.keeper.done:
        rest = np.setdiff1d(np.arange(300), split.test)
        settings = (
            split.structure.tried.settings
            if split.structure.tried.candidate == candidate
            else like.settings
        )
        model = clone(TREES).set_params(
            structure=structure, weights=candidate.loss,
            leaf_smoothing=candidate.sharing or None, **settings,
        )  # fmt: skip
        model.fit(features[rest], labels[rest])
        proba[split.test] = model.predict_proba(features[split.test])
    expected = block_scores(labels, proba, structure, classes=classes)
    np.testing.assert_allclose(forced.best_model().block_scores_, np.sort(expected), atol=1e-12)


def test_more_is_chosen_before_less_only_if_it_is_chosen_more_often(useful):
    found, _, _ = useful
    few, many = Candidate(loss=0.4), Candidate(0.4, 0.6)
    tied = replace(found, chosen={"structure": (few, many), "scrambled": (NONE,)})
    assert tied.recommended == few


def test_a_comparison_without_rows_trains_no_model(useful):
    with pytest.raises(StructentError, match="keeps no rows"):
        replace(useful[0], keeper=None).best_model()


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
        X, MIXED, GROUPS, n_folds=3, n_repeats=1, estimator=FEW, n_jobs=1,
        allow_blocks=True,
    )  # fmt: skip
    assert found.task.n_rows == 120
    assert sum(found.task.counts) == len(found.labels) == len(found.proba["none"]) == 60
    np.testing.assert_array_equal(found.labels, CODES[1::2])
    assert np.isfinite(found.scores["scrambled"].by_level).all()
    assert "60 rows are known only by a block" in found.task.notes[-1]


def test_every_fold_needs_a_row_of_known_class():
    few = np.array([f"g{code // 2}" for code in CODES], dtype=object)
    few[:2] = Y[:2]
    with pytest.raises(StructentError, match="every fold must have a row that is known by its cl"):
        compare(X, few, GROUPS, n_folds=3, estimator=FEW, n_jobs=1, allow_blocks=True)


def test_a_block_is_refused_with_a_hint_unless_it_is_allowed():
    with pytest.raises(StructentError, match=r"the name of a block; .* allow_blocks=True"):
        compare(X, MIXED, GROUPS, n_folds=3)


def test_settings_that_a_large_table_does_not_try_are_told(monkeypatch):
    largest = plans.TIERS["boosting"][-1]._replace(n_folds=3)
    monkeypatch.setitem(plans.TIERS, "linear", (largest,))
    structure, features, labels = planted_problem(240)
    found = compare(features, labels, structure, model="linear", random_state=0, n_jobs=1)
    assert found.reduced == (
        "1 setting of the structure tried in place of 6, because the table is large",
    )
    assert found.n_splits == 3
