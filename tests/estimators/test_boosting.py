"""Boosting under the structured loss, with scikit-learn's interface."""

import copy
import pickle
import signal
import warnings
from importlib.util import find_spec

import cloudpickle
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from structent import (
    LabelGraph,
    RandomPartition,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    circular,
    hierarchy,
    trivial,
)
from structent.structure.catalog import months
from tests.estimators.problems import (
    ENGINES,
    LIGHTGBM,
    OURS,
    PER_CLASS,
    PLANTS,
    SETTLED,
    XGBOOST,
    engines,
    log_loss,
    planted_problem,
    rows_of,
)

QUICK = {"n_estimators": 30, "learning_rate": 0.3, **SETTLED}


def quick(structure=None, **more):
    return StructuredBoostingClassifier(structure, **{**QUICK, **more})


# The rows that are held back for early stopping are drawn, which no weight can undo; without early
# stopping equal rows and weights differ by the rounding of float32, see the test of weights below.
NOT_EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "validation rows are drawn, sums are float32"
}


@parametrize_with_checks(
    [
        StructuredBoostingClassifier(n_estimators=30, learning_rate=0.3, n_jobs=1),
        *(quick(**engine) for engine in (XGBOOST, LIGHTGBM) if find_spec(engine["engine"])),
    ],
    expected_failed_checks=lambda _: NOT_EXPECTED,
)
def test_the_model_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_model_of_no_settings_is_of_our_own_engine_that_chooses_and_refits():
    given = StructuredBoostingClassifier().get_params()
    chosen = {name: given[name] for name in ("engine", "max_depth", "split_search", "refit")}
    assert chosen == {
        "engine": "structent", "max_depth": "auto", "split_search": "auto", "refit": True,
    }  # fmt: skip


@engines(XGBOOST, PER_CLASS, LIGHTGBM)
def test_with_other_engines_auto_is_depth_3_and_the_whole_gradient(engine):
    features, labels = rows_of(PLANTS.classes, n=100)
    auto = quick(PLANTS, n_estimators=3, max_depth="auto", **engine).fit(features, labels)
    given = quick(PLANTS, n_estimators=3, split_search="full", **engine).fit(features, labels)
    assert (auto.max_depth_, auto.split_search_) == (3, "full")
    np.testing.assert_array_equal(auto.predict_proba(features), given.predict_proba(features))


# What is learned


@pytest.mark.requires("xgboost")
def test_without_early_stopping_the_trees_are_those_of_the_objective():
    import xgboost

    from structent.losses.boosters.xgboost import structured_objective

    features, labels = rows_of(months().classes, n=300)
    model = quick(months(), early_stopping_rounds=None, **XGBOOST).fit(features, labels)
    codes = months().encode(labels)
    counts = np.bincount(codes, minlength=12)
    start = np.log((counts + 0.5) / (counts.sum() + 6.0))
    parameters = {
        "objective": "multi:softprob", "num_class": 12, "multi_strategy": "multi_output_tree",
        "base_score": start.tolist(), "max_depth": 3, "learning_rate": 0.3, "min_child_weight": 0.0,
        "reg_lambda": 1.0, "nthread": 1,
    }  # fmt: skip
    data = xgboost.QuantileDMatrix(features.astype(np.float32), label=codes)
    booster = xgboost.train(parameters, data, 30, obj=structured_objective(months()))
    in_sorted_order = booster.predict(data)[:, np.argsort(months().classes)]
    np.testing.assert_allclose(model.predict_proba(features), in_sorted_order, atol=1e-6)


@ENGINES
def test_a_true_structure_helps_where_rows_are_few(engine):
    gains = []
    for seed in range(4):
        structure, features, labels = planted_problem(2300, seed=seed)
        train, test = slice(0, 300), slice(300, None)
        losses = [
            log_loss(
                quick(given, n_estimators=300, learning_rate=0.1, early_stopping_rounds=10,
                      refit=False, **engine).fit(features[train], labels[train]),
                features[test],
                labels[test],
            )
            for given in (None, structure)
        ]  # fmt: skip
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > 0


@ENGINES
def test_no_structure_and_a_trivial_one_are_the_same(engine):
    features, labels = rows_of(["b", "a", "c"])
    of_none = quick(split_search="full", **engine).fit(features, labels)
    of_trivial = quick(trivial(["b", "a", "c"]), split_search="full", **engine).fit(
        features, labels
    )
    np.testing.assert_allclose(
        of_none.predict_proba(features), of_trivial.predict_proba(features), atol=1e-6
    )


@ENGINES
def test_rows_of_a_sampler_draw_a_structure_for_every_round(engine):
    ring = LabelGraph([(i, (i + 1) % 6) for i in range(6)])
    features, labels = rows_of(range(6), n=200)

    class Recording:
        classes = ring.classes
        asked: list[int] = []  # noqa: RUF012  one test, one list

        def sample(self, iteration) -> RandomPartition:
            self.asked.append(iteration)
            return SpanningTreePartitions(ring, 3, 0.5).sample(iteration)

    sampler = Recording()
    model = quick(sampler, n_estimators=5, early_stopping_rounds=None, **engine)
    model.fit(features, labels)
    assert sorted(set(sampler.asked)) == [0, 1, 2, 3, 4]


# LightGBM's own objective does not hold it either: it guesses counts of rows from curvatures.
@engines(OURS, XGBOOST, PER_CLASS)
def test_a_weight_counts_as_so_many_rows(engine):
    features, labels = rows_of(["a", "b", "c"], n=80)
    times = np.random.default_rng(1).integers(0, 4, size=80)
    model = quick(n_estimators=8, early_stopping_rounds=None, min_child_weight=1.0, **engine)
    weighted = clone(model).fit(features, labels, sample_weight=times).predict_proba(features)
    repeated = clone(model).fit(np.repeat(features, times, axis=0), np.repeat(labels, times))
    np.testing.assert_allclose(weighted, repeated.predict_proba(features), atol=2e-5)


@ENGINES
def test_class_weights_multiply_the_weights_of_the_rows(engine):
    features, labels = rows_of(["a", "b", "c"], n=80)
    by_class = {"a": 1.0, "b": 2.0, "c": 0.5}
    model = quick(early_stopping_rounds=None, **engine)
    of_classes = clone(model).set_params(class_weight=by_class).fit(features, labels)
    of_rows = model.fit(features, labels, sample_weight=[by_class[label] for label in labels])
    np.testing.assert_array_equal(
        of_classes.predict_proba(features), of_rows.predict_proba(features)
    )


@ENGINES
def test_with_no_split_to_make_the_prediction_is_near_the_prior(engine):
    labels = np.repeat(["a", "b", "c"], [60, 30, 10])
    model = quick(early_stopping_rounds=None, n_estimators=1, learning_rate=1e-6, **engine)
    proba = model.fit(np.arange(100)[:, None] % 2, labels).predict_proba(np.zeros((1, 1)))
    np.testing.assert_allclose(proba[0], (np.array([60, 30, 10]) + 0.5) / 101.5, atol=1e-5)


# Stopping early


@ENGINES
def test_the_round_with_the_best_validation_log_loss_is_kept(engine):
    features, labels = rows_of(["a", "b", "c"], n=300)
    others, other_labels = rows_of(["a", "b", "c"], n=300, seed=0)
    rng = np.random.default_rng(5)
    others = others + rng.normal(size=others.shape)
    model = quick(PLANTS.relabel({"rose": "a", "oak": "b", "ash": "c"}), n_estimators=300,
                  early_stopping_rounds=5, **engine)  # fmt: skip
    model.fit(features, labels, eval_set=[(others, other_labels)])
    scores = model.validation_log_loss_
    assert len(scores) == model.best_iteration_ + 1 + 5 < 300
    assert np.argmin(scores) == model.best_iteration_
    assert log_loss(model, others, other_labels) == pytest.approx(min(scores), abs=1e-5)


@ENGINES
def test_without_validation_all_rounds_are_trained(engine):
    features, labels = rows_of(["a", "b", "c"])
    model = quick(early_stopping_rounds=None, **engine).fit(features, labels)
    assert model.best_iteration_ == 29
    assert model.validation_log_loss_ is None


@ENGINES
def test_a_refit_has_the_rounds_that_were_chosen_and_all_rows(engine):
    features, labels = rows_of(["a", "b", "c"], n=300)
    settings = {"early_stopping_rounds": 3, "split_search": "full", **engine}
    first = quick(refit=False, **settings).fit(features, labels)
    again = quick(refit=True, **settings).fit(features, labels)
    assert again.best_iteration_ == first.best_iteration_ < 29
    np.testing.assert_array_equal(again.validation_log_loss_, first.validation_log_loss_)
    n_rounds = first.best_iteration_ + 1
    whole = quick(**{**settings, "n_estimators": n_rounds, "early_stopping_rounds": None})
    # The trees of all rows: nothing in them is drawn.
    np.testing.assert_allclose(
        again.predict_proba(features), whole.fit(features, labels).predict_proba(features),
        rtol=1e-6,
    )  # fmt: skip
    assert not np.array_equal(again.predict_proba(features), first.predict_proba(features))


@ENGINES
def test_a_refit_leaves_the_rows_of_an_eval_set_alone(engine):
    features, labels = rows_of(["a", "b", "c"], n=300)
    given = (features[200:], labels[200:])
    refitted, not_refitted = (
        quick(refit=refit, **engine).fit(features[:200], labels[:200], eval_set=given)
        for refit in (True, False)
    )
    np.testing.assert_array_equal(
        refitted.predict_proba(features), not_refitted.predict_proba(features)
    )


@ENGINES
def test_it_warns_where_the_loss_was_still_falling_and_says_what_to_change(engine):
    features, labels = rows_of(["a", "b", "c"], n=300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick(n_estimators=3, learning_rate=0.01, **engine).fit(features, labels)
        quick(n_estimators=200, early_stopping_rounds=5, **engine).fit(features, labels)
    (warned,) = (each for each in caught if each.category is ConvergenceWarning)
    assert str(warned.message) == (
        "the validation log loss was still falling after all 3 rounds; raise n_estimators or "
        "learning_rate"
    )
    assert warned.filename == __file__  # it points at the call of fit


@ENGINES
def test_classes_of_one_row_stay_in_training(engine):
    features, labels = rows_of(["a", "b"], n=100)
    labels = np.append(labels, "rare")
    model = quick(refit=False, **engine)
    model.fit(np.vstack([features, np.full((1, 4), 9.0)]), labels)
    assert model.predict_proba(np.full((1, 4), 9.0))[0, 2] > 1.5 / 102.5


# Labels


@pytest.mark.parametrize(
    "classes", [["winter", "summer", "autumn"], [30, 10, 20], [True, False]], ids=str
)
@pytest.mark.parametrize("with_structure", [False, True])
def test_labels_of_any_kind_come_back(classes, with_structure):
    features, labels = rows_of(classes, n=200)
    model = quick(trivial(classes) if with_structure else None).fit(features, labels)
    assert model.classes_.tolist() == sorted(classes)
    assert model.predict(features).dtype == labels.dtype
    assert (model.predict(features) == labels).mean() > 0.6
    proba = model.predict_proba(features)
    assert sklearn_log_loss(labels, proba, labels=sorted(classes)) < np.log(len(classes))


@ENGINES
def test_columns_are_sorted_whatever_the_order_of_the_structure(engine):
    features, labels = rows_of(months().classes, n=400)
    structure = months()
    backwards = structure.restrict(structure.classes[::-1])
    proba = [
        quick(given, n_estimators=10, split_search="full", **engine)
        .fit(features, labels)
        .predict_proba(features)
        for given in (structure, backwards)
    ]
    np.testing.assert_allclose(*proba, atol=1e-5)


@ENGINES
def test_a_class_without_a_row_gets_a_column(engine):
    features, labels = rows_of(["oak", "rose"], n=100)
    model = quick(PLANTS, **engine).fit(features, labels)
    assert model.classes_.tolist() == ["ash", "oak", "rose"]
    proba = model.predict_proba(features)
    assert (proba[:, 0] < proba[:, 1:].max(axis=1)).all()
    assert (proba[:, 0] > 0).all()


@ENGINES
def test_the_level_of_a_prediction_is_the_most_probable_block(engine):
    features, labels = rows_of(PLANTS.classes, n=200)
    model = quick(PLANTS, **engine).fit(features, labels)
    proba = dict(zip(model.classes_, model.predict_proba(features).T, strict=True))
    is_tree = proba["oak"] + proba["ash"] > proba["rose"]
    predicted = model.predict_level(features, "kind")
    np.testing.assert_array_equal(predicted, np.where(is_tree, "tree", "flower"))


def test_the_decision_function_is_the_logarithm_of_the_odds():
    features, labels = rows_of(["a", "b", "c"])
    model = quick().fit(features, labels)
    logits = model.decision_function(features)
    log_proba = model.predict_log_proba(features)
    np.testing.assert_allclose(logits - logits[:, :1], log_proba - log_proba[:, :1], atol=1e-10)
    features, labels = rows_of(["no", "yes"])
    model = quick().fit(features, labels)
    proba = model.predict_proba(features)
    np.testing.assert_allclose(
        model.decision_function(features), np.log(proba[:, 1] / proba[:, 0]), atol=1e-6
    )


# Search for splits


VECTORS = engines(OURS, XGBOOST)


@VECTORS
def test_a_structured_search_with_plain_loss_learns_other_trees(engine):
    structure, features, labels = planted_problem(600)
    full = quick(structure, weights=1.0, **engine).fit(features, labels)
    plain = quick(**engine).fit(features, labels)
    np.testing.assert_allclose(
        full.predict_proba(features), plain.predict_proba(features), atol=1e-6
    )
    structured = quick(structure, weights=1.0, split_search="structured", **engine)
    structured.fit(features, labels)
    assert not np.allclose(structured.predict_proba(features), plain.predict_proba(features))
    assert log_loss(structured, features, labels) < 0.9 * np.log(12)


@VECTORS
def test_a_structured_search_finds_what_tells_blocks_apart_first(engine):
    """One column tells the groups apart, the other the classes; the partition is of the groups."""
    rng = np.random.default_rng(0)
    codes = rng.integers(6, size=600)
    structure = hierarchy({c: (c // 3,) for c in range(6)}, weights=[1.0, 0.0])
    features = np.column_stack([codes % 3, codes // 3]) + rng.normal(scale=0.01, size=(600, 2))
    model = quick(structure, weights=1.0, split_search="structured", **engine)
    model.set_params(max_depth=1, n_estimators=5).fit(features, codes)
    assert model.feature_importances_.tolist() == [0.0, 1.0]


# Weights


def test_weights_are_kept_given_or_chosen():
    structure, features, labels = planted_problem(150)
    assert quick(structure).fit(features, labels).weights_.tolist() == [0.5, 0.5]
    assert quick(structure, weights=[0.2, 0.8]).fit(features, labels).weights_[1] == 0.8
    assert quick(structure, weights=0.3).fit(features, labels).weights_[1] == 0.3
    chosen = quick(structure, weights="auto", n_estimators=10).fit(features, labels)
    assert chosen.weights_[1] in (1.0, 0.7, 0.4, 0.1)


# As part of scikit-learn


@ENGINES
def test_it_works_in_pipelines_and_searches(engine):
    structure = months()
    features, labels = rows_of(structure.classes, n=240)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), quick(structure, n_estimators=5, **engine)),
        {"structuredboostingclassifier__max_depth": [1, 2]},
        cv=2,
        scoring="neg_log_loss",
    ).fit(features, labels)
    assert search.best_score_ > -np.log(12)
    model = quick(structure, n_estimators=5, **engine)
    predicted = cross_val_predict(model, features, labels, cv=2)
    assert set(predicted) <= set(structure.classes)
    places = {label: place for place, label in enumerate(sorted(structure.classes))}
    by_place = clone(model).set_params(structure=structure.relabel(places))
    proba = cross_val_predict(by_place, features, labels, cv=2, method="predict_proba")
    assert sklearn_log_loss(labels, proba) < np.log(12)


@ENGINES
def test_it_can_be_calibrated_by_scikit_learn(engine):
    structure, features, labels = planted_problem(300)
    calibrated = CalibratedClassifierCV(quick(structure, n_estimators=5, **engine), cv=2)
    calibrated.fit(features, labels)
    np.testing.assert_allclose(calibrated.predict_proba(features).sum(axis=1), 1)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),  # noqa: S301  our own
    "cloudpickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
    "deepcopy": copy.deepcopy,
}


@ENGINES
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_a_model_predicts_the_same(engine, copied):
    features, labels = rows_of(PLANTS.classes)
    model = quick(PLANTS, **engine).fit(features, labels)
    again = copied(model)
    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_a_clone_has_the_parameters_and_nothing_that_was_learned():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredBoostingClassifier(PLANTS, n_estimators=2, n_bags=2, max_bins=9, n_jobs=1)
    again = clone(model.fit(features, labels))
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "classes_")


@ENGINES
def test_the_same_seed_gives_the_same_model_and_another_one_another(engine):
    features, labels = rows_of(PLANTS.classes, n=200)

    def proba(seed):
        model = quick(PLANTS, subsample=0.5, colsample=0.5, **engine).set_params(random_state=seed)
        return model.fit(features, labels).predict_proba(features)

    np.testing.assert_array_equal(proba(1), proba(1))
    assert not np.array_equal(proba(1), proba(2))


@ENGINES
def test_importances_are_shares_of_the_gain(engine):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3))
    labels = np.where(features[:, 1] > 0, "up", "down")
    importances = quick(**engine).fit(features, labels).feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.argmax() == 1


@ENGINES
def test_a_progress_bar_counts_the_rounds_and_those_of_the_refit(capsys, engine):
    features, labels = rows_of(["a", "b"])
    quick(n_estimators=7, progress=True, **engine).fit(features, labels)
    first, _, refit = capsys.readouterr().out.partition("boosting on all rows")
    assert "7 rounds" in first
    assert "validation log loss" in first
    assert "rounds" in refit
    assert "validation" not in refit
    quick(n_estimators=7, progress=True, refit=False, **engine).fit(features, labels)
    assert "all rows" not in capsys.readouterr().out


@ENGINES
def test_threads_do_not_change_the_model(engine):
    structure = circular(range(12))
    features, labels = rows_of(range(12), n=500)
    one, two = (
        quick(structure, n_jobs=n, **engine).fit(features, labels).predict_proba(features)
        for n in (1, 2)
    )
    np.testing.assert_allclose(one, two, atol=0 if engine is OURS else 1e-5, rtol=0)


@ENGINES
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_between_rounds(engine, n_jobs):
    class Interrupted:
        classes = PLANTS.classes

        def sample(self, iteration) -> RandomPartition:
            if iteration == 3:
                signal.raise_signal(signal.SIGINT)
            return PLANTS

    features, labels = rows_of(PLANTS.classes, n=200)
    model = quick(Interrupted(), n_jobs=n_jobs, **engine)
    with pytest.raises(KeyboardInterrupt):
        model.fit(features, labels)
    assert not hasattr(model, "classes_")
