import itertools

import lightgbm
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from structent import SpanningTreePartitions, trivial
from structent.errors import StructureError
from structent.kernels import reference
from structent.losses.boosters.lightgbm import structured_metric, structured_objective
from structent.structure import catalog
from tests.losses.boosters.test_xgboost import _Recording, rows

pytestmark = pytest.mark.requires("lightgbm")

MONTHS = catalog.months()
COUNTIES = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=3)


def parameters(k=12, **more):
    return {
        "num_class": k, "verbosity": -1, "num_threads": 1, "num_leaves": 8, "deterministic": True,
        "force_row_wise": True, "min_data_in_leaf": 5, **more,
    }  # fmt: skip


def train(objective, dataset, n_rounds=20, **more):
    return lightgbm.train(parameters(objective=objective, **more), dataset, n_rounds)


def test_gradient_and_curvature_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    margins = np.asfortranarray(rng.normal(size=(9, 12)))
    labels, weights = rng.integers(12, size=9), rng.random(9)
    arguments = (margins, labels, MONTHS.block_of, MONTHS.weights)
    q = softmax(margins, axis=1)
    wanted = {
        "gradient": reference.gradient_magnitude(*arguments, xp=np),
        "bound": reference.bound_curvature(margins, MONTHS.weights, xp=np),
        "fisher": reference.fisher_curvature(margins, *arguments[2:], xp=np),
        "native": 12 / 11 * q * (1 - q),
    }
    for curvature, of_reference in wanted.items():
        objective = structured_objective(MONTHS, curvature=curvature)
        gradient, hessian = objective(labels, margins, weights)
        wanted_gradient = reference.gradient_from_logits(*arguments, xp=np)
        np.testing.assert_allclose(gradient, weights[:, None] * wanted_gradient, atol=4e-6)
        np.testing.assert_allclose(hessian, weights[:, None] * of_reference, atol=4e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_native_curvature_without_structure_is_the_native_objective(weighted):
    features, labels = rows()
    weights = np.random.default_rng(1).random(len(labels)) + 0.5 if weighted else None
    frequencies = np.bincount(labels, weights=weights, minlength=12)
    start = np.log(frequencies / frequencies.sum())
    ours = train(
        structured_objective(trivial(range(12)), curvature="native"),
        lightgbm.Dataset(
            features, label=labels, weight=weights, init_score=np.tile(start, (len(labels), 1))
        ),
    )
    native = train("multiclass", lightgbm.Dataset(features, label=labels, weight=weights))
    margins = ours.predict(features, raw_score=True) + start
    np.testing.assert_allclose(softmax(margins, axis=1), native.predict(features), atol=1e-5)


def test_training_lowers_the_structured_loss_also_where_values_are_missing():
    features, labels = rows(missing=True)
    data = lightgbm.Dataset(features, label=labels)
    results: dict = {}
    lightgbm.train(
        parameters(objective=structured_objective(MONTHS)), data, 15, valid_sets=[data],
        valid_names=["train"], feval=structured_metric(MONTHS),
        callbacks=[lightgbm.record_evaluation(results)],
    )  # fmt: skip
    losses = results["train"]["structured-log-loss"]
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


def test_the_scikit_learn_estimator_trains_the_same_trees():
    features, labels = rows()
    weights = np.random.default_rng(0).random(len(labels))
    settings = {name: value for name, value in parameters().items() if name != "num_class"}
    estimator = lightgbm.LGBMClassifier(
        objective=structured_objective(MONTHS), n_estimators=8, **settings
    )
    estimator.fit(features, labels, sample_weight=weights)
    data = lightgbm.Dataset(features, label=labels, weight=weights)
    booster = train(structured_objective(MONTHS), data, n_rounds=8)
    np.testing.assert_allclose(
        estimator.predict(features, raw_score=True), booster.predict(features), atol=1e-6
    )


def test_a_sampler_gives_every_round_its_own_structure_and_every_training_the_same():
    features, labels = rows(k=58)
    sampler = _Recording(COUNTIES)
    objective = structured_objective(sampler)
    for _ in range(3):
        objective(labels, np.zeros((len(labels), 58)))
    assert sampler.asked == [0, 1, 2]
    objective = structured_objective(COUNTIES)
    first, second = (
        train(objective, lightgbm.Dataset(features, label=labels), n_rounds=3, k=58)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.predict(features), second.predict(features))


def test_continued_training_gives_the_model_of_one_training():
    features, labels = rows(k=58)

    def dataset():
        return lightgbm.Dataset(features, label=labels, free_raw_data=False)

    whole = train(structured_objective(COUNTIES), dataset(), n_rounds=6, k=58)
    half = train(structured_objective(COUNTIES), dataset(), n_rounds=3, k=58)
    rest = parameters(k=58, objective=structured_objective(COUNTIES, first_round=3))
    continued = lightgbm.train(rest, dataset(), 3, init_model=half)
    np.testing.assert_allclose(continued.predict(features), whole.predict(features), atol=1e-6)


def test_the_metric_is_plain_log_loss_without_structure():
    rng = np.random.default_rng(0)
    margins, labels, weights = rng.normal(size=(6, 4)), rng.integers(4, size=6), rng.random(6)
    data = lightgbm.Dataset(np.zeros((6, 1)), label=labels, weight=weights).construct()
    name, value, more_is_better = structured_metric(trivial(range(4)))(margins, data)
    losses = -log_softmax(margins, axis=1)[np.arange(6), labels]
    assert (name, more_is_better) == ("structured-log-loss", False)
    assert value == pytest.approx(np.average(losses, weights=weights.astype(np.float32)))


def test_bad_arguments_are_refused():
    with pytest.raises(StructureError, match="RandomPartition or a sampler"):
        structured_objective(None)
    with pytest.raises(StructureError, match="curvature must be one of"):
        structured_objective(MONTHS, curvature="hessian")
    with pytest.raises(StructureError, match="one structure for all rounds"):
        structured_metric(COUNTIES)
