"""The arms of one fold: what is drawn for them depends on the seed."""

import numpy as np
import pytest
from sklearn.base import clone

from structent import StructuredBoostingClassifier, compare
from structent.studies.arms import Contest
from structent.studies.fitting import checked_rows
from tests.estimators.problems import planted_problem

STRUCTURE, FEATURES, LABELS = planted_problem(120)
TREES = StructuredBoostingClassifier(
    n_estimators=2, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
)


@pytest.fixture
def drawn(monkeypatch):
    """Compare with a seed: the copies, and the states that validation rows are drawn from."""
    copies, states = [], []
    fitted, of = Contest._fitted, Contest.of

    def recorded(self, structure, singleton_weight):
        if structure != self.structure:
            copies.append(structure)
        return fitted(self, structure, singleton_weight)

    def recorded_of(estimator, asked, rows, fold_of, fold, rng):
        states.append(rng.get_state()[1].tolist())
        return of(estimator, asked, rows, fold_of, fold, rng)

    monkeypatch.setattr(Contest, "_fitted", recorded)
    monkeypatch.setattr(Contest, "of", recorded_of)

    def run(seed):
        copies.clear()
        states.clear()
        compare(
            FEATURES, LABELS, STRUCTURE, estimator=TREES, random_state=seed, n_jobs=1, n_folds=3,
            n_repeats=2, n_copies=2,
        )  # fmt: skip
        return list(copies), states[1:]  # the first is that of the probe

    return run


def test_every_seed_draws_other_scrambled_copies(drawn):
    first, second = drawn(0)[0], drawn(1)[0]
    assert drawn(0)[0] == first
    assert all(copy != other for copy, other in zip(first, second, strict=True))


def test_every_seed_fold_and_repeat_draws_other_validation_rows(drawn):
    first, second = drawn(0)[1], drawn(1)[1]
    assert drawn(0)[1] == first
    assert len(np.unique(np.array([*first, *second]), axis=0)) == 12


def test_without_structure_there_is_none_in_the_leaves_either():
    rows = checked_rows(FEATURES, LABELS, STRUCTURE, estimator=TREES, groups=None)
    fold_of = np.arange(len(rows)) % 3
    smooth = clone(TREES).set_params(leaf_smoothing=0.6)
    plain, other = (
        Contest.of(estimator, STRUCTURE, rows, fold_of, 0, np.random.RandomState(0))
        .without_structure()
        .predict_proba(FEATURES)
        for estimator in (TREES, smooth)
    )
    np.testing.assert_array_equal(plain, other)
