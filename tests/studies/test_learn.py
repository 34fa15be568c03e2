"""Which structure is learned, on whose rows, and the classifier that learns its own."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from structent import (
    LabelError,
    RandomPartition,
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureError,
    StructureLearner,
    learn_structure,
    structure_from_confusion,
    trivial,
)
from structent.estimators.folds import dealt_folds, grouped_folds
from structent.studies import LearnedStructure, out_of_fold_confusion
from structent.studies.learn import structure_of_levels
from tests.estimators.problems import PLANTS, log_loss, rows_of
from tests.studies.planted import Planted
from tests.studies.recording import RecordingClassifier, fits_of

LINEAR = StructuredLogisticRegression(tol=1e-3)
N_FOLDS = 4


# What is found


@pytest.mark.parametrize("scale", [0.4, 1.0])
@pytest.mark.parametrize("ratio", [2.0, 3.0])
def test_planted_partitions_come_back_where_they_can_be_told_apart(scale, ratio):
    rng = np.random.default_rng(0)
    planted = Planted.of((3, 3, 3), (scale * ratio, scale, scale / ratio), rng)
    X, y = planted.rows(20, rng)
    confusion = out_of_fold_confusion(X, y, estimator=LINEAR, n_folds=3, random_state=0)
    accuracies = planted.bayes_accuracies(rng)
    assert max(accuracies) >= 0.8
    for block_of, accuracy in zip(planted.partitions, accuracies, strict=True):
        if accuracy >= 0.8:
            # As many levels as there are cuts: one of them has as many blocks.
            cuts = structure_from_confusion(confusion, range(27), n_levels=25).partitions
            (cut,) = [cut for cut in cuts if cut.n_blocks == block_of.max() + 1]
            assert adjusted_rand_score(block_of, cut.block_of) >= 0.9


def test_a_learned_structure_lowers_the_log_loss_of_new_rows_where_one_is_planted():
    rng = np.random.default_rng(1)
    planted = Planted.of((3, 4), (1.0, 0.3), rng)
    X, y = planted.rows(10, rng)
    learned = learn_structure(X, y, estimator=LINEAR, n_folds=3, random_state=0)
    assert learned.singleton_weight < 1
    assert learned.partitions[0].block_of.tolist() == planted.partitions[0].tolist()
    X_new, y_new = planted.rows(100, rng)
    losses = [
        log_loss(StructuredLogisticRegression(structure).fit(X, y), X_new, y_new)
        for structure in (learned, trivial(range(12)))
    ]
    assert losses[0] < losses[1]


def test_where_classes_are_all_equally_alike_no_structure_is_taken():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 150)
    X = 2 * np.eye(6)[y] + rng.normal(size=(900, 6))
    model = StructuredLogisticRegression(C=10.0)
    # A light one would be: as a penalty, which any structure is.
    learned = learn_structure(
        X, y, estimator=model, n_folds=3, singleton_weights=(0.1,), random_state=0
    )
    assert learned == trivial(range(6))


def test_two_classes_need_no_fit():
    X = np.column_stack([np.arange(8), np.arange(8)])
    fits, learned = fits_of(
        lambda: learn_structure(X, np.arange(8) % 2, estimator=RecordingClassifier(), n_folds=3)
    )
    assert learned == trivial([0, 1])
    assert not fits


def test_the_same_seed_learns_the_same():
    rng = np.random.default_rng(0)
    X, y = Planted.of((3, 2), (1.0, 0.5), rng).rows(15, rng)
    first, again = (
        learn_structure(X, y, estimator=LINEAR, n_folds=3, random_state=5) for _ in range(2)
    )
    assert first == again


# No row is used both to learn a structure and to judge it


@pytest.fixture(scope="module")
def rows():
    """Rows of six classes, with their number in front; groups, four, are the folds."""
    rng = np.random.default_rng(0)
    features, labels = Planted.of((3, 2), (1.0, 0.6), rng, n_dimensions=5).rows(20, rng)
    order = rng.permutation(120)
    X = np.column_stack([np.arange(120), features[order]])
    return X, labels[order], np.arange(120) % N_FOLDS


def learn(X, y, groups):
    return learn_structure(
        X, y, estimator=RecordingClassifier(), groups=groups, random_state=0, n_jobs=1,
        n_folds=N_FOLDS, n_levels=(1, 2),
    )  # fmt: skip


def judged_on(fits, fold):
    """The structures of the models that predicted exactly the rows of a fold."""
    return [
        fit.structure for fit in fits if fit.predicted == fold and fit.structure.n_partitions > 1
    ]


def test_no_model_predicts_a_row_that_it_was_trained_on(rows):
    fits, _ = fits_of(lambda: learn(*rows))
    # Six pairs of folds, then none and 2 x 3 candidates in each of four.
    assert len(fits) == 6 + N_FOLDS * (1 + 6)
    assert all(fit.predicted and not fit.predicted & fit.trained_on for fit in fits)
    everything = set(range(120))
    held_out = [everything - fit.trained_on for fit in fits]
    assert sorted(map(len, held_out)) == [30] * 28 + [60] * 6
    assert all(fit.predicted == held for fit, held in zip(fits, held_out, strict=True))


@pytest.mark.parametrize("fold", range(N_FOLDS))
def test_a_structure_that_is_judged_on_a_fold_hangs_on_no_row_of_it(rows, fold):
    X, y, groups = rows
    fold_of = grouped_folds(groups, N_FOLDS, np.random.RandomState(0))
    changed = np.flatnonzero(fold_of == fold)
    rng = np.random.default_rng(1)
    X_other, y_other = X.copy(), y.copy()
    X_other[changed, 1:] = 5 * rng.normal(size=(len(changed), 5))
    y_other[changed] = rng.permutation(y[changed])
    before, _ = fits_of(lambda: learn(X, y, groups))
    after, _ = fits_of(lambda: learn(X_other, y_other, groups))
    same = judged_on(before, set(changed.tolist()))
    assert len(same) == 6
    assert judged_on(after, set(changed.tolist())) == same
    # The change was no small one: of the structures that may see these rows, some are others.
    others = [
        set(np.flatnonzero(fold_of == other).tolist()) for other in set(range(N_FOLDS)) - {fold}
    ]
    assert any(judged_on(after, seen) != judged_on(before, seen) for seen in others)


# Edges


def test_classes_with_fewer_rows_than_folds_are_learned_from_too():
    rng = np.random.default_rng(0)
    X, y = Planted.of((3, 2), (2.0, 0.5), rng).rows(10, rng)
    kept = np.append(np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:1])
    learned = learn_structure(X[kept], y[kept], estimator=LINEAR, n_folds=3, random_state=0)
    assert isinstance(learned, RandomPartition)
    assert learned.classes == tuple(range(6))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_levels": 3}, StructentError, "n_levels must be a sequence of numbers to try, got 3"),
        ({"n_levels": (0,)}, StructentError, "n_levels must be between 1 and"),
        ({"singleton_weights": ()}, StructentError, "singleton_weights must be a sequence"),
        ({"singleton_weights": (1.5,)}, StructentError, "between 0 and 1, got 1.5"),
        ({"y": np.full(30, np.nan)}, LabelError, "a label for every row"),
        ({"estimator": "linear"}, StructentError, "got str with 0"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 5
    with pytest.raises(error, match=message):
        learn_structure(**{"estimator": LINEAR, "X": X, "y": y, **arguments})


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_levels_are_called_alike_whichever_classes_have_rows(n_classes, n_levels, seed):
    rng = np.random.default_rng(seed)
    confusion = (
        rng.uniform(size=(n_classes, n_classes)) * (rng.uniform(size=n_classes) < 0.7)[:, None]
    )
    structure = structure_of_levels(confusion, tuple(range(n_classes)), n_levels)
    assert structure.classes == tuple(range(n_classes))
    absent = np.flatnonzero(confusion.sum(axis=1) == 0)
    if len(absent) == n_classes:
        assert structure == trivial(range(n_classes))
        return
    n_cuts = max(0, min(n_levels, n_classes - 2))
    assert structure.level_of == (*(f"level {n}" for n in range(1, n_cuts + 1)), "class")
    assert structure.is_nested
    for partition in structure.partitions:
        assert all(len(partition.blocks[partition.block_of[c]]) == 1 for c in absent)


def test_the_structure_of_rows_is_that_of_their_confusion():
    rng = np.random.default_rng(0)
    X, y = Planted.of((3, 2), (1.0, 0.5), rng).rows(10, rng)
    model = StructuredLogisticRegression()
    learned = LearnedStructure(n_levels=2, n_folds=4).of_rows(X, y, estimator=model, random_state=3)
    confusion = out_of_fold_confusion(X, y, estimator=model, n_folds=4, random_state=3)
    assert learned == structure_from_confusion(confusion, range(6), n_levels=2)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(StructureError, match="n_levels must be between 1 and"):
        LearnedStructure(n_levels=0)
    with pytest.raises(StructureError, match="n_folds must be between 3 and"):
        LearnedStructure(n_folds=2)


MODEL = StructuredLogisticRegression(tol=1e-8, max_iter=2000)


def by_scikit_learn(X, y, folds, model=None):
    split = PredefinedSplit(folds)
    model = model or LogisticRegression(tol=1e-8, max_iter=2000)
    proba = cross_val_predict(model, X, y, cv=split, method="predict_proba")
    return np.array([proba[y == label].sum(axis=0) for label in np.unique(y)])


def test_the_confusion_is_that_of_scikit_learns_out_of_fold_probabilities():
    X, y = rows_of(["b", "a", "c"], n=90)
    found = out_of_fold_confusion(X, y, estimator=MODEL, n_folds=4, random_state=7)
    codes = np.unique(y, return_inverse=True)[1]
    folds = dealt_folds(codes, 4, np.random.RandomState(7))
    np.testing.assert_allclose(found, by_scikit_learn(X, y, folds), atol=1e-4)


def test_rows_of_a_group_share_a_fold():
    X, y = rows_of(["a", "b", "c"], n=90)
    groups = np.arange(90) // 3
    found = out_of_fold_confusion(X, y, estimator=MODEL, groups=groups, random_state=1, n_folds=3)
    folds = grouped_folds(groups, 3, np.random.RandomState(1))
    np.testing.assert_allclose(found, by_scikit_learn(X, y, folds), atol=1e-4)


def test_a_pipeline_and_a_sparse_matrix_are_taken_too():
    X, y = rows_of(["a", "b", "c"], n=60)
    pipeline = make_pipeline(StandardScaler(with_mean=False), MODEL)
    dense = out_of_fold_confusion(X, y, estimator=pipeline, n_folds=3, random_state=0)
    sparse = out_of_fold_confusion(
        sp.coo_array(X), y, estimator=pipeline, n_folds=3, random_state=0
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_a_class_of_one_row_is_predicted_by_models_that_do_not_know_it():
    X, y = rows_of(["a", "b", "c"], n=60)
    y[y == "c"] = "b"
    y[0] = "c"
    found = out_of_fold_confusion(X, y, estimator=MODEL, n_folds=3, random_state=0)
    np.testing.assert_allclose(found.sum(axis=1), [(y == label).sum() for label in "abc"])
    assert found[2, 2] < 0.05


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_folds": 2}, StructureError, "n_folds must be between 3 and 30, got 2"),
        ({"groups": [1, 2]}, StructentError, r"each of the 30 rows, got shape \(2,\)"),
        ({"y": ["a"] * 30}, LabelError, "two classes or more"),
        ({"estimator": LogisticRegression()}, StructentError, "with one parameter structure"),
        ({"estimator": StructuredLogisticRegression(PLANTS)}, StructentError, "structure=None"),
        (
            {"estimator": StructuredLogisticRegression(weights="auto")},
            StructentError,
            "weights='auto'",
        ),
    ],
)
def test_bad_rows_are_refused(arguments, error, message):
    X, y = rows_of(["a", "b", "c"], n=30)
    given = {"estimator": MODEL, "X": X, "y": y, **arguments}
    with pytest.raises(error, match=message):
        out_of_fold_confusion(**given)


# The classifier that learns its structure


FEW = {"n_folds": 3, "n_levels": (1,), "singleton_weights": (0.4,)}
FAILS = {"check_estimators_nan_inf": "its labels are floats, which no structure can hold"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [StructureLearner(StructuredLogisticRegression(), **FEW)],
    expected_failed_checks=lambda _: FAILS,
)
def test_the_learner_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X, codes = Planted.of((3, 2), (1.5, 0.3), rng, n_dimensions=8).rows(12, rng)
    return X, np.array(list("uvwxyz"))[codes]


def test_it_is_the_estimator_with_the_learned_structure(planted):
    X, y = planted
    linear = StructuredLogisticRegression()
    model = StructureLearner(linear, n_folds=3, random_state=0).fit(X, y)
    structure = learn_structure(X, y, estimator=linear, n_folds=3, random_state=0)
    assert model.structure_ == structure
    assert model.structure_.levels["level 1"][0].blocks == (("u", "v"), ("w", "x"), ("y", "z"))
    alone = StructuredLogisticRegression(structure).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert linear.structure is None


def test_it_works_within_pipelines_searches_and_around_a_pipeline(planted):
    X, y = planted
    around = StructureLearner(
        make_pipeline(StandardScaler(), StructuredLogisticRegression()), **FEW, random_state=0
    )
    search = GridSearchCV(
        around, {"estimator__structuredlogisticregression__C": [0.1, 1.0]}, cv=2
    ).fit(X, y)
    assert search.best_estimator_.structure_.n_classes == 6
    within = make_pipeline(StandardScaler(), clone(around))
    assert cross_val_score(within, X, y, cv=2, scoring="neg_log_loss").mean() > -np.log(6)


def test_boosted_trees_take_a_table_and_keep_its_names(planted):
    X, y = planted
    table = pd.DataFrame(X, columns=[f"feature {i}" for i in range(8)])
    trees = StructuredBoostingClassifier(
        n_estimators=10, learning_rate=0.3, max_depth=3, random_state=0, n_jobs=1
    )
    model = StructureLearner(trees, **FEW, random_state=0).fit(table, y)
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert model.predict(table).shape == (72,)


def test_before_it_is_fitted_it_says_so(planted):
    model = StructureLearner(StructuredLogisticRegression())
    with pytest.raises(NotFittedError):
        model.predict(planted[0])
    with pytest.raises(NotFittedError):
        model.predict_proba(planted[0])
    assert not hasattr(model, "n_features_in_")
