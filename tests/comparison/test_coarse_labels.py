"""Comparisons where some rows are known by a block alone."""

import numpy as np
import pytest

from structent import StructentError, StructuredBoostingClassifier, hierarchy
from structent.studies import compare
from structent.studies.compare import checked_rows

GROUPS = hierarchy({f"c{i}": (f"g{i // 2}",) for i in range(4)}, level_names=["group"])
RNG = np.random.default_rng(0)
CODES = RNG.integers(4, size=120)
X = np.eye(4)[CODES] + RNG.normal(size=(120, 4))
Y = np.array(GROUPS.classes, dtype=object)[CODES]
MIXED = Y.copy()
MIXED[::2] = [f"g{code // 2}" for code in CODES[::2]]
FEW = StructuredBoostingClassifier(n_estimators=4, learning_rate=0.3, random_state=0, n_jobs=1)


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


def test_a_block_means_the_same_classes_in_scrambled_copies():
    rows = checked_rows(X, MIXED, None, GROUPS, allow_blocks=True)
    of_g1 = rows.labels[MIXED == "g1"]
    assert all(label == frozenset({"c2", "c3"}) for label in of_g1)


def test_every_fold_needs_a_row_of_known_class():
    few = np.array([f"g{code // 2}" for code in CODES], dtype=object)
    few[:2] = Y[:2]
    with pytest.raises(StructentError, match="every fold must have a row that is known by its cl"):
        compare(X, few, GROUPS, n_folds=3, estimator=FEW, n_jobs=1, allow_blocks=True)


def test_a_block_is_refused_with_a_hint_unless_it_is_allowed():
    with pytest.raises(StructentError, match=r"the name of a block; .* allow_blocks=True"):
        compare(X, MIXED, GROUPS, n_folds=3)
