"""The choice of weights: by the caller, or by cross-validation."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_matrix
from sklearn.base import BaseEstimator

from structent import (
    FixedStructure,
    LabelError,
    RandomPartition,
    SpanningTreePartitions,
    StructureError,
    hierarchy,
    ordinal,
    trivial,
)
from structent.estimators.classes import given_structure
from structent.estimators.linear import StructuredLogisticRegression
from structent.estimators.weights import chosen_structure, weights_of
from structent.structure.catalog import california_counties
from tests.estimators.problems import log_loss, planted_problem

PLANTS = hierarchy({"oak": ("tree",), "ash": ("tree",), "rose": ("flower",)})
LABELS = np.array(["oak", "ash", "rose"] * 4)
ROWS = np.arange(12.0)[:, None]


class Confident(BaseEstimator):
    """Gives its label in the one column of X the probability ``of[singleton_weight]``."""

    fits = ()

    def __init__(self, structure=None, *, weights=None, of=None, random_state=None):
        self.structure = structure
        self.weights = weights
        self.of = of
        self.random_state = random_state

    def fit(self, X, y, sample_weight):
        self.classes_ = np.array(sorted(self.structure.classes))
        rows = np.asarray(X.todense() if hasattr(X, "todense") else X)[:, 0]
        seed = self.random_state
        Confident.fits += ((rows.tolist(), y.tolist(), sample_weight.tolist(), seed),)
        return self

    def predict_proba(self, X):
        weight = weights_of(self.structure)[-1]
        return np.full((X.shape[0], len(self.classes_)), self.of[round(float(weight), 9)])


@pytest.fixture(autouse=True)
def no_fits():
    Confident.fits = ()


def confident(structure=PLANTS, of=(0.5, 0.5, 0.5, 0.5), **parameters):
    by_weight = dict(zip((1.0, 0.7, 0.4, 0.1), of, strict=True))
    return Confident(structure, weights="auto", of=by_weight, random_state=0, **parameters)


# Given by the caller


def chosen_for(model, features, labels, sample_weight):
    """Return the structure that the estimator would be fitted with."""
    structure = given_structure(model.structure, labels, allow_blocks=False)
    return chosen_structure(model, structure, features, labels, sample_weight)


def test_none_keeps_the_structure_and_an_array_reweights_it():
    assert chosen_for(Confident(PLANTS), ROWS, LABELS, None) is PLANTS
    reweighted = chosen_for(Confident(PLANTS, weights=[0.2, 0.8]), ROWS, LABELS, None)
    assert reweighted == PLANTS.reweight([0.2, 0.8])
    assert weights_of(reweighted).tolist() == [0.2, 0.8]


@pytest.mark.parametrize("weight", [0.2, np.float32(0.25), 1])
def test_a_number_is_the_weight_of_the_singletons(weight):
    for structure in (PLANTS, FixedStructure(PLANTS)):
        chosen = chosen_for(Confident(structure, weights=weight), ROWS, LABELS, None)
        assert weights_of(chosen).tolist() == [1 - weight, weight]


def test_a_short_form_is_given_weights_as_a_structure_is():
    labels = np.array([1, 2, 3] * 4)
    chosen = chosen_for(Confident("ordinal", weights=0.2), ROWS, labels, None)
    assert chosen == ordinal([1, 2, 3]).with_singleton_weight(0.2)
    assert chosen_for(Confident("ordinal"), ROWS, labels, None) == ordinal([1, 2, 3])


def test_without_a_structure_there_is_nothing_to_choose():
    assert chosen_for(Confident(), ROWS, LABELS, None) is None
    assert chosen_for(Confident(weights="auto"), ROWS, LABELS, None) is None


@pytest.mark.parametrize("structure", [trivial(["oak", "rose"]), FixedStructure(trivial([1]))])
def test_a_trivial_structure_is_kept_without_a_fit(structure):
    assert chosen_for(confident(structure), ROWS, LABELS, None) is structure
    assert Confident.fits == ()


@pytest.mark.parametrize(
    ("structure", "weights", "message"),
    [
        (None, [1.0], "need a RandomPartition, got no structure"),
        (FixedStructure(PLANTS), [0.5, 0.5], "need a RandomPartition, got FixedStructure"),
        (PLANTS, "best", "weights must be None, 'auto', the weight of the singletons or"),
        (PLANTS, 1.5, "singleton_weight must be between 0 and 1, got 1.5"),
        (None, 0.5, "need a RandomPartition, got no structure"),
        (PLANTS, [0.5, 0.6], "weights must sum to 1"),
        ({"oak": "tree"}, "auto", "structure must be a RandomPartition or a sampler, got dict"),
        ({"oak": "tree"}, None, "structure must be a RandomPartition or a sampler, got dict"),
    ],
)
def test_wrong_weights_are_refused(structure, weights, message):
    with pytest.raises(StructureError, match=message):
        chosen_for(Confident(structure, weights=weights), ROWS, LABELS, None)


def test_a_sampler_whose_singleton_weight_cannot_be_set_is_refused():
    class Drawn:
        classes = PLANTS.classes

        def sample(self, iteration):  # noqa: ARG002  always the same
            return PLANTS

    for weights in ("auto", 0.5):
        model = Confident(Drawn(), weights=weights)
        with pytest.raises(StructureError, match="with_singleton_weight, got Drawn; leave weights"):
            chosen_for(model, ROWS, LABELS, None)


# By cross-validation


@pytest.mark.parametrize(
    ("of", "chosen"),
    [
        ((0.2, 0.3, 0.4, 0.5), [0.9, 0.1]),
        ((0.2, 0.5, 0.4, 0.3), [0.3, 0.7]),
        ((0.5, 0.4, 0.3, 0.2), [0.0, 1.0]),
        ((0.5, 0.5, 0.5, 0.5), [0.0, 1.0]),
    ],
)
def test_the_least_held_out_log_loss_wins_and_ties_go_to_no_structure(of, chosen):
    structure = chosen_for(confident(of=of), ROWS, LABELS, None)
    np.testing.assert_allclose(structure.weights, chosen)
    assert structure.partitions == PLANTS.partitions


def test_a_sampler_keeps_its_partitions():
    counties = SpanningTreePartitions(california_counties(), 10, 0.5, seed=3)
    labels = np.array(counties.classes[:6] * 2)
    chosen = chosen_for(confident(counties, (0.2, 0.3, 0.5, 0.4)), ROWS, labels, None)
    assert chosen == SpanningTreePartitions(california_counties(), 10, 0.4, seed=3)
    np.testing.assert_allclose(weights_of(chosen), [0.6, 0.4])


def test_every_candidate_trains_on_the_same_two_thirds_of_each_class_with_the_same_seed():
    chosen_for(confident(), ROWS, LABELS, None)
    assert len(Confident.fits) == 12
    assert Confident.fits[:3] * 4 == Confident.fits
    left_out = [row for rows, *_ in Confident.fits[:3] for row in set(range(12)) - set(rows)]
    assert sorted(left_out) == list(range(12))
    for rows, labels, weights, seed in Confident.fits[:3]:
        assert isinstance(seed, int)
        assert [LABELS[int(row)] for row in rows] == labels
        assert weights == [1.0] * len(rows)
        counts = np.unique(labels, return_counts=True)[1]
        assert counts.min() >= 2
        assert counts.max() <= 3


def test_held_out_rows_count_by_their_weight():
    # The one heavy row is a rose, which the model without structure knows better.
    class KnowsRoses(Confident):
        def predict_proba(self, X):
            plain = self.structure.singleton_weight == 1.0
            return np.tile([0.1, 0.1, 0.8] if plain else [0.4, 0.4, 0.2], (len(X), 1))

    model = KnowsRoses(PLANTS, weights="auto", random_state=0)
    weights = np.where(np.arange(12) == 2, 50.0, 1.0)
    assert chosen_for(model, ROWS, LABELS, None).singleton_weight == pytest.approx(0.7)
    assert chosen_for(model, ROWS, LABELS, weights).singleton_weight == 1.0


def test_rows_without_weight_are_left_out():
    weights = np.repeat([0.0, 2.0], 6)
    chosen_for(confident(), ROWS, LABELS, weights)
    assert {row for rows, *_ in Confident.fits for row in rows} == set(range(6, 12))
    assert {weight for _, _, weights, _ in Confident.fits for weight in weights} == {2.0}


def test_classes_with_fewer_rows_than_folds_are_no_error():
    labels = np.array(["oak"] * 10 + ["ash", "rose"])
    structure = chosen_for(confident(of=(0.2, 0.2, 0.2, 0.5)), ROWS, labels, None)
    assert structure.singleton_weight == pytest.approx(0.1)


def test_a_label_outside_the_structure_is_named_before_any_fit():
    with pytest.raises(LabelError, match="'oats' is not a class of the structure, whose 3 are"):
        chosen_for(confident(), ROWS, np.array(["oats", *LABELS[1:]]), None)
    assert Confident.fits == ()


def test_no_fold_trains_on_a_single_class():
    labels = np.array(["oak"] * 11 + ["rose"])
    chosen_for(confident(), ROWS, labels, None)
    assert len(Confident.fits) == 8
    assert all(len(set(labels)) == 2 for _, labels, *_ in Confident.fits)


def test_where_no_fold_can_be_trained_no_structure_is_chosen():
    structure = chosen_for(confident(), ROWS[:2], LABELS[1:3], None)
    assert structure.singleton_weight == 1.0
    assert Confident.fits == ()


@pytest.mark.parametrize(
    "table",
    [
        coo_matrix(ROWS),
        pd.DataFrame({"height": ROWS[:, 0]}, index=range(50, 62)),
        pl.DataFrame({"height": ROWS[:, 0]}),
        ROWS,
    ],
    ids=["sparse", "pandas", "polars", "numpy"],
)
def test_any_table_is_dealt_out_by_rows(table):
    chosen_for(confident(), table, LABELS, None)
    for rows, labels, *_ in Confident.fits:
        assert [LABELS[int(row)] for row in rows] == labels


# With a real model


def test_a_planted_structure_is_chosen_and_helps():
    structure, features, labels = planted_problem(1300)
    train, test = slice(300), slice(300, None)
    auto = StructuredLogisticRegression(structure, weights="auto", random_state=0)
    auto.fit(features[train], labels[train])
    plain = StructuredLogisticRegression().fit(features[train], labels[train])
    assert auto.weights_[-1] < 1.0
    gain = log_loss(plain, features[test], labels[test]) - log_loss(
        auto, features[test], labels[test]
    )
    assert gain > 0.1


def test_a_wrong_structure_costs_next_to_nothing():
    structure, features, labels = planted_problem(5000)
    train, test = slice(2000), slice(2000, None)
    wrong = structure.scramble(np.random.default_rng(1))
    auto = StructuredLogisticRegression(wrong, weights="auto", random_state=0)
    auto.fit(features[train], labels[train])
    plain = StructuredLogisticRegression().fit(features[train], labels[train])
    cost = log_loss(auto, features[test], labels[test]) - log_loss(
        plain, features[test], labels[test]
    )
    assert cost < 0.005


def test_the_choice_is_a_function_of_random_state():
    structure, features, labels = planted_problem(120)
    models = [
        StructuredLogisticRegression(structure, weights="auto", random_state=3).fit(
            features, labels
        )
        for _ in range(2)
    ]
    assert models[0].weights_.tolist() == models[1].weights_.tolist()
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_the_model_is_that_of_the_weights_it_reports():
    structure, features, labels = planted_problem(200)
    auto = StructuredLogisticRegression(structure, weights="auto", random_state=0)
    auto.fit(features, labels)
    again = StructuredLogisticRegression(structure, weights=auto.weights_).fit(features, labels)
    assert isinstance(structure, RandomPartition)
    np.testing.assert_allclose(auto.coef_, again.coef_)
