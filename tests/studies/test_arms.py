"""The arms of one split: what is drawn for them, and on which rows they are chosen."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from structent import StructuredBoostingClassifier, compare, trivial
from structent.metrics import block_log_loss
from structent.studies.arms import Contest, Split, TimeIsUpError, run_split
from structent.studies.fitting import checked_rows
from structent.studies.models import Trees
from structent.studies.plan import NONE, Candidate, Plan
from tests.estimators.problems import planted_problem

STRUCTURE, FEATURES, LABELS = planted_problem(120)
TREES = StructuredBoostingClassifier(
    n_estimators=2, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)
PLAN = Plan(3, 1, 2, 3, True, (Candidate(loss=0.4), Candidate(sharing=0.5)), 0)
ROWS = checked_rows(FEATURES, LABELS, STRUCTURE, estimator=TREES, groups=None)
SPLIT = Split(np.arange(120) % 3, 1, 0, 0)


@pytest.fixture
def drawn(monkeypatch):
    """Compare with a seed: the copies, and the states that validation rows are drawn from."""
    copies, states = [], []
    best, of = Contest.best, Contest.of

    def recorded(self, plain, structure, candidates):
        if structure != self.structure:
            copies.append(structure)
        return best(self, plain, structure, candidates)

    def recorded_of(model, asked, rest, classes, plan, rng, check_time):
        states.append(rng.get_state()[1].tolist())
        return of(model, asked, rest, classes, plan, rng, check_time)

    monkeypatch.setattr(Contest, "best", recorded)
    monkeypatch.setattr(Contest, "of", recorded_of)

    def run(seed):
        copies.clear()
        states.clear()
        compare(
            FEATURES, LABELS, STRUCTURE, estimator=TREES, random_state=seed, n_jobs=1, n_folds=3,
            n_repeats=2, n_copies=2,
        )  # fmt: skip
        return list(copies), list(states)

    return run


def test_every_seed_draws_other_scrambled_copies(drawn):
    first, second = drawn(0)[0], drawn(1)[0]
    assert drawn(0)[0] == first
    assert len(first) == 12
    assert all(copy != other for copy, other in zip(first, second, strict=True))


def test_every_seed_fold_and_repeat_draws_other_validation_rows(drawn):
    first, second = drawn(0)[1], drawn(1)[1]
    assert drawn(0)[1] == first
    assert len(np.unique(np.array([*first, *second]), axis=0)) == 12


def contest_of(model, plan=PLAN):
    rest = ROWS.outside(SPLIT.fold_of, SPLIT.fold)
    return Contest.of(model, STRUCTURE, rest, ROWS.coded.classes, plan, SPLIT.rng(0))


def test_every_training_row_validates_once_if_all_do():
    contest = contest_of(Trees(TREES))
    validated = np.concatenate([validation.features.codes for _, validation in contest.parts])
    assert len(contest.parts) == 3
    np.testing.assert_array_equal(
        np.sort(validated[:, 0]), np.sort(contest.rest.features.codes[:, 0])
    )
    for train, validation in contest.parts:
        assert len(train) + len(validation) == len(contest.rest) == 80


def test_else_the_first_part_validates_alone():
    contest = contest_of(Trees(TREES), replace(PLAN, n_parts=8, chooses_on_all=False))
    ((train, validation),) = contest.parts
    assert (len(train), len(validation)) == (70, 10)


def test_the_choice_is_the_least_validation_loss_and_a_tie_is_no_structure():
    class Known(Trees):  # losses by candidate; no class of ours inherits outside of tests
        def tried(self, parts, structure, candidate, plain):
            found = super().tried(parts, structure, candidate, plain)
            return found._replace(loss=losses[candidate])

    plain, loss, sharing = NONE, *PLAN.candidates
    contest = contest_of(Known(TREES))
    losses = {plain: 1.0, loss: 0.9, sharing: 0.8}
    assert contest.best(contest.plain(), STRUCTURE, PLAN.candidates).candidate == sharing
    losses = {plain: 1.0, loss: 1.0, sharing: 1.0}
    assert contest.best(contest.plain(), STRUCTURE, PLAN.candidates).candidate == plain


def test_scores_are_those_of_models_of_all_training_rows():
    scores = run_split(Trees(TREES), STRUCTURE, ROWS, PLAN, SPLIT, 0)
    rest, test = ROWS.outside(SPLIT.fold_of, 1), ROWS.inside(SPLIT.fold_of, 1)
    np.testing.assert_array_equal(scores.test, np.flatnonzero(SPLIT.fold_of == 1))
    assert len(scores.copies) == 2
    settings = scores.none.tried.settings
    model = clone(TREES).set_params(structure=STRUCTURE, weights=1.0, **settings)
    proba = model.fit(rest.features, rest.target).predict_proba(test.features)
    expected = block_log_loss(test.labels, proba, trivial(model.classes_.tolist()))
    assert scores.none.by_level[-1, 0] == pytest.approx(expected)


def test_without_structure_there_is_none_in_the_leaves_either():
    smooth = clone(TREES).set_params(leaf_smoothing=0.6)
    first, second = (
        run_split(Trees(trees), STRUCTURE, ROWS, PLAN, SPLIT, 0).none.proba
        for trees in (TREES, smooth)
    )
    np.testing.assert_array_equal(first, second)


def test_a_split_is_given_up_when_the_time_is_up():
    calls = []

    def check():
        calls.append(None)
        if len(calls) == 4:
            raise TimeIsUpError

    with pytest.raises(TimeIsUpError):
        run_split(Trees(TREES), STRUCTURE, ROWS, PLAN, SPLIT, 0, check)
    assert len(calls) == 4
