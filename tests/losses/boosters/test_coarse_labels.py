"""Boosters trained on rows that are labelled by classes, blocks and sets of classes."""

import pickle
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
import xgboost

from structent import LabelError, SpanningTreePartitions, trivial
from structent.kernels import reference
from structent.losses.boosters import lightgbm as for_lightgbm
from structent.losses.boosters import xgboost as for_xgboost
from structent.structure import catalog
from tests.kernels.problems import members_of

pytestmark = [pytest.mark.requires(name) for name in ("xgboost", "lightgbm")]

MONTHS = catalog.months()
BOTH = pytest.mark.parametrize("losses", [for_xgboost, for_lightgbm], ids=["xgboost", "lightgbm"])


def rows_with_seasons(n=400):
    """Months that can be told by two numbers; every second row says the quarter only."""
    rng = np.random.default_rng(0)
    month = rng.integers(1, 13, size=n)
    angle = month * np.pi / 6
    x = np.stack([np.sin(angle), np.cos(angle)], axis=1) + 0.1 * rng.normal(size=(n, 2))
    quarters = [{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}]
    labels = [quarters[(m - 1) // 3] if i % 2 else m for i, m in enumerate(month.tolist())]
    return x, month, MONTHS.encode_with_blocks(labels)


def as_data(codes, weights=None):
    given = codes.astype(np.float32)
    return SimpleNamespace(get_label=lambda: given, get_weight=lambda: weights)


def expected(name, structure, margins, label_sets):
    return getattr(reference, name)(
        margins.astype(np.float64), label_sets.codes, structure.block_of, structure.weights,
        xp=np, members=members_of(label_sets.coarse_sets, structure.n_classes),
    )  # fmt: skip


@BOTH
@pytest.mark.parametrize(
    ("curvature", "formula"),
    [("gradient", "gradient_magnitude"), ("fisher", "fisher_curvature_of_codes")],
)
def test_gradient_and_curvature_are_those_of_the_reference(losses, curvature, formula):
    _, _, label_sets = rows_with_seasons(9)
    margins = np.random.default_rng(0).normal(size=(9, 12)).astype(np.float32)
    objective = losses.structured_objective(MONTHS, curvature=curvature, label_sets=label_sets)
    weights = np.linspace(1, 2, 9, dtype=np.float32)
    gradient, hessian = objective(
        label_sets.codes.astype(np.float32), margins,
        **{"sample_weight" if losses is for_xgboost else "weight": weights},
    )  # fmt: skip
    for found, name in ((gradient, "gradient_from_logits"), (hessian, formula)):
        wanted = weights[:, None] * expected(name, MONTHS, margins, label_sets)
        np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=4e-6)


@BOTH
def test_the_metric_is_the_weighted_mean_of_the_losses(losses):
    _, _, label_sets = rows_with_seasons(9)
    margins = np.random.default_rng(0).normal(size=(9, 12)).astype(np.float32)
    weights = np.linspace(1, 2, 9, dtype=np.float32)
    metric = losses.structured_metric(MONTHS, label_sets=label_sets)
    wanted = expected("structured_cross_entropy_from_logits", MONTHS, margins, label_sets)
    found = metric(margins, as_data(label_sets.codes, weights))[1]
    assert found == pytest.approx(np.average(wanted, weights=weights), rel=1e-5)


@BOTH
def test_a_sampler_draws_for_sets_in_every_round(losses):
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    a, b, c = sampler.classes[:3]
    label_sets = trivial(sampler.classes).encode_with_blocks([a, {b, c}])
    margins = np.random.default_rng(0).normal(size=(2, 58)).astype(np.float32)
    objective = losses.structured_objective(sampler, first_round=5, label_sets=label_sets)
    for step in range(5, 8):
        gradient, _ = objective(label_sets.codes.astype(np.float32), margins)
        wanted = expected("gradient_from_logits", sampler.sample(step), margins, label_sets)
        np.testing.assert_allclose(gradient, wanted, rtol=4e-6, atol=4e-6)


def test_xgboost_learns_months_from_months_and_quarters():
    x, month, label_sets = rows_with_seasons()
    data = xgboost.DMatrix(x, label=label_sets.codes)
    parameters = {
        "objective": "multi:softprob", "num_class": 12, "multi_strategy": "multi_output_tree",
        "min_child_weight": 0, "disable_default_eval_metric": True, "nthread": 1,
    }  # fmt: skip
    results = {}
    booster = xgboost.train(
        parameters, data, 30, obj=for_xgboost.structured_objective(MONTHS, label_sets=label_sets),
        custom_metric=for_xgboost.structured_metric(MONTHS, label_sets=label_sets),
        evals=[(data, "train")], evals_result=results, verbose_eval=False,
    )  # fmt: skip
    assert results["train"]["structured-log-loss"][-1] < 0.2
    assert (booster.predict(data).argmax(axis=1) + 1 == month).mean() > 0.9


def test_lightgbm_learns_months_from_months_and_quarters():
    x, month, label_sets = rows_with_seasons()
    objective = for_lightgbm.structured_objective(MONTHS, label_sets=label_sets)
    booster = lightgbm.train(
        {"objective": objective, "num_class": 12, "verbose": -1, "num_threads": 1},
        lightgbm.Dataset(x, label=label_sets.codes),
        30,
    )
    assert (booster.predict(x).argmax(axis=1) + 1 == month).mean() > 0.9


@BOTH
def test_a_copy_keeps_the_label_sets(losses):
    _, _, label_sets = rows_with_seasons(9)
    margins = np.zeros((9, 12), dtype=np.float32)
    objective = losses.structured_objective(MONTHS, label_sets=label_sets)
    copy = pickle.loads(pickle.dumps(objective))  # noqa: S301  our own
    codes = label_sets.codes.astype(np.float32)
    np.testing.assert_array_equal(copy(codes, margins)[0], objective(codes, margins)[0])


@BOTH
def test_codes_and_label_sets_that_do_not_fit_are_refused(losses):
    _, _, label_sets = rows_with_seasons(9)
    last, margins = len(label_sets.sets) - 1, np.zeros((2, 12), dtype=np.float32)
    objective = losses.structured_objective(MONTHS, label_sets=label_sets)
    metric = losses.structured_metric(MONTHS, label_sets=label_sets)
    for wrong in (last + 1, 12.5, np.nan):
        codes = np.array([0.0, wrong])
        with pytest.raises(LabelError, match=rf"codes between 0 and {last}, got .* in row 1"):
            objective(codes, margins)
        with pytest.raises(LabelError, match=r"encode_with_blocks\(labels\) gives them"):
            metric(margins, as_data(codes))
    for make in (losses.structured_objective, losses.structured_metric):
        with pytest.raises(LabelError, match=r"7 classes of the structure .* got 12 classes"):
            make(trivial(range(7)), label_sets=label_sets)
