"""Our own engine behind the estimator: what it chooses, refuses, and keeps in files."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from structent import (
    FixedStructure,
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructuredBoostingClassifier,
    circular,
    ordinal,
    trivial,
)
from structent.estimators.engines import structent as engine
from tests.estimators.problems import PLANTS, SETTLED, log_loss, planted_problem, rows_of

QUICK = {"engine": "structent", "n_estimators": 20, "learning_rate": 0.3, **SETTLED}


def quick(structure=None, **more):
    return StructuredBoostingClassifier(structure, **{**QUICK, **more})


def same(one, other, features):
    return np.array_equal(one.predict_proba(features), other.predict_proba(features))


def test_it_needs_no_other_booster():
    code = (
        "import sys; sys.modules.update(xgboost=None, lightgbm=None)\n"
        "from structent import StructuredBoostingClassifier\n"
        "model = StructuredBoostingClassifier(n_estimators=9)\n"
        "print(model.fit([[0.0], [1.0]] * 30, ['a', 'b'] * 30).predict([[1.0]]))\n"
        "for other in ({'engine': 'xgboost'}, {'engine': 'lightgbm', 'trees': 'per_class'}):\n"
        "    try: model.set_params(**other).fit([[0.0], [1.0]] * 30, ['a', 'b'] * 30)\n"
        "    except ImportError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        "['b']",
        "The structured loss for XGBoost needs xgboost: pip install 'structent[xgboost]'",
        "The structured loss for LightGBM needs lightgbm: pip install 'structent[lightgbm]'",
    ], result.stderr


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


def test_a_refit_has_the_depth_that_was_chosen():
    structure, features, labels = planted_problem(300)
    nothing_drawn = {"split_search": "full"}
    again = quick(structure, max_depth="auto", early_stopping_rounds=3, **nothing_drawn)
    again.fit(features, labels)
    whole = quick(
        structure, max_depth=again.max_depth_, n_estimators=again.best_iteration_ + 1,
        early_stopping_rounds=None, **nothing_drawn,
    ).fit(features, labels)  # fmt: skip
    assert again.max_depth_ in (2, 3, 4, 6, 8)
    assert same(again, whole, features)


def test_without_validation_rows_there_is_no_race():
    features, labels = rows_of(PLANTS.classes)
    auto, given = (
        quick(max_depth=depth, early_stopping_rounds=None).fit(features, labels)
        for depth in ("auto", 3)
    )
    assert auto.max_depth_ == 3
    assert same(auto, given, features)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_splits_are_searched_along_a_random_direction_by_default(n_classes):
    features, labels = rows_of(range(n_classes), n=300)
    structure = trivial(range(n_classes))
    auto, given = (
        quick(structure, n_estimators=3, split_search=each).fit(features, labels)
        for each in ("auto", "sketch")
    )
    assert auto.split_search_ == given.split_search_ == "sketch"
    assert same(auto, given, features)


def test_fewer_bins_see_less_of_a_column():
    values = np.arange(200.0)[:, None]
    labels = (np.arange(200) % 100 >= 50).astype(int)  # four runs: three borders to be found
    scores = [
        quick(max_bins=n, early_stopping_rounds=None).fit(values, labels).score(values, labels)
        for n in (2, 3, 4, 255)
    ]
    assert scores[0] == 0.5  # one border, at 100, which tells nothing
    assert scores[1] < scores[2] == scores[3] == 1.0


@pytest.mark.parametrize("refit", [False, True])
def test_the_logits_of_bags_are_averaged(refit, monkeypatch):
    structure, features, labels = planted_problem(300)
    single = []

    def mean_of(models, averaged=engine.mean_of):
        single.extend(models)
        return averaged(models)

    monkeypatch.setattr(engine, "mean_of", mean_of)
    bagged = quick(structure, n_bags=3, refit=refit).fit(features, labels)
    assert len({model.to_bytes() for model in single}) == 3 if not refit else 1
    margins = [model.margins(features.astype(np.float32), 1) for model in single]
    mean = np.mean(margins, axis=0)[:, np.argsort(structure.classes)]
    np.testing.assert_allclose(bagged.decision_function(features), mean, rtol=1e-5, atol=1e-6)


def test_what_was_chosen_is_that_of_the_first_of_all_bags():
    structure, features, labels = planted_problem(300)
    settings = {"max_depth": "auto", "early_stopping_rounds": 3, "n_estimators": 60}
    one, many = (quick(structure, n_bags=n, **settings).fit(features, labels) for n in (1, 3))
    assert one.max_depth_ == many.max_depth_
    assert one.best_iteration_ == many.best_iteration_
    np.testing.assert_array_equal(one.validation_log_loss_, many.validation_log_loss_)


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


# Leaves that borrow from related classes


def smoothed(structure, smoothing, **more):
    """The plain loss: whatever the structure does, it does in the leaves."""
    return quick(structure, weights=1.0, leaf_smoothing=smoothing, **more)


def few_rows(seed):
    """The true hierarchy and a scrambled one, 300 rows to train on, and the others."""
    structure, features, labels = planted_problem(1300, seed=seed, n_classes=24, n_groups=4)
    scrambled = structure.scramble(np.random.default_rng(seed))
    return structure, scrambled, (features[:300], labels[:300]), (features[300:], labels[300:])


@pytest.fixture(scope="module")
def losses_of_few_rows():
    """Test log losses, (seeds,), with leaves as they are, of each structure, and chosen."""
    losses, chosen = {}, {"true": [], "scrambled": []}
    settings = {"n_estimators": 300, "learning_rate": 0.1}
    for seed in range(8):
        true, scrambled, train, test = few_rows(seed)
        plain = smoothed(true, None, random_state=seed, **settings).fit(*train)
        losses.setdefault("none", []).append(log_loss(plain, *test))
        for name, structure in (("true", true), ("scrambled", scrambled)):
            for smoothing in (0.5, "auto"):
                model = smoothed(structure, smoothing, random_state=seed, **settings).fit(*train)
                losses.setdefault((name, smoothing), []).append(log_loss(model, *test))
            chosen[name].append(model.leaf_smoothing_)
    return {name: np.array(values) for name, values in losses.items()}, chosen


def test_smoothing_helps_where_rows_are_few_and_classes_are_alike(losses_of_few_rows):
    losses, _ = losses_of_few_rows
    assert losses["true", 0.5].mean() < 0.96 * losses["none"].mean()
    # It is the structure that helps, not that something is smoothed.
    assert losses["scrambled", 0.5].mean() > losses["none"].mean()


def test_validation_rows_choose_smoothing_for_a_true_structure_alone(losses_of_few_rows):
    losses, chosen = losses_of_few_rows
    assert np.mean(np.array(chosen["true"]) > 0) > 0.8
    assert np.mean(np.array(chosen["scrambled"]) > 0) < 0.4
    assert losses["true", "auto"].mean() < 0.96 * losses["none"].mean()
    assert losses["scrambled", "auto"].mean() < 1.005 * losses["none"].mean()


@pytest.mark.parametrize("none", [None, 0, 0.0])
def test_no_smoothing_changes_no_bit(none):
    structure, features, labels = planted_problem(300)
    plain = quick(structure).fit(features, labels)
    given = quick(structure, leaf_smoothing=none).fit(features, labels)
    assert plain._fitted.model.to_bytes() == given._fitted.model.to_bytes()
    assert given.leaf_smoothing_ == 0.0


@pytest.mark.parametrize("smoothing", [0.5, "auto"])
def test_the_trivial_structure_smooths_nothing(smoothing):
    structure, features, labels = planted_problem(300)
    nothing = trivial(structure.classes)
    plain = quick(nothing).fit(features, labels)
    given = quick(nothing, leaf_smoothing=smoothing).fit(features, labels)
    assert plain._fitted.model.to_bytes() == given._fitted.model.to_bytes()


def test_without_a_structure_there_is_nothing_to_choose():
    _, features, labels = planted_problem(300)
    auto, none = (quick(leaf_smoothing=each).fit(features, labels) for each in ("auto", None))
    assert auto.leaf_smoothing_ == 0.0
    assert same(auto, none, features)


def test_without_validation_rows_auto_smooths_nothing():
    structure, _, train, _ = few_rows(0)
    model = smoothed(structure, "auto", early_stopping_rounds=None).fit(*train)
    assert model.leaf_smoothing_ == 0.0


def test_loss_and_leaves_are_independent_choices():
    structure, features, labels = planted_problem(300)
    neither, loss, leaves, both = (
        quick(structure, weights=weights, leaf_smoothing=smoothing).fit(features, labels)
        for weights, smoothing in ((1, None), (None, None), (1, 0.4), (None, 0.4))
    )
    plain = quick().fit(features, labels)
    assert same(neither, plain, features)
    models = [neither, loss, leaves, both]
    assert len({model.predict_proba(features).tobytes() for model in models}) == 4
    # The weight of the singletons is that of the loss alone.
    other = quick(structure.with_singleton_weight(0.9), weights=1, leaf_smoothing=0.4)
    np.testing.assert_allclose(
        other.fit(features, labels).predict_proba(features), leaves.predict_proba(features),
        rtol=1e-6,
    )  # fmt: skip


def test_a_refit_and_bags_have_the_smoothing_that_was_chosen():
    structure, _, train, _ = few_rows(1)
    drawn = {"split_search": "full", "n_estimators": 60}
    again = smoothed(structure, "auto", **drawn).fit(*train)
    assert again.leaf_smoothing_ > 0
    whole = smoothed(
        structure, again.leaf_smoothing_, early_stopping_rounds=None,
        **{**drawn, "n_estimators": again.best_iteration_ + 1},
    ).fit(*train)  # fmt: skip
    assert same(again, whole, train[0])
    bags = smoothed(structure, "auto", n_bags=2, **drawn).fit(*train)
    assert bags.leaf_smoothing_ == again.leaf_smoothing_


def test_a_sampler_smooths_by_the_partition_of_the_round_and_a_fixed_one_by_its_similarity():
    ring = LabelGraph([(i, (i + 1) % 12) for i in range(12)])
    sampler = SpanningTreePartitions(ring, 4, 0.3)
    features, labels = rows_of(range(12), n=300)
    drawn = smoothed(sampler, 0.4).fit(features, labels)
    not_drawn = smoothed(sampler.sample(0), 0.4).fit(features, labels)
    assert not same(drawn, not_drawn, features)
    circle = circular(range(12))
    fixed, by_itself = (
        smoothed(structure, 0.4).fit(features, labels)
        for structure in (FixedStructure(circle), circle)
    )
    assert same(fixed, by_itself, features)


@pytest.mark.parametrize("smoothing", [0.4, "auto"])
@pytest.mark.parametrize("kind", ["hierarchy", "sampler"])
def test_threads_do_not_show_in_smoothed_leaves(kind, smoothing):
    structure, features, labels = planted_problem(3000)
    if kind == "sampler":
        names = structure.classes
        path = LabelGraph(list(pairwise(names)))
        structure = SpanningTreePartitions(path, 4, 0.3)
    one, two = (
        smoothed(structure, smoothing, n_jobs=n).fit(features, labels) for n in (1, 2)
    )  # fmt: skip
    assert one._fitted.model.to_bytes() == two._fitted.model.to_bytes()


@pytest.mark.parametrize("weights", [None, 1.0])
def test_the_order_of_the_classes_does_not_show_in_smoothed_leaves(weights):
    structure, features, labels = planted_problem(300)
    backwards = structure.restrict(structure.classes[::-1])
    proba = [
        quick(given, weights=weights, leaf_smoothing=0.5, split_search="full", n_estimators=10)
        .fit(features, labels)
        .predict_proba(features)
        for given in (structure, backwards)
    ]
    np.testing.assert_allclose(*proba, atol=1e-5)


def test_smoothing_can_be_searched_and_cloned():
    structure, _, train, _ = few_rows(0)
    model = smoothed(structure, 0.2)
    assert clone(model).leaf_smoothing == 0.2
    search = GridSearchCV(model, {"leaf_smoothing": [None, 0.4, "auto"]}, cv=2).fit(*train)
    assert search.best_estimator_.leaf_smoothing_ >= 0


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
            model = engine.from_bytes(bytes(given), start, (None,) * 4)
        except StructentError:
            n_refused += 1
            continue
        model.margins(np.zeros((3, 4), np.float32), 1)
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


@pytest.mark.parametrize("groups", [None, np.arange(300) // 4])
def test_where_validation_rows_are_few_every_row_helps_to_choose_the_smoothing(monkeypatch, groups):
    seen = []

    def remembered(_smoothings, races, _how):
        seen.append([(race.args[0], race.keywords["validation"]) for race in races])
        return 0.0

    monkeypatch.setattr(engine, "best_smoothing", remembered)
    structure, features, labels = planted_problem(300)
    model = StructuredBoostingClassifier(
        structure, weights=1, leaf_smoothing="auto", max_depth=2, n_estimators=2, random_state=0
    )
    model.fit(features, labels, groups=groups)
    (first, first_held), *folds = seen[0]
    assert len(folds) == 5
    assert len(first.labels) + len(first_held.labels) == 300
    assert sum(len(held.labels) for _, held in folds) == len(first.labels)
    whole = sorted(map(bytes, first.table.bins))
    for train, held in folds:
        assert sorted(map(bytes, [*train.table.bins, *held.table.bins])) == whole
    monkeypatch.setattr(engine, "_ENOUGH_ROWS", 10)
    model.fit(features, labels, groups=groups)
    assert len(seen[-1]) == 1


def test_few_rows_are_enough_to_see_that_classes_are_in_order():
    rng = np.random.default_rng(0)
    labels = rng.integers(8, size=300)
    features = labels[:, None] + rng.normal(scale=2.0, size=(300, 3))
    order = ordinal(range(8))
    model = StructuredBoostingClassifier(
        order, weights=1, leaf_smoothing="auto", max_depth=3, random_state=0
    )
    assert model.fit(features, labels).leaf_smoothing_ > 0
    wrong = order.scramble(np.random.default_rng(1))
    assert model.set_params(structure=wrong).fit(features, labels).leaf_smoothing_ == 0
