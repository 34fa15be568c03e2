"""Rows that are checked and encoded once per study, and the estimator that is cloned for it."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structent import (
    StructentError,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    compare,
    learn_structure,
    ordinal,
    structure_test,
)
from structent.estimators import boosting, classes, columns
from structent.estimators.columns import CodedTable
from structent.studies import LearnedStructure, fitting, partition_gains
from structent.studies.fitting import (
    asked_structure,
    checked_rows,
    drawn_seed,
    seeded,
    structure_parameter,
)
from tests.estimators.problems import PER_CLASS, planted_problem, with_engine

STRUCTURE, NUMBERS, LABELS = planted_problem(150)
GROUPS = np.arange(150) // 3
QUICK = {"n_estimators": 4, "learning_rate": 0.3, "max_depth": 3, "random_state": 0, "n_jobs": 1}
TREES = StructuredBoostingClassifier(**QUICK)
SMALL = {"random_state": 0, "n_jobs": 1, "n_folds": 3}


def table_of(kind):
    """Numbers with gaps, and categories of which some are rare and some missing."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", "teal"], size=150).astype(object)
    colour[:2], colour[2:20] = "rare", None
    length = np.where(rng.uniform(size=150) < 0.2, np.nan, NUMBERS[:, 0])
    columns_of = {"length": length, "colour": colour, "width": NUMBERS[:, 1]}
    return kind({name: list(values) for name, values in columns_of.items()})


class PlainTrees(StructuredBoostingClassifier):
    """Trees that a study does not know: they get the table and the labels as they are."""


class PlainLinear(StructuredLogisticRegression):
    """The same for the linear model."""


# Once per study


@pytest.fixture
def calls(monkeypatch):
    """How often labels are checked, columns learned, and categories looked at one by one."""
    counted = Counter()

    def count(owner, name):
        original = getattr(owner, name)

        def counting(*arguments, **options):
            counted[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    for module in (boosting, classes, fitting):
        if hasattr(module, "checked_labels"):
            count(module, "checked_labels")
    count(columns, "_categories")
    count(columns, "_codes")
    monkeypatch.setattr(columns.Columns, "of", counting_class_method(columns.Columns.of, counted))
    return counted


def counting_class_method(original, counted):
    def of(X):
        counted["of"] += 1
        return original(X)

    return of


ONCE = {"checked_labels": 1, "of": 1, "_categories": 3, "_codes": 1}  # three columns, one of text


@pytest.mark.parametrize(
    "study",
    [
        lambda X, y: compare(
            X, y, STRUCTURE, estimator=TREES, n_repeats=1, learning_curve=True, **SMALL
        ),
        lambda X, y: compare(
            X, y, LearnedStructure(n_levels=1, n_folds=3), estimator=TREES, n_repeats=1,
            n_copies=1, **SMALL,
        ),
        lambda X, y: structure_test(X, y, STRUCTURE, estimator=TREES, n_permutations=2, **SMALL),
        lambda X, y: partition_gains(X, y, STRUCTURE, estimator=TREES, **SMALL),
        lambda X, y: learn_structure(
            X, y, estimator=TREES, n_levels=(1,), singleton_weights=(0.4,), **SMALL
        ),
    ],
    ids=["compare", "compare learned", "structure_test", "partition_gains", "learn_structure"],
)  # fmt: skip
def test_labels_are_checked_and_categories_looked_at_once_per_study(calls, study):
    study(table_of(pd.DataFrame), LABELS)
    assert dict(calls) == ONCE


def test_block_labels_are_checked_once_per_study(calls):
    labels = LABELS.astype(object)
    labels[::3] = [STRUCTURE.partitions[0].names[0]] * 50
    compare(
        table_of(pd.DataFrame), labels, STRUCTURE, estimator=TREES, n_repeats=1, n_copies=1,
        allow_blocks=True, **SMALL,
    )  # fmt: skip
    assert dict(calls) == ONCE


def test_the_linear_model_is_given_encoded_labels(calls):
    model = StructuredLogisticRegression(tol=1e-2)
    structure_test(NUMBERS, LABELS, STRUCTURE, estimator=model, n_permutations=2, **SMALL)
    assert dict(calls) == {"checked_labels": 1}


# The same figures as without


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"colsample": 0.7, "max_depth": "auto"},
        with_engine({**PER_CLASS, "colsample": 0.7}),
    ],
)
def test_coded_rows_give_the_figures_of_plain_ones(kind, parameters):
    given = {**QUICK, **parameters}
    found = [
        compare(
            table_of(kind), LABELS, STRUCTURE, estimator=trees(**given), groups=GROUPS,
            n_repeats=1, n_copies=1, **SMALL,
        )
        for trees in (StructuredBoostingClassifier, PlainTrees)
    ]  # fmt: skip
    for arm in ("none", "structure"):
        np.testing.assert_array_equal(found[0].proba[arm], found[1].proba[arm])
    for arm, scores in found[0].scores.items():
        np.testing.assert_array_equal(scores.by_level, found[1].scores[arm].by_level)


def test_coded_blocks_give_the_figures_of_plain_ones():
    labels = LABELS.astype(object)
    labels[::3] = [STRUCTURE.partitions[0].names[0]] * 50
    labels[1] = frozenset(STRUCTURE.classes[:2])
    first, second = (
        compare(
            NUMBERS, labels, STRUCTURE, estimator=trees(**QUICK), allow_blocks=True, n_repeats=1,
            n_copies=1, **SMALL,
        )
        for trees in (StructuredBoostingClassifier, PlainTrees)
    )  # fmt: skip
    np.testing.assert_array_equal(first.proba["structure"], second.proba["structure"])


@pytest.mark.parametrize("weights", [None, "auto"])
def test_coded_labels_give_the_linear_models_figures(weights):
    first, second = (
        structure_test(
            NUMBERS, LABELS, STRUCTURE, n_permutations=1,
            estimator=model(weights=weights, tol=1e-2), **SMALL,
        )
        for model in (StructuredLogisticRegression, PlainLinear)
    )  # fmt: skip
    np.testing.assert_array_equal(first.losses, second.losses)
    np.testing.assert_array_equal(first.null_losses, second.null_losses)


# Rows


def test_a_block_means_the_same_classes_in_scrambled_copies():
    partition = STRUCTURE.partitions[0]
    labels = LABELS.astype(object)
    labels[:50] = partition.names[1]
    rows = checked_rows(NUMBERS, labels, STRUCTURE, estimator=TREES, groups=None, allow_blocks=True)
    assert set(rows.labels[:50]) == {frozenset(partition.blocks[1])}
    assert not rows.has_class[:50].any()
    assert rows.has_class[50:].all()


def test_rows_are_taken_with_all_that_belongs_to_them():
    rows = checked_rows(NUMBERS, LABELS, STRUCTURE, estimator=TREES, groups=GROUPS)
    fold_of = rows.folds(3, np.random.RandomState(0))
    inside, outside = rows.inside(fold_of, 1), rows.outside(fold_of, 1)
    assert isinstance(inside.features, CodedTable)
    np.testing.assert_array_equal(inside.labels, LABELS[fold_of == 1])
    np.testing.assert_array_equal(np.asarray(inside.target), inside.labels)
    np.testing.assert_array_equal(outside.features.codes, NUMBERS[fold_of != 1].astype("f4"))
    assert not set(inside.groups) & set(outside.groups)


def test_a_list_of_rows_is_taken_too():
    rows = checked_rows(NUMBERS.tolist(), LABELS, STRUCTURE, estimator=PlainLinear(), groups=None)
    assert rows.take(np.array([4, 2])).features == [NUMBERS[4].tolist(), NUMBERS[2].tolist()]


# The estimator and the seed


def test_the_parameter_of_a_step_is_found():
    pipeline = make_pipeline(StandardScaler(), StructuredLogisticRegression())
    assert structure_parameter(pipeline) == "structuredlogisticregression__structure"
    with pytest.raises(StructentError, match="got StandardScaler with 0"):
        structure_parameter(StandardScaler())
    with pytest.raises(StructentError, match=r"write StandardScaler\(\)"):
        structure_parameter(StandardScaler)


def test_a_seed_of_its_own_is_kept():
    pipeline = make_pipeline(StandardScaler(), StructuredLogisticRegression())
    assert seeded(pipeline, 5)[-1].random_state == 5
    assert seeded(StructuredLogisticRegression(random_state=3), 5).random_state == 3


def test_a_seed_is_given_drawn_from_a_generator_or_fresh():
    assert drawn_seed(7) == 7
    first, second = (drawn_seed(np.random.RandomState(0)) for _ in range(2))
    assert first == second
    assert len({drawn_seed(None) for _ in range(5)}) > 1
    with pytest.raises(StructentError, match="random_state must be a whole number, got 'one'"):
        drawn_seed("one")


def test_a_structure_that_cannot_be_scrambled_is_refused():
    class Sampler:
        classes = ("a", "b")

        def sample(self, iteration):
            raise NotImplementedError

    with pytest.raises(StructentError, match="a structure that can be scrambled"):
        asked_structure(Sampler(), LABELS)


def test_a_short_form_asks_about_the_structure_that_it_names():
    X, y = NUMBERS[:, :2], np.tile([1, 2, 3, 4, 5, 6], 25)
    given = compare(X, y, circular([1, 2, 3, 4, 5, 6], width=2), estimator=TREES, **SMALL)
    named = compare(X, y, "circular:width=2", estimator=TREES, **SMALL)
    assert named.structure == given.structure
    assert named.against_none.per_split.tolist() == given.against_none.per_split.tolist()
    tested = structure_test(X, y, "ordinal", estimator=TREES, n_permutations=3, **SMALL)
    assert tested.structure == ordinal([1, 2, 3, 4, 5, 6])
