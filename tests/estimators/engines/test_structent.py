"""Our own engine behind the estimator: what it chooses, refuses, and keeps in files."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from structent import (
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructuredBoostingClassifier,
    circular,
    trivial,
)
from structent.estimators.engines import structent as engine
from tests.estimators.problems import PLANTS, log_loss, planted_problem, rows_of

QUICK = {"engine": "structent", "n_estimators": 20, "learning_rate": 0.3, "random_state": 0}


def quick(structure=None, **more):
    return StructuredBoostingClassifier(structure, **{**QUICK, "n_jobs": 1, **more})


def same(one, other, features):
    return np.array_equal(one.predict_proba(features), other.predict_proba(features))


def test_it_needs_no_other_booster():
    code = (
        "import sys; sys.modules.update(xgboost=None, lightgbm=None)\n"
        "from structent import StructuredBoostingClassifier\n"
        "model = StructuredBoostingClassifier(engine='structent', n_estimators=2)\n"
        "model.set_params(early_stopping_rounds=None)\n"
        "print(model.fit([[0.0], [1.0]], ['a', 'b']).predict([[1.0]]))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "['b']", result.stderr


# What is chosen


@pytest.mark.parametrize(("kind", "deep"), [("one column decides", False), ("parity", True)])
def test_the_depth_is_chosen_by_the_validation_rows(kind, deep):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1500, 4))
    signs = (features > 0).astype(int)
    labels = signs[:, 0] if kind == "one column decides" else signs.sum(axis=1) % 2
    flipped = np.where(rng.random(1500) < 0.15, 1 - labels, labels)
    model = quick(max_depth="auto", n_estimators=60).fit(features, flipped)
    assert (model.max_depth_ >= 4) == deep


def test_a_refit_has_the_rounds_and_the_depth_that_were_chosen_and_all_rows():
    structure, features, labels = planted_problem(300)
    first = quick(structure, max_depth="auto", early_stopping_rounds=3).fit(features, labels)
    again = quick(structure, max_depth="auto", early_stopping_rounds=3, refit=True)
    again.fit(features, labels)
    assert again.best_iteration_ == first.best_iteration_
    assert again.max_depth_ == first.max_depth_
    whole = quick(
        structure, max_depth=first.max_depth_, n_estimators=first.best_iteration_ + 1,
        early_stopping_rounds=None,
    ).fit(features, labels)  # fmt: skip
    # The start is the prior of other rows, and the trees are nearly the same.
    np.testing.assert_allclose(
        again.predict_proba(features), whole.predict_proba(features), atol=0.05
    )
    assert not same(again, first, features)


def test_rows_of_an_eval_set_are_not_trained_on_by_a_refit():
    structure, features, labels = planted_problem(300)
    given = (features[200:], labels[200:])
    one = quick(structure, refit=True).fit(features[:200], labels[:200], eval_set=given)
    other = quick(structure, refit=False).fit(features[:200], labels[:200], eval_set=given)
    assert same(one, other, features)


def test_the_logits_of_bags_are_averaged():
    structure, features, labels = planted_problem(300)
    bagged = quick(structure, n_bags=3).fit(features, labels)
    parts = bagged._fitted.model.parts
    assert len({part.forest.to_bytes() for part in parts}) == 3
    margins = [
        engine.StructentModel([part], bagged._fitted.model.start).margins(
            features.astype(np.float32), 1
        )
        for part in parts
    ]
    order = np.argsort(structure.classes)
    mean = np.mean(margins, axis=0)[:, order]
    np.testing.assert_allclose(bagged.decision_function(features), mean, rtol=1e-6)


def test_it_warns_where_the_loss_was_still_falling():
    structure, features, labels = planted_problem(300)
    with pytest.warns(ConvergenceWarning, match=r"still falling after all 3 rounds; raise n_est"):
        quick(structure, n_estimators=3, learning_rate=0.01).fit(features, labels)


def test_one_thread_and_two_give_the_same_model():
    structure, features, labels = planted_problem(3000)
    one, two = (
        quick(structure, n_jobs=n, subsample=0.8).fit(features, labels) for n in (1, 2)
    )  # fmt: skip
    assert one._fitted.model.to_bytes() == two._fitted.model.to_bytes()


@pytest.mark.parametrize("search", ["auto", "full", "sketch", "structured"])
def test_every_search_learns(search):
    structure, features, labels = planted_problem(600)
    model = quick(structure, split_search=search).fit(features[:400], labels[:400])
    prior = np.log(len(structure.classes))
    assert log_loss(model, features[400:], labels[400:]) < 0.9 * prior


def test_a_sampler_gives_every_round_a_loss_of_its_own():
    path = LabelGraph([("a", "b"), ("b", "c"), ("c", "d")])
    features, labels = rows_of(("a", "b", "c", "d"), n=200)
    drawn = quick(SpanningTreePartitions(path, 2, 0.3)).fit(features, labels)
    fixed = quick(SpanningTreePartitions(path, 2, 0.3).sample(0)).fit(features, labels)
    assert not same(drawn, fixed, features)


# Columns


def test_categories_are_split_as_sets():
    rng = np.random.default_rng(0)
    colours = rng.choice(list("abcdefgh"), size=800)
    labels = np.isin(colours, list("bdfh")).astype(int)
    table = pd.DataFrame({"colour": pd.Categorical(colours)})
    model = quick(n_estimators=5, max_depth=1).fit(table, labels)
    assert model.score(table, labels) == 1.0  # one split: no border in any order would do


def test_a_category_that_was_never_seen_is_treated_as_missing():
    rng = np.random.default_rng(0)
    colours = rng.choice(["red", "blue", None], size=300)
    labels = np.where(colours == "red", "r", "b")
    model = quick().fit(pd.DataFrame({"colour": colours}), labels)
    given = pd.DataFrame({"colour": ["teal", None]}, dtype=object)
    new, missing = model.predict_proba(given)
    np.testing.assert_array_equal(new, missing)


def test_columns_without_information_change_nothing():
    structure, features, labels = planted_problem(200)
    empty = np.column_stack([features, np.full(200, np.nan), np.ones(200)])
    with_them, without = (quick(structure).fit(X, labels) for X in (empty, features))
    np.testing.assert_array_equal(
        with_them.predict_proba(empty), without.predict_proba(features)
    )  # fmt: skip
    assert with_them.feature_importances_[-2:].tolist() == [0.0, 0.0]


# Odd rows


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e30, 1e300])
def test_the_size_of_all_weights_together_matters_only_beside_lambda(factor):
    structure, features, labels = planted_problem(200)
    plain = quick(structure, reg_lambda=0.0).fit(features, labels, sample_weight=np.ones(200))
    scaled = quick(structure, reg_lambda=0.0).fit(
        features, labels, sample_weight=np.full(200, factor)
    )
    # The prior has half a row for every class, which is nothing beside huge weights.
    assert np.isfinite(scaled.predict_proba(features)).all()
    assert (scaled.predict(features) == plain.predict(features)).mean() > 0.9


def test_a_class_without_rows_has_a_small_probability():
    features, labels = rows_of(PLANTS.classes[:-1], n=200)
    proba = quick(PLANTS).fit(features, labels).predict_proba(features)
    column = sorted(PLANTS.classes).index(PLANTS.classes[-1])
    assert np.isfinite(proba).all()
    assert proba[:, column].max() < 0.05


def test_a_row_for_every_leaf_is_enough():
    features = np.arange(8.0)[:, None]
    model = quick(early_stopping_rounds=None, max_depth=8, reg_lambda=0.0, n_estimators=50)
    assert model.fit(features, np.arange(8)).score(features, np.arange(8)) == 1.0


# What is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"trees": "per_class"}, "structent's own engine grows vector leaves"),
        ({"max_leaves": 1}, "max_leaves must be between 2"),
        ({"n_bags": 0}, "n_bags must be between 1"),
        ({"max_depth": "deep"}, "max_depth must be a whole number, got 'deep'"),
        ({"engine": "xgboost", "max_leaves": 4}, "max_leaves=4 needs engine='structent'"),
        ({"engine": "xgboost", "n_bags": 2}, "n_bags=2 needs engine='structent'"),
        ({"engine": "xgboost", "max_depth": "auto"}, "max_depth='auto' needs engine='structent'"),
        ({"engine": "xgboost", "split_search": "sketch"}, "split_search='sketch' needs engine="),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_a_sentence(parameters, message):
    features, labels = rows_of(PLANTS.classes)
    with pytest.raises(StructentError, match=re.escape(message)):
        quick(PLANTS, **parameters).fit(features, labels)


# Files


@pytest.fixture(scope="module")
def content():
    features, labels = rows_of(PLANTS.classes)
    return quick(PLANTS, n_estimators=4).fit(features, labels)._fitted.model.to_bytes()


def test_bytes_that_were_tampered_with_give_one_sentence_or_a_model(content):
    rng = np.random.default_rng(0)
    start, n_refused = np.zeros(len(PLANTS.classes)), 0
    for _ in range(2000):
        changed = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        given = bytes(changed[: rng.integers(len(content))]) if rng.random() < 0.2 else changed
        try:
            model = engine.from_bytes(bytes(given), start)
        except StructentError:
            n_refused += 1
            continue
        n_columns = model.parts[0].bins.n_columns
        model.margins(np.zeros((3, n_columns), np.float32), 1)
    assert 0 < n_refused < 2000


def test_a_circle_helps_where_rows_are_few():
    rng = np.random.default_rng(1)
    months = np.arange(12)

    def rows(n):
        labels = rng.integers(12, size=n)
        angle = 2 * np.pi * labels / 12 + rng.normal(scale=0.7, size=n)
        return np.column_stack([np.cos(angle), np.sin(angle)]), labels

    test = rows(4000)
    losses = {"circle": [], "none": []}
    for _ in range(4):
        train = rows(300)
        for name, structure in (("circle", circular(months)), ("none", trivial(months))):
            losses[name].append(log_loss(quick(structure, learning_rate=0.1).fit(*train), *test))
    assert np.mean(losses["circle"]) < np.mean(losses["none"])
