"""Labels of any granularity in the estimators: classes, names of blocks, and sets of classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from structent import (
    LabelError,
    LabelGraph,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureError,
    circular,
)
from structent.estimators.classes import Classes
from structent.estimators.linear_objective import LinearObjective
from structent.estimators.rows import log_prior_of_totals, row_weights, spread_totals
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from tests.estimators.problems import (
    ENGINES,
    LIGHTGBM,
    OURS,
    PER_CLASS,
    PLANTS,
    SETTLED,
    XGBOOST,
    engines,
    planted_problem,
    rows_of,
)

X, Y = rows_of(PLANTS.classes, n=90)
FOUND = np.random.default_rng(1).random(90) < 0.5
KIND = {"rose": "flower", "oak": "tree", "ash": "tree"}
MIXED = np.array([y if fine else KIND[y] for y, fine in zip(Y, FOUND, strict=True)], dtype=object)
SETS = np.array([{y} if i % 2 else y for i, y in enumerate(Y)], dtype=object)

BOOSTED = {"n_estimators": 8, "learning_rate": 0.3, **SETTLED}
OPTIONS = pytest.mark.parametrize(
    "options", [{}, {"split_search": "structured"},
                {"curvature": "fisher", "class_weight": "balanced"}],
)  # fmt: skip


def boosted(y, structure=PLANTS, features=X, eval_set=None, **parameters):
    model = StructuredBoostingClassifier(structure, **{**BOOSTED, **parameters})
    return model.fit(features, y, eval_set=eval_set)


def linear(y, structure=PLANTS, features=X, **parameters):
    return StructuredLogisticRegression(structure, **parameters).fit(features, y)


def check_rows_of_one_class_each(y, parameters):
    plain, allowed = boosted(Y, **parameters), boosted(y, allow_blocks=True, **parameters)
    np.testing.assert_array_equal(plain.predict_proba(X), allowed.predict_proba(X))


@ENGINES
@pytest.mark.parametrize("y", [Y, SETS])
def test_boosting_on_rows_of_one_class_each_is_boosting_without_blocks(y, engine):
    check_rows_of_one_class_each(y, engine)


@OPTIONS
@engines(OURS, XGBOOST)
def test_so_it_is_whatever_splits_are_searched_on(engine, options):
    check_rows_of_one_class_each(SETS, engine | options)


@pytest.mark.parametrize("y", [Y, SETS])
@pytest.mark.parametrize("weights", [None, "auto"])
def test_a_linear_model_of_rows_of_one_class_each_is_that_without_blocks(y, weights):
    plain = linear(Y, weights=weights, random_state=0)
    allowed = linear(y, weights=weights, random_state=0, allow_blocks=True)
    np.testing.assert_array_equal(plain.coef_, allowed.coef_)


@ENGINES
def test_a_block_its_full_name_and_its_set_are_one_label(engine):
    check_names_of_a_label(engine)


@OPTIONS
@engines(OURS, XGBOOST)
def test_so_they_are_whatever_splits_are_searched_on(engine, options):
    check_names_of_a_label(engine | options)


def test_so_they_are_where_leaves_are_smoothed():
    check_names_of_a_label({"leaf_smoothing": 0.4, "weights": 1})


def check_names_of_a_label(parameters):
    full = [f"kind:{y}" if y in ("tree", "flower") else y for y in MIXED]
    sets = [{"oak", "ash"} if y == "tree" else "rose" if y == "flower" else y for y in MIXED]
    first, second, third = (
        boosted(y, allow_blocks=True, **parameters).predict_proba(X) for y in (MIXED, full, sets)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert np.isfinite(first).all()


@given(st.integers(0, 2**31))
def test_the_gradient_of_the_linear_objective_is_its_slope_where_labels_are_sets(seed):
    rng = np.random.default_rng(seed)
    structure = circular(list("abcdef"), width=2, singleton_weight=0.3)
    classes = Classes.of_mixed(structure, [{"a", "b"}, {"a", "d", "e"}, "a+b"])
    layout = Layout.of(structure)
    objective = LinearObjective(
        rng.normal(size=(12, 3)),
        rng.integers(classes.n_codes, size=12),
        rng.uniform(0.1, 2, size=12),
        layout,
        penalty=0.1,
        coarse=CoarseLayouts.of(layout, classes.coarse_sets),
    )
    at = rng.normal(size=objective.n_parameters)
    slope = approx_fprime(at, lambda parameters: objective(parameters)[0], 1e-6)
    np.testing.assert_allclose(objective(at)[1], slope, atol=2e-5)


def test_the_loss_of_a_coarse_row_is_that_of_the_definition():
    structure = circular(list("abcdef"), width=2, singleton_weight=0.3)
    classes = Classes.of_mixed(structure, [{"a", "b"}, {"a", "d", "e"}])
    layout = Layout.of(structure)
    logits = np.random.default_rng(0).normal(size=6)
    objective = LinearObjective(
        np.zeros((2, 1)), np.array([6, 7]), np.array([1.0, 3.0]), layout, penalty=0.0,
        coarse=CoarseLayouts.of(layout, classes.coarse_sets),
    )  # fmt: skip
    q = np.exp(logits) / np.exp(logits).sum()
    expected = []
    for members in ([0, 1], [0, 3, 4]):
        loss = 0.0
        for weight, partition in zip(structure.weights, structure.partitions, strict=True):
            holding = [b for b in partition.blocks if {"abcdef"[c] for c in members} <= set(b)]
            at = ["abcdef".index(c) for c in holding[0]] if holding else members
            loss -= weight * np.log(q[at].sum())
        expected.append(loss)
    value, _ = objective(np.append(np.zeros(6), logits))
    assert value == pytest.approx(0.25 * expected[0] + 0.75 * expected[1])


def test_coarse_rows_teach_what_they_know():
    structure, features, y = planted_problem(900, seed=3)
    features = features + np.random.default_rng(0).normal(scale=2, size=features.shape)
    train, test = np.arange(300), np.arange(300, 900)
    group = structure.levels["group"][0]
    block_of = dict(zip(structure.classes, group.block_of, strict=True))
    mixed = y.astype(object)
    for row in train[60:]:
        mixed[row] = group.names[block_of[y[row]]]
    scores = {}
    for name, rows in (("dropped", train[:60]), ("used", train)):
        model = linear(mixed[rows], structure, features[rows], C=0.03, allow_blocks=True)
        answers = model.predict_level(features[test], "group")
        truth = np.array(group.names)[[block_of[label] for label in y[test]]]
        scores[name] = (answers == truth).mean()
    assert scores["used"] > scores["dropped"] + 0.03


@ENGINES
def test_validation_counts_a_coarse_row_by_the_probability_of_its_set(engine):
    model = boosted(MIXED, allow_blocks=True, eval_set=(X, MIXED.tolist()), **engine)
    proba = model.predict_proba(X)
    column = {label: j for j, label in enumerate(model.classes_)}
    members = {"tree": ["oak", "ash"], "flower": ["rose"]}
    of_rows = [
        proba[i, [column[c] for c in members.get(y, [y])]].sum() for i, y in enumerate(MIXED)
    ]
    best = model.validation_log_loss_[model.best_iteration_]
    assert best == pytest.approx(-np.log(of_rows).mean(), abs=2e-6)


@pytest.mark.requires("xgboost")
@pytest.mark.requires("lightgbm")
def test_all_engines_start_from_the_same_loss_of_validation_rows():
    first, *others = (
        boosted(
            MIXED, allow_blocks=True, eval_set=(X, MIXED), **{**engine, "learning_rate": 1e-6}
        ).validation_log_loss_[0]
        for engine in (OURS, XGBOOST, PER_CLASS, LIGHTGBM)
    )
    assert others == pytest.approx([first] * 3, abs=1e-4)


@ENGINES
def test_an_eval_set_may_hold_sets_that_no_training_row_has(engine):
    eval_set = (X[:3], ["tree", {"oak", "rose"}, "ash"])
    model = boosted(Y, allow_blocks=True, eval_set=eval_set, **engine)
    assert np.isfinite(model.validation_log_loss_).all()


def test_weights_are_chosen_where_labels_are_coarse():
    model = boosted(MIXED, allow_blocks=True, weights="auto")
    assert model.weights_.sum() == pytest.approx(1)


@ENGINES
def test_a_sampler_takes_sets_of_classes_and_knows_no_names(engine):
    graph = LabelGraph([("rose", "oak"), ("oak", "ash"), ("ash", "rose")])
    sampler = SpanningTreePartitions(graph, 2, 0.5)
    sets = np.array([{"oak", "ash"} if y == "oak" else y for y in Y], dtype=object)
    assert boosted(sets, sampler, allow_blocks=True, **engine).predict_proba(X).shape == (90, 3)
    with pytest.raises(LabelError, match=r"'\w+' is not .* give a set of classes instead"):
        boosted(MIXED, sampler, allow_blocks=True, **engine)


def test_numbers_stay_numbers_beside_names_of_blocks():
    structure = circular(range(6), width=2)
    y = [c % 6 if c % 3 else structure.partitions[0].names[c % 6 // 2] for c in range(60)]
    features = np.arange(60.0)[:, None] % 6
    for model in (linear(y, structure, features, allow_blocks=True),
                  boosted(y, structure, features, allow_blocks=True)):  # fmt: skip
        assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_warm_start_goes_on_from_coarse_rows():
    cold = linear(MIXED, allow_blocks=True, tol=1e-8)
    warm = linear(MIXED, allow_blocks=True, tol=1e-8, warm_start=True).fit(X, MIXED)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-4)
    assert warm.n_iter_ < cold.n_iter_


def test_a_file_keeps_the_parameter_and_one_without_it_has_none(tmp_path):
    boosted(MIXED, allow_blocks=True).save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    assert loaded.allow_blocks
    assert loaded.fit(X, MIXED).classes_.tolist() == ["ash", "oak", "rose"]


def test_coarse_rows_spread_over_their_classes_as_rows_of_known_class_do():
    totals = np.array([30.0, 10.0, 20.0, 80.0])
    spread = spread_totals(totals, [(0, 1)])
    np.testing.assert_allclose(spread, [30 + 80 * 30.5 / 41, 10 + 80 * 10.5 / 41, 20])
    # The likelihood of the counts has its maximum where EM stands still: 3 : 1 within the set.
    prior = np.exp(log_prior_of_totals(spread))
    assert prior[0] / prior[1] == pytest.approx(3, rel=0.05)


def test_a_set_without_a_row_of_known_class_is_split_evenly():
    assert spread_totals(np.array([0.0, 0.0, 5.0, 6.0]), [(0, 1)]).tolist() == [3.0, 3.0, 5.0]


def test_a_coarse_row_weighs_what_its_classes_do_on_average():
    classes = Classes.of_mixed(PLANTS, ["tree"])
    found = row_weights([1.0, 2.0], {"oak": 3.0, "ash": 5.0}, np.array([3, 0]), classes)
    assert found.tolist() == [4.0, 2.0]


def test_held_out_rows_are_judged_by_the_probability_of_their_set():
    classes = Classes.of_mixed(PLANTS, ["tree"])
    proba = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])  # of ash, oak and rose
    assert classes.probability_of(proba, np.array([3, 0])).tolist() == [0.5, 0.5]
    assert classes.meanings(np.array([3, 0])).tolist() == [frozenset({"ash", "oak"}), "rose"]
    assert classes.name(3) == "oak or ash"


@pytest.mark.parametrize("fit", [boosted, linear])
@pytest.mark.parametrize(
    ("y", "parameters", "error", "message"),
    [
        (MIXED, {}, LabelError, "not a class of the structure but the name of a block; .* allow_b"),
        (SETS, {}, LabelError, "y must hold classes, got the set .* allow_blocks=True takes sets"),
        (MIXED, {"structure": None, "allow_blocks": True}, StructureError, "needs a structure"),
        (["treee", *MIXED[1:]], {"allow_blocks": True}, LabelError, "did you mean 'tree'"),
        ([{"fir"}, *MIXED[1:]], {"allow_blocks": True}, LabelError, "'fir' is not a class"),
        ([set(), *MIXED[1:]], {"allow_blocks": True}, LabelError, "got an empty set"),
        ([None, *MIXED[1:]], {"allow_blocks": True}, LabelError, "got None in row 0"),
        (["tree"] * 90, {"allow_blocks": True}, LabelError, "two classes or more"),
    ],
)
def test_labels_that_mean_nothing_are_refused(fit, y, parameters, error, message):
    with pytest.raises(error, match=message):
        fit(y, **parameters)
