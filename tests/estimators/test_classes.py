"""The classes of a classifier, sorted for users, in the structure's order for the model."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from structent import (
    FixedStructure,
    LabelError,
    LabelGraph,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    circular,
    mix,
    ordinal,
    trivial,
)
from structent.decisions import hedge
from structent.estimators.classes import Classes, CodedLabels
from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier
from structent.metrics import block_accuracy, block_log_loss, level_report, scorer
from structent.studies import compare
from tests.estimators.problems import LIGHTGBM, OURS, XGBOOST, with_engine


def test_users_see_sorted_classes_whatever_the_order_of_the_structure():
    classes = Classes.of(trivial(["feb", "jan", "apr"]), np.array(["jan", "feb"]))
    assert classes.values.tolist() == ["apr", "feb", "jan"]
    assert classes.encode(np.array(["jan", "apr"])).tolist() == [1, 2]
    assert classes.sorted(np.array([[0.1, 0.2, 0.7]])).tolist() == [[0.7, 0.1, 0.2]]


def test_without_structure_the_classes_are_those_of_the_labels_floats_too():
    classes = Classes.of(None, np.array([2.5, 1.0, 2.5]))
    assert classes.values.tolist() == [1.0, 2.5]
    assert classes.encode(np.array([2.5])).tolist() == [1]


def test_pairs_and_mixtures_keep_the_order_they_have():
    pairs = Classes.of_structure(trivial([("b", 1), ("a", 2)]))
    assert pairs.values.tolist() == [("a", 2), ("b", 1)]
    mixed = Classes.of_structure(trivial(["b", 1]))
    assert mixed.values.tolist() == ["b", 1]


def test_a_label_of_another_type_is_no_class():
    with pytest.raises(LabelError, match=r"'1' is not a class .* 1 of type int, not str"):
        Classes.of_structure(trivial([1, 2])).encode(np.array(["1"]))


def test_coded_labels_are_used_as_they_are_where_the_classes_are_the_same():
    structure = trivial(["b", "a", "c"])
    labels = CodedLabels(np.array([0, 2, 1]), structure.classes)
    assert Classes.of_structure(structure).encode(labels[:2]).tolist() == [0, 2]
    scrambled = circular(["b", "a", "c"], width=2).scramble(np.random.default_rng(0))
    assert Classes.of_structure(scrambled).encode(labels) is labels.codes
    other = Classes.of_structure(trivial(["a", "b", "c", "d"]))
    assert other.encode(labels).tolist() == [1, 2, 0]
    assert np.asarray(labels).tolist() == ["b", "c", "a"]


def test_coded_sets_are_those_that_the_rows_have():
    labels = CodedLabels(np.array([0, 4, 3, 1]), ("b", "a", "c"), ((0, 1), (1, 2)))
    structure = trivial(["c", "a", "b"])
    whole = Classes.of_mixed(structure, labels)
    assert whole.sets == ((0, 1), (1, 2))
    assert whole.encode(labels).tolist() == [2, 3, 4, 1]
    part = Classes.of_mixed(structure, labels[:2])
    assert part.sets == ((0, 1),)
    assert part.encode(labels[:2]).tolist() == [2, 3]


def test_coded_labels_of_one_class_are_refused_by_name():
    labels = CodedLabels(np.zeros(4, dtype=int), ("ash", "oak"))
    for model in (StructuredBoostingClassifier, StructuredLogisticRegression):
        with pytest.raises(LabelError, match=r"got 1 class: \['ash'\]"):
            model(trivial(["ash", "oak"])).fit(np.zeros((4, 1)), labels)


pytestmark = pytest.mark.requires("dask")

MONTHS = circular(["jan", "apr", "jul", "oct"], width=2)
COAST = LabelGraph([("Marin", "Sonoma"), ("Sonoma", "Napa"), ("Marin", "Napa")])
COUNTIES = SpanningTreePartitions(COAST, n_blocks=2, singleton_weight=0.5, seed=1)
OTHER_COUNTIES = SpanningTreePartitions(COAST, n_blocks=2, singleton_weight=0.2, seed=2)
PAIRS = MONTHS.product(ordinal(COAST.classes))
MONTH_ALONE = Partition.from_mapping({pair: pair[0] for pair in PAIRS.classes})

STRUCTURES = {
    "product": PAIRS,
    "product with a sampler": MONTHS.product(COUNTIES),
    "product of samplers": SpanningTreePartitions(
        LabelGraph([("jan", "apr"), ("apr", "jul"), ("jul", "oct"), ("oct", "jan")]), 2, 0.5
    ).product(COUNTIES),
    "mixture": mix([PAIRS, trivial(PAIRS.classes)]),
    "mixture with a sampler": mix([PAIRS, MONTHS.product(COUNTIES)], [0.3, 0.7]),
    "scrambled": MONTHS.product(COUNTIES).scramble(np.random.default_rng(0)),
    "fixed": FixedStructure(PAIRS),
}
EACH_STRUCTURE = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())

RNG = np.random.default_rng(0)
CODES = RNG.integers(12, size=240)
X = np.column_stack([CODES // 3, CODES % 3]) + RNG.normal(scale=0.2, size=(240, 2))
Y = np.fromiter((PAIRS.classes[code] for code in CODES), dtype=object, count=240)
FORMS = {
    "objects": Y,
    "list": Y.tolist(),
    "series": pd.Series(Y),
    "pandas": pd.DataFrame(Y.tolist(), columns=["month", "county"]),
    "two columns": np.array(Y.tolist(), dtype=object),
}
ROUNDS = {
    "n_estimators": 8, "learning_rate": 0.5, "max_depth": 3, "subsample": 1.0, "colsample": 1.0,
    "random_state": 0, "n_jobs": 1,
}  # fmt: skip


def boosting(structure=PAIRS, **more):
    return StructuredBoostingClassifier(structure, **{**ROUNDS, **more})


@pytest.mark.parametrize("y", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("model", [boosting(), StructuredLogisticRegression(PAIRS, C=10.0)])
def test_pairs_are_learned_in_whatever_form_they_come(model, y):
    fitted = clone(model).fit(X, y)
    assert fitted.classes_.tolist() == sorted(PAIRS.classes)
    assert np.array_equal(fitted.predict_proba(X), clone(model).fit(X, Y).predict_proba(X))
    predicted = fitted.predict(X)
    assert predicted.dtype == object
    hits = [label == best for label, best in zip(Y, predicted, strict=True)]
    assert np.mean(hits) > 0.9
    weights = RNG.random(240)
    assert fitted.score(X, y) == pytest.approx(np.mean(hits))
    assert fitted.score(X, y, weights) == pytest.approx(np.average(hits, weights=weights))


@pytest.mark.parametrize("y", FORMS.values(), ids=FORMS.keys())
def test_validation_rows_may_come_in_any_form_too(y):
    model = boosting().fit(X, Y, eval_set=(X, y))
    expected = boosting().fit(X, Y, eval_set=(X, Y))
    assert model.validation_log_loss_.tolist() == expected.validation_log_loss_.tolist()


@EACH_STRUCTURE
@pytest.mark.parametrize(
    "options",
    [*map(with_engine, (OURS, XGBOOST, LIGHTGBM)), {**OURS, "split_search": "structured"}],
)
def test_every_combination_of_structures_can_be_boosted_saved_and_loaded(
    structure, options, tmp_path
):
    model = boosting(structure, **options).fit(X, Y)
    assert block_accuracy(Y, model.predict_proba(X), MONTH_ALONE, classes=model.classes_) > 0.9
    model.save(tmp_path / "pairs.structent")
    again = StructuredBoostingClassifier.load(tmp_path / "pairs.structent")
    assert again.structure == structure
    assert again.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@EACH_STRUCTURE
def test_the_weight_of_the_singletons_of_every_combination_can_be_set(structure):
    plain = boosting(trivial(PAIRS.classes)).fit(X, Y).predict_proba(X)
    without = boosting(structure, weights=1.0).fit(X, Y)
    assert without.structure_.singleton_weight == pytest.approx(1.0)
    np.testing.assert_allclose(without.predict_proba(X), plain, atol=1e-5)


@pytest.mark.parametrize("name", ["product", "product with a sampler", "mixture with a sampler"])
def test_the_weight_of_the_singletons_can_be_chosen_by_cross_validation(name):
    model = boosting(STRUCTURES[name], n_estimators=2, weights="auto").fit(X, Y)
    assert round(model.structure_.singleton_weight, 9) in (1.0, 0.7, 0.4, 0.1)


def test_models_without_a_structure_take_pairs_too(tmp_path):
    model = boosting(None).fit(X, Y.tolist())
    assert model.classes_.tolist() == sorted(PAIRS.classes)
    model.save(tmp_path / "pairs.structent")
    again = StructuredBoostingClassifier.load(tmp_path / "pairs.structent")
    assert again.predict(X[:5]).tolist() == model.predict(X[:5]).tolist()


def test_two_columns_without_a_structure_of_pairs_are_refused():
    for structure in (None, MONTHS):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            boosting(structure).fit(X, FORMS["two columns"])


def test_a_pair_that_is_no_class_is_named():
    wrong = [*Y.tolist()[:-1], ("jan", "Mono")]
    with pytest.raises(LabelError, match=r"\('jan', 'Mono'\) is not a class of the structure"):
        boosting().fit(X, wrong)


def test_the_month_alone_can_be_a_level_without_weight():
    alone = RandomPartition([MONTH_ALONE], levels=["month"])
    structure = mix([PAIRS, alone], weights=[1, 0])
    model = boosting(structure).fit(X, Y)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(proba, boosting().fit(X, Y).predict_proba(X))
    months = model.predict_level(X, "month")
    by_hand = np.stack(
        [proba[:, [pair[0] == m for pair in model.classes_]].sum(axis=1) for m in MONTHS.classes]
    )
    assert months.tolist() == [MONTHS.classes[best] for best in by_hand.argmax(axis=0)]
    report = level_report(Y, proba, structure, classes=model.classes_)
    (row,) = [row for row in report.rows if row.level == "month"]
    wanted = -np.log([by_hand[MONTHS.classes.index(y[0]), i] for i, y in enumerate(Y)]).mean()
    assert row.log_loss == pytest.approx(wanted)
    assert block_log_loss(Y, proba, MONTH_ALONE, classes=model.classes_) == pytest.approx(wanted)


def test_an_unsure_answer_is_a_block_of_pairs():
    proba = np.zeros((1, 12))
    proba[0, [0, 1]] = 0.5  # January, and Marin or Sonoma
    answer = hedge(proba, PAIRS, 0.9, classes=PAIRS.classes)
    assert answer.names == ("(jan, Marin+Sonoma)",)


def test_scorers_and_cross_validation_take_pairs():
    scores = cross_val_score(
        boosting(), X, Y, cv=KFold(3, shuffle=True, random_state=0),
        scoring=scorer(block_accuracy, MONTH_ALONE),
    )  # fmt: skip
    assert (scores > 0.7).all()


@pytest.mark.parametrize("name", ["product", "product with a sampler", "mixture with a sampler"])
def test_combinations_can_be_compared(name):
    found = compare(
        X, FORMS["pandas"], STRUCTURES[name], n_folds=3, n_repeats=1, n_copies=1, n_jobs=1,
        estimator=boosting(n_estimators=3),
    )  # fmt: skip
    assert found.verdict.finding in ("use it", "do not use it", "undecided")
    assert found.task.classes == STRUCTURES[name].classes


def test_pairs_are_learned_on_a_cluster():
    dask_x, dask_y = da.from_array(X, chunks=120), da.from_array(Y, chunks=120)
    with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        for structure in (PAIRS, MONTHS.product(COUNTIES)):
            model = DaskStructuredBoostingClassifier(
                structure, early_stopping_rounds=None, client=client, **ROUNDS
            ).fit(dask_x, dask_y)
            local = boosting(structure, early_stopping_rounds=None, engine="xgboost").fit(X, Y)
            proba = model.predict_proba(dask_x).compute()
            np.testing.assert_allclose(proba, local.predict_proba(X), atol=1e-4)
            assert model.predict(dask_x).compute().tolist() == local.predict(X).tolist()
        model = DaskStructuredBoostingClassifier(PAIRS, client=client, **ROUNDS)
        model.fit(dask_x, dask_y, eval_set=(X, FORMS["pandas"]))
        assert len(model.validation_log_loss_) == 8
