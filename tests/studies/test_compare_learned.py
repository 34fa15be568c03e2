"""Comparisons of a structure that is learned in every fold, from its training rows alone."""

import numpy as np
import pytest

from structent import RandomPartition, StructuredBoostingClassifier
from structent.studies import LearnedStructure, compare
from structent.studies.arms import Contest
from structent.studies.fitting import checked_rows
from structent.studies.models import Trees
from structent.studies.plan import Plan, Size, plan_for
from tests.estimators.problems import planted_problem

TREES = StructuredBoostingClassifier(
    n_estimators=12, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)
TO_LEARN = LearnedStructure(n_levels=2, n_folds=3)
SMALL = {
    "estimator": TREES,
    "n_folds": 3,
    "n_repeats": 1,
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
    assert "learned again from the training rows of every split" in found.task.notes[-1]


def test_the_report_shows_what_was_learned(found, tmp_path):
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "level 2" in text
    assert "learned again" in text


def test_the_structure_of_a_split_depends_on_its_training_rows_alone():
    _, features, labels = planted_problem(200)
    features = np.column_stack([np.arange(200), features])  # the number of the row

    def contest(of_features):
        rows = checked_rows(of_features, labels, None, estimator=TREES, groups=None)
        rest = rows.outside(np.arange(200) % 3, 0)
        plan = Plan(3, 1, 1, 7, False, (), 0, n_learning=3)
        return Contest.of(
            Trees(TREES), TO_LEARN, rest, rows.coded.classes, plan, np.random.RandomState(0)
        )

    before = contest(features)
    ((train, _),) = before.parts
    trained_on = train.features.codes[:, 0].astype(int)
    held_out = np.setdiff1d(np.arange(200), trained_on)  # validation and test rows
    other = features.copy()
    other[held_out, 1:] = 9 * np.random.default_rng(1).normal(size=(len(held_out), 20))
    assert contest(other).structure == before.structure
    other = features.copy()
    other[trained_on, 1:] = 9 * np.random.default_rng(1).normal(size=(len(trained_on), 20))
    assert contest(other).structure != before.structure


def test_scrambled_copies_are_of_the_structure_learned_in_the_split(monkeypatch):
    _, features, labels = planted_problem(150)
    pairs = []

    def recorded(self, plain, structure, candidates):
        pairs.append((self.structure, structure))
        return original(self, plain, structure, candidates)

    original = Contest.best
    monkeypatch.setattr(Contest, "best", recorded)
    compare(features, labels, TO_LEARN, **{**SMALL, "n_jobs": 1})
    copies = [(own, used) for own, used in pairs if used != own]
    assert len(copies) == 3
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
    given, learned = (
        plan_for(Size(10**6, 20, 50), "boosting", n_learning=n_learning) for n_learning in (0, 5)
    )
    assert learned.minutes > given.minutes
