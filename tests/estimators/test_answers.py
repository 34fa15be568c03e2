"""Answers of any granularity from fitted models, before and after calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from structent import (
    FixedStructure,
    LabelError,
    LabelGraph,
    SpanningTreePartitions,
    StructuredBoostingClassifier,
    StructuredLogisticRegression,
    StructureError,
)
from structent.decisions import answer_report, block_scores, calibrated_hedge, hedge
from structent.estimators.answers import predicted_blocks
from structent.structure.catalog import cifar100, months
from tests.estimators.problems import PLANTS, planted_problem, rows_of
from tests.strategies import distributions, random_partitions

QUICK = {"n_estimators": 12, "learning_rate": 0.3, "max_depth": 3, "n_jobs": 1, "random_state": 0}
STRUCTURE, FEATURES, LABELS = planted_problem(3000)
TRAIN, HELD_OUT, NEW = slice(200), slice(200, 600), slice(600, None)
MODELS = pytest.mark.parametrize(
    "model",
    [
        StructuredBoostingClassifier(STRUCTURE, **QUICK),
        pytest.param(
            StructuredBoostingClassifier(STRUCTURE, engine="xgboost", **QUICK),
            marks=pytest.mark.requires("xgboost"),
        ),
        StructuredLogisticRegression(STRUCTURE),
    ],
    ids=["boosting", "xgboost", "linear"],
)


def fitted(model):
    return clone(model).fit(FEATURES[TRAIN], LABELS[TRAIN])


def calibrated(model):
    return fitted(model).calibrate_blocks(FEATURES[HELD_OUT], LABELS[HELD_OUT])


@MODELS
def test_without_calibration_the_answers_are_those_of_hedge(model):
    model = fitted(model)
    assert model.block_scores_ is None
    found = model.predict_blocks(FEATURES[NEW], confidence=0.7)
    wanted = hedge(model.predict_proba(FEATURES[NEW]), STRUCTURE, 0.7, classes=model.classes_)
    assert (found.sets, found.names, found.levels) == (wanted.sets, wanted.names, wanted.levels)
    np.testing.assert_array_equal(found.probability, wanted.probability)


@MODELS
def test_one_calibration_serves_every_confidence(model):
    model = calibrated(model)
    scores = block_scores(
        LABELS[HELD_OUT], model.predict_proba(FEATURES[HELD_OUT]), STRUCTURE,
        classes=model.classes_,
    )  # fmt: skip
    np.testing.assert_array_equal(model.block_scores_, np.sort(scores))
    proba = model.predict_proba(FEATURES[NEW])
    for confidence in (0.5, 0.8, 0.95):
        found = model.predict_blocks(FEATURES[NEW], confidence=confidence)
        wanted = calibrated_hedge(proba, STRUCTURE, confidence, scores, classes=model.classes_)
        assert found.sets == wanted.sets


@MODELS
def test_a_calibrated_model_covers_what_it_promises(model):
    report = answer_report(LABELS[NEW], calibrated(model).predict_blocks(FEATURES[NEW]))
    # 400 rows of calibration and 2,400 new ones: a standard deviation of 1.6 points.
    assert abs(report.coverage - 0.9) < 0.05
    assert report.average_size < 12


@MODELS
def test_a_new_fit_forgets_the_calibration(model):
    model = calibrated(model)
    assert model.fit(FEATURES[TRAIN], LABELS[TRAIN]).block_scores_ is None
    assert not hasattr(clone(calibrated(model)), "block_scores_")


@MODELS
def test_columns_and_labels_are_matched_by_name(model):
    renamed = STRUCTURE.relabel(
        {label: f"{99 - place} {label}" for place, label in enumerate(STRUCTURE.classes)}
    )
    labels = np.array(renamed.classes)[STRUCTURE.encode(LABELS)]
    other = clone(model).set_params(structure=renamed, **_no_subsets(model))
    other.fit(FEATURES[TRAIN], labels[TRAIN])
    assert other.classes_.tolist() != list(renamed.classes)
    other.calibrate_blocks(FEATURES[HELD_OUT], labels[HELD_OUT])
    same = clone(model).set_params(**_no_subsets(model)).fit(FEATURES[TRAIN], LABELS[TRAIN])
    same.calibrate_blocks(FEATURES[HELD_OUT], LABELS[HELD_OUT])
    np.testing.assert_allclose(other.block_scores_, same.block_scores_, atol=1e-3)


def _no_subsets(model):
    """Early stopping would hold back other rows where classes are sorted otherwise."""
    has_early_stopping = "early_stopping_rounds" in model.get_params()
    return {"early_stopping_rounds": None} if has_early_stopping else {}


def test_the_calibration_survives_a_file(tmp_path):
    model = calibrated(StructuredBoostingClassifier(STRUCTURE, **QUICK))
    model.save(tmp_path / "model")
    loaded = StructuredBoostingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.block_scores_, model.block_scores_)
    for confidence in (0.8, 0.9):
        found = loaded.predict_blocks(FEATURES[NEW], confidence=confidence)
        assert found.sets == model.predict_blocks(FEATURES[NEW], confidence=confidence).sets


@pytest.mark.requires("dask")
def test_the_calibration_survives_a_model_on_dask(tmp_path):
    from structent.estimators.dask.classifier import DaskStructuredBoostingClassifier

    model = calibrated(StructuredBoostingClassifier(STRUCTURE, **QUICK))
    model.save(tmp_path / "model")
    on_dask = DaskStructuredBoostingClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(on_dask.to_local().block_scores_, model.block_scores_)
    on_dask.save(tmp_path / "again")
    again = StructuredBoostingClassifier.load(tmp_path / "again")
    np.testing.assert_array_equal(again.block_scores_, model.block_scores_)


def test_so_few_rows_as_guarantee_nothing_give_all_classes():
    model = fitted(StructuredLogisticRegression(STRUCTURE))
    model.calibrate_blocks(FEATURES[200:208], LABELS[200:208])
    assert set(model.predict_blocks(FEATURES[NEW], confidence=0.9).names) == {"all classes"}
    assert set(model.predict_blocks(FEATURES[NEW], confidence=0.5).names) != {"all classes"}


# What cannot be used


@MODELS
def test_labels_that_the_structure_does_not_know_are_refused(model):
    model = fitted(model)
    wrong = LABELS[HELD_OUT].copy()
    wrong[3] = "class 99"
    with pytest.raises(LabelError, match="'class 99' is not a class of the structure"):
        model.calibrate_blocks(FEATURES[HELD_OUT], wrong)
    with pytest.raises(LabelError, match="'group 1' is not a class of the structure"):
        model.calibrate_blocks(FEATURES[:1], ["group 1"])
    with pytest.raises(LabelError, match="the label of every row, got None for y"):
        model.calibrate_blocks(FEATURES[:1], None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.calibrate_blocks(FEATURES[:2], LABELS[:1])
    assert model.block_scores_ is None


def test_a_sampler_has_no_blocks_to_answer_with():
    graph = LabelGraph([("rose", "oak"), ("oak", "ash")])
    features, labels = rows_of(PLANTS.classes)
    sampler = SpanningTreePartitions(graph, n_blocks=2, singleton_weight=0.5)
    model = StructuredBoostingClassifier(sampler, **QUICK).fit(features, labels)
    message = r"blocks stay the same, got SpanningTreePartitions, .* such as its sample\(0\)"
    with pytest.raises(StructureError, match=f"predict_blocks .*{message}"):
        model.predict_blocks(features)
    with pytest.raises(StructureError, match=f"calibrate_blocks .*{message}"):
        model.calibrate_blocks(features, labels)


@pytest.mark.parametrize(
    "model",
    [StructuredBoostingClassifier(**QUICK), StructuredLogisticRegression()],
    ids=["boosting", "linear"],
)
def test_a_model_without_structure_has_no_blocks(model):
    features, labels = rows_of(PLANTS.classes)
    model = clone(model).fit(features, labels)
    with pytest.raises(StructureError, match="needs a model with a structure, got structure=None"):
        model.predict_blocks(features)
    with pytest.raises(StructureError, match="needs a model with a structure, got structure=None"):
        model.calibrate_blocks(features, labels)


@MODELS
def test_a_confidence_must_be_a_probability(model):
    for trained in (fitted(model), calibrated(model)):
        with pytest.raises(StructureError, match="confidence must be between 0 and 1, got 90"):
            trained.predict_blocks(FEATURES[:2], confidence=90)


@given(st.data())
def test_the_predicted_block_has_the_largest_sum_of_probabilities(data):
    structure = data.draw(random_partitions(classes=range(data.draw(st.integers(1, 8)))))
    p = data.draw(distributions(structure.n_classes))
    for level, partitions in structure.levels.items():
        if len(partitions) > 1:
            continue
        found = predicted_blocks(p[None], structure, level)
        sums = {
            name: sum(p[structure.classes.index(label)] for label in block)
            for name, block in zip(partitions[0].names, partitions[0].blocks, strict=True)
        }
        assert sums[found[0]] == pytest.approx(max(sums.values()), abs=1e-15)


def test_certain_rows_have_the_block_of_their_class():
    structure = cifar100()
    for level, (partition,) in structure.levels.items():
        found = predicted_blocks(np.eye(100), structure, level)
        assert found.tolist() == partition.coarsen(structure.classes).tolist()


def test_what_has_no_one_answer_is_refused():
    uniform = np.full((1, 12), 1 / 12)
    with pytest.raises(StructureError, match="level must have one partition, got 'width 3' with 3"):
        predicted_blocks(uniform, months(), "width 3")
    with pytest.raises(StructureError, match="to have levels, got FixedStructure"):
        predicted_blocks(uniform, FixedStructure(months()), "class")
    with pytest.raises(LabelError, match="'width' is not a level of the structure"):
        predicted_blocks(uniform, months(), "width")
    with pytest.raises(StructureError, match="covers 12 classes but axis -1 of proba has 11"):
        predicted_blocks(np.full((1, 11), 1 / 11), months(), "class")
