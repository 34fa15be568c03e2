import copy
import itertools
import pickle

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings

from structent import RandomPartition, SpanningTreePartitions, circular, hierarchy, trivial
from structent.errors import LabelError, StructureError
from structent.kernels import reference
from structent.losses.boosters.rounds import drawn_blocks
from structent.losses.boosters.xgboost import SplitSearch, structured_metric, structured_objective
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, problems

pytestmark = pytest.mark.requires("xgboost")

MONTHS = catalog.months()
RING = SpanningTreePartitions(catalog.california_counties(), 10, 0.5, seed=3)
VECTOR = {"multi_strategy": "multi_output_tree"}
PER_CLASS = {"multi_strategy": "one_output_per_tree"}
TREES = pytest.mark.parametrize("trees", [VECTOR, PER_CLASS], ids=["vector", "per_class"])


def rows(n=400, k=12, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 5)).astype(np.float32)
    labels = (features @ rng.normal(size=(5, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    if missing:
        features[rng.random(features.shape) < 0.2] = np.nan
    return features, labels


def parameters(k=12, **more):
    return {"objective": "multi:softprob", "num_class": k, "max_depth": 3, "nthread": 1, **more}


def train(objective, data, n_rounds=20, **more):
    return xgboost.train(parameters(**more), data, n_rounds, obj=objective)


def fake_data(labels, weights=None):
    return xgboost.DMatrix(np.zeros((len(labels), 1)), label=labels, weight=weights)


@given(problems())
@settings(max_examples=50)
def test_gradient_and_curvatures_are_those_of_the_reference(problem):
    structure, logits, labels = problem
    assert_conforms(structure, logits, labels)


@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_margins_give_a_finite_gradient(case):
    # The reference takes Fisher's shares from log-probabilities, whose digits are lost out there.
    assert_conforms(MONTHS, *case(12), curvatures=("gradient", "bound", "native"))


def assert_conforms(
    structure, logits, labels, curvatures=("gradient", "bound", "fisher", "native")
):
    margins = logits.astype(np.float32)
    row_weights = np.linspace(0.5, 2.0, len(labels)).astype(np.float32)
    z, column = margins.astype(np.float64), row_weights[:, None]
    arguments = (z, labels, structure.block_of, structure.weights)
    # The partition into one block has no loss, and no curvature either.
    kept = structure.weights * (structure.block_of.max(axis=1) > 0)
    bound = reference.bound_curvature(z, kept, xp=np)
    wanted = {
        "gradient": lambda: reference.gradient_magnitude(*arguments, xp=np),
        "bound": lambda: bound,
        "fisher": lambda: reference.fisher_curvature(z, *arguments[2:], xp=np),
        "native": lambda: 2 * bound,
    }
    for curvature in curvatures:
        objective = structured_objective(structure, curvature=curvature)
        gradient, hessian = objective(0, margins, fake_data(labels, row_weights))
        wanted_gradient = reference.gradient_from_logits(*arguments, xp=np)
        np.testing.assert_allclose(gradient, column * wanted_gradient, rtol=4e-6, atol=4e-6)
        np.testing.assert_allclose(hessian, column * wanted[curvature](), rtol=4e-6, atol=4e-6)
        assert (hessian >= np.float32(1e-16)).all()


@TREES
def test_the_native_curvature_without_structure_is_the_native_objective(trees):
    data = xgboost.DMatrix(*rows()[:1], label=rows()[1])
    start = {"base_score": np.log(np.full(12, 1 / 12)).tolist()}
    objective = structured_objective(trivial(range(12)), curvature="native")
    ours = train(objective, data, **trees, **start)
    native = xgboost.train(parameters(**trees, **start), data, 20)
    np.testing.assert_allclose(ours.predict(data), native.predict(data), atol=1e-5, rtol=0)


@TREES
def test_training_lowers_the_structured_loss_also_where_values_are_missing(trees):
    features, labels = rows(missing=True)
    data = xgboost.DMatrix(features, label=labels)
    results: dict = {}
    xgboost.train(
        parameters(**trees), data, 15, obj=structured_objective(MONTHS), evals=[(data, "train")],
        custom_metric=structured_metric(MONTHS), evals_result=results, verbose_eval=False,
    )  # fmt: skip
    losses = results["train"]["structured-log-loss"]
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


@TREES
def test_a_weight_counts_as_so_many_rows(trees):
    features, labels = rows(n=100)
    times = np.random.default_rng(1).integers(1, 4, size=100)
    weighted = xgboost.DMatrix(features, label=labels, weight=times)
    repeated = xgboost.DMatrix(np.repeat(features, times, axis=0), label=np.repeat(labels, times))
    data = xgboost.DMatrix(features)
    start = {"base_score": [0.0] * 12}
    of_weights, of_rows = (
        train(structured_objective(MONTHS), given, n_rounds=5, **trees, **start).predict(data)
        for given in (weighted, repeated)
    )
    np.testing.assert_allclose(of_weights, of_rows, atol=1e-5)


def test_the_scikit_learn_estimator_trains_the_same_trees():
    features, labels = rows()
    weights = np.random.default_rng(0).random(len(labels))
    estimator = xgboost.XGBClassifier(
        objective=structured_objective(MONTHS), n_estimators=8, max_depth=3, n_jobs=1,
        learning_rate=0.3, base_score=[0.0] * 12, **VECTOR,
    )  # fmt: skip
    estimator.fit(features, labels, sample_weight=weights)
    data = xgboost.DMatrix(features, label=labels, weight=weights)
    booster = train(structured_objective(MONTHS), data, n_rounds=8, base_score=[0.0] * 12, **VECTOR)
    np.testing.assert_allclose(estimator.predict_proba(features), booster.predict(data), atol=1e-6)


class _Recording:
    """A sampler that keeps the iterations it was asked for."""

    def __init__(self, sampler):
        self.sampler, self.asked = sampler, []
        self.classes = sampler.classes

    def sample(self, iteration) -> RandomPartition:
        self.asked.append(iteration)
        return self.sampler.sample(iteration)


def test_a_sampler_is_asked_for_every_round_and_goes_on_where_training_goes_on():
    features, labels = rows(k=58)
    data = xgboost.DMatrix(features, label=labels)
    sampler = _Recording(RING)
    train(structured_objective(sampler), data, n_rounds=3, k=58)
    train(structured_objective(sampler, first_round=3), data, n_rounds=2, k=58)
    assert sampler.asked == [0, 1, 2, 3, 4]


@TREES
def test_continued_training_gives_the_model_of_one_training(trees):
    features, labels = rows(k=58)
    data = xgboost.DMatrix(features, label=labels)
    settings = parameters(k=58, base_score=[0.0] * 58, **trees)
    whole = xgboost.train(settings, data, 6, obj=structured_objective(RING))
    half = xgboost.train(settings, data, 3, obj=structured_objective(RING))
    rest = structured_objective(RING, first_round=3)
    continued = xgboost.train(settings, data, 3, obj=rest, xgb_model=half)
    np.testing.assert_allclose(continued.predict(data), whole.predict(data), atol=1e-6)


def test_where_no_round_is_told_calls_are_counted_and_copies_start_again():
    sampler = _Recording(RING)
    objective = structured_objective(sampler, first_round=10)
    margins, labels = np.zeros((4, 58), dtype=np.float32), np.arange(4)
    for _ in range(3):
        objective(labels, margins)
    assert sampler.asked == [10, 11, 12]
    fresh = pickle.loads(pickle.dumps(structured_objective(RING)))  # noqa: S301  our own
    expected = structured_objective(RING)(0, margins, fake_data(labels))[0]
    np.testing.assert_array_equal(fresh(labels, margins)[0], expected)
    copied = copy.deepcopy(fresh)
    np.testing.assert_array_equal(copied(labels, margins)[0], expected)


def test_the_arrays_of_a_round_are_those_of_the_last():
    objective, data = structured_objective(MONTHS), fake_data(np.arange(12))
    margins = np.zeros((12, 12), dtype=np.float32)
    first = objective(0, margins, data)
    second = objective(1, margins + 1, data)
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_new_data_bring_their_own_labels():
    objective, margins = structured_objective(MONTHS), np.zeros((12, 12), dtype=np.float32)
    objective(0, margins, fake_data(np.arange(12)))
    other = objective(0, margins, fake_data(np.arange(12)[::-1]))[0].copy()
    fresh = structured_objective(MONTHS)(0, margins, fake_data(np.arange(12)[::-1]))[0]
    np.testing.assert_array_equal(other, fresh)


@given(problems(max_rows=3))
@settings(max_examples=30)
def test_the_metric_is_the_mean_loss_of_the_reference(problem):
    structure, logits, labels = problem
    weights = np.arange(1.0, len(labels) + 1)
    losses = reference.structured_cross_entropy_from_logits(
        logits, labels, structure.block_of, structure.weights, xp=np
    )
    name, value = structured_metric(structure)(logits, fake_data(labels, weights))
    assert name == "structured-log-loss"
    assert value == pytest.approx(np.average(losses, weights=weights), rel=1e-6, abs=1e-9)


# Structured split search


def test_splits_are_searched_on_the_sums_over_blocks():
    rng = np.random.default_rng(0)
    gradient, hessian = rng.normal(size=(2, 5, 12)).astype(np.float32)
    for iteration in range(6):
        structure = MONTHS.with_singleton_weight(0.0)
        search = SplitSearch(structure, seed=1, first_round=4)
        block_of = drawn_blocks(structure, 1, 4 + iteration)
        reduced = search.reduced(iteration, gradient, hessian)
        for whole, of_blocks in zip((gradient, hessian), reduced, strict=True):
            for block in range(4):
                wanted = whole[:, block_of == block].sum(axis=1)
                np.testing.assert_allclose(of_blocks[:, block], wanted, rtol=1e-5, atol=1e-6)


def test_partitions_are_drawn_by_weight_and_by_round():
    structure = MONTHS.reweight([0.5, 0.25, 0.0, 0.25])
    drawn = [drawn_blocks(structure, 0, i).tolist() for i in range(2000)]
    share = [drawn.count(ids) / 2000 for ids in MONTHS.block_of.tolist()]
    np.testing.assert_allclose(share, [0.5, 0.25, 0.0, 0.25], atol=0.05)
    assert drawn[:20] == [drawn_blocks(structure, 0, i).tolist() for i in range(20)]


def test_a_sampler_draws_its_own_partition_for_the_splits():
    drawn = drawn_blocks(RING.with_singleton_weight(0.0), 0, 7)
    assert drawn.tolist() == RING.sample(7).block_of[0].tolist()


def test_singletons_mean_the_whole_gradient_and_one_block_is_never_drawn():
    gradient = np.ones((2, 3), dtype=np.float32)
    search = SplitSearch(trivial(["a", "b", "c"]), seed=0, first_round=0)
    assert search.reduced(0, gradient, gradient) is None
    one_block = hierarchy({"a": ("x",), "b": ("x",), "c": ("x",)}, weights=[1.0, 0.0])
    search = SplitSearch(one_block, seed=0, first_round=0)
    assert search.reduced(0, gradient, gradient) is None


def test_leaf_values_still_come_from_the_whole_gradient():
    """In a tree of one leaf there is no split: its vector is -G/(H + lambda), class by class."""
    features, labels = np.zeros((60, 1), dtype=np.float32), np.arange(60) % 12
    data = xgboost.DMatrix(features, label=labels, weight=1 + labels)
    objective = structured_objective(
        MONTHS, curvature="bound", split_structure=MONTHS.with_singleton_weight(0.0)
    )
    more = {"base_score": [0.0] * 12, "learning_rate": 1.0, "reg_lambda": 1.0, **VECTOR}
    booster = train(objective, data, n_rounds=1, **more)
    margins = np.zeros((60, 12), dtype=np.float32)
    gradient, hessian = (a.sum(axis=0) for a in objective(0, margins, data))
    wanted = -gradient / (hessian + 1.0)
    np.testing.assert_allclose(
        booster.predict(data, output_margin=True)[0], wanted, rtol=1e-4, atol=1e-6
    )


def test_a_structured_search_learns():
    features, labels = rows(n=2000)
    data = xgboost.DMatrix(features, label=labels)
    objective = structured_objective(trivial(range(12)), split_structure=MONTHS_AS_PLACES)
    proba = train(objective, data, n_rounds=40, **VECTOR).predict(data)
    assert -np.log(proba[np.arange(2000), labels]).mean() < 0.9 * np.log(12)


MONTHS_AS_PLACES = circular(range(12), width=3, singleton_weight=0.0)


# Bad input


def test_labels_that_are_no_class_are_named():
    margins = np.zeros((2, 12), dtype=np.float32)
    for label in (12, -1, 0.5, np.nan):
        with pytest.raises(LabelError, match=r"between 0 and 11, got .* in row 1"):
            structured_objective(MONTHS)(np.array([0, label]), margins)


def test_margins_of_another_width_are_refused():
    with pytest.raises(StructureError, match=r"covers 12 classes but .* num_class=12"):
        structured_objective(MONTHS)(0, np.zeros((2, 3), np.float32), fake_data([0, 1]))
    with pytest.raises(StructureError, match="num_class"):
        structured_objective(MONTHS)(0, np.zeros(2, np.float32), fake_data([0, 1]))


def test_wrong_arguments_are_refused():
    with pytest.raises(StructureError, match=r"curvature must be one of 'bound', .*, got 'exact'"):
        structured_objective(MONTHS, curvature="exact")
    with pytest.raises(StructureError, match="RandomPartition or a sampler, got 'months'"):
        structured_objective("months")
    with pytest.raises(StructureError, match="one structure for all rounds"):
        structured_metric(RING)
    margins, data = np.zeros((1, 12), dtype=np.float32), fake_data([0])
    for arguments in ((1,), (margins, data)):  # the latter is how old versions called an objective
        with pytest.raises(TypeError, match="expected margins and data"):
            structured_objective(MONTHS)(*arguments)


def test_a_structure_for_splits_has_the_same_classes_in_the_same_order():
    turned = circular(range(11, -1, -1), width=3)
    with pytest.raises(StructureError, match="classes of structure in the same order"):
        structured_objective(circular(range(12), width=3), split_structure=turned)


def test_a_metric_needs_a_margin_for_every_class_and_row():
    metric = structured_metric(circular(range(12), width=3))
    with pytest.raises(StructureError, match=r"12 classes but .* margins of shape \(2, 11\)"):
        metric(np.zeros((2, 11), dtype=np.float32), fake_data(np.zeros(2), np.ones(2)))
    with pytest.raises(StructureError, match="2 labels but there are margins of 3 rows"):
        metric(np.zeros((3, 12), dtype=np.float32), fake_data(np.zeros(2), np.ones(2)))


def test_whole_numbers_are_margins_too():
    metric, data = structured_metric(trivial(range(2))), fake_data(np.zeros(1), np.ones(1))
    whole, real = np.array([[3, 1]]), np.array([[3.0, 1.0]])
    assert metric(whole, data) == metric(real, data)
