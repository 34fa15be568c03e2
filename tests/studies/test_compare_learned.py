"""Comparisons of a structure that is learned in every fold, from its training rows alone."""

import numpy as np
import pytest

from structent import RandomPartition, StructuredBoostingClassifier
from structent.studies import LearnedStructure, compare
from structent.studies.arms import Contest
from structent.studies.compare import seconds_needed
from structent.studies.comparison import Plan
from structent.studies.fitting import checked_rows
from tests.estimators.problems import planted_problem

TREES = StructuredBoostingClassifier(
    n_estimators=12, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)
TO_LEARN = LearnedStructure(n_levels=2, n_folds=3)
SMALL = {
    "estimator": TREES,
    "n_folds": 3,
    "n_repeats": 1,
    "n_copies": 1,
    "n_jobs": 2,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def found():
    _, features, labels = planted_problem(300, own=0.1)
    return compare(features, labels, TO_LEARN, **SMALL)


def test_a_planted_structure_is_learned_and_lowers_the_loss(found):
    planted, _, _ = planted_problem(300, own=0.1)
    groups = {frozenset(block) for block in planted.partitions[0].blocks}
    assert isinstance(found.structure, RandomPartition)
    assert groups in [
        {frozenset(block) for block in cut.blocks} for cut in found.structure.partitions
    ]
    assert found.against_none.mean < 0
    assert found.against_scrambled.mean < 0


def test_levels_are_the_same_in_every_fold(found):
    assert found.levels == ("level 1", "level 2", "class")
    assert found.scores["structure"].by_level.shape == (3, 3, 3)
    assert found.plan.n_learning == 3
    assert "learned again from the training rows of every fold" in found.task.notes[-1]


def test_the_report_shows_what_was_learned(found, tmp_path):
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "level 2" in text
    assert "learned again" in text


def test_the_structure_of_a_fold_depends_on_its_training_rows_alone():
    _, features, labels = planted_problem(200)
    features = np.column_stack([np.arange(200), features])  # the number of the row

    def contest(of_features):
        rows = checked_rows(of_features, labels, None, estimator=TREES, groups=None)
        fold_of = np.arange(200) % 3
        return Contest.of(TREES, TO_LEARN, rows, fold_of, 0, np.random.RandomState(0))

    before = contest(features)
    held_out = np.concatenate([before.test.features.codes, before.validation.features.codes])[
        :, 0
    ].astype(int)
    other = features.copy()
    other[held_out, 1:] = 9 * np.random.default_rng(1).normal(size=(len(held_out), 20))
    assert contest(other).structure == before.structure
    trained_on = before.train.features.codes[:, 0].astype(int)
    assert not set(trained_on) & set(held_out)
    other = features.copy()
    other[trained_on, 1:] = 9 * np.random.default_rng(1).normal(size=(len(trained_on), 20))
    assert contest(other).structure != before.structure


def test_scrambled_copies_are_of_the_structure_learned_in_the_fold(monkeypatch):
    _, features, labels = planted_problem(150)
    fitted = []

    def recorded(self, structure, singleton_weight):
        fitted.append((self.structure, structure, singleton_weight))
        return original(self, structure, singleton_weight)

    original = Contest._fitted
    monkeypatch.setattr(Contest, "_fitted", recorded)
    compare(features, labels, TO_LEARN, **{**SMALL, "n_jobs": 1})
    copies = [(own, used) for own, used, weight in fitted if weight < 1 and used != own]
    assert len(copies) == 9  # a copy with three weights in each of three folds
    for own, used in copies:
        for learned, scrambled in zip(own.partitions, used.partitions, strict=True):
            assert sorted(map(len, learned.blocks)) == sorted(map(len, scrambled.blocks))


def test_a_class_that_the_training_rows_lack_is_a_block_of_its_own():
    _, features, labels = planted_problem(150)
    kept = np.flatnonzero(labels != "class 03")
    kept = np.append(kept, np.flatnonzero(labels == "class 03")[:1])
    found = compare(features[kept], labels[kept], TO_LEARN, **SMALL)
    assert found.task.rare == ("class 03",)
    assert np.isfinite(found.scores["structure"].by_level).all()


def test_learning_takes_its_time_in_the_plan():
    given, learned = (Plan(5, 1, 1, (0.4,), (), n_learning) for n_learning in (0, 5))
    more = seconds_needed(learned, 2.0, 1) - seconds_needed(given, 2.0, 1)
    assert more == pytest.approx(5 * 5 * 2.0)
