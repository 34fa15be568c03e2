"""The structured ridge: against solvers that know nothing of blocks, given and chosen."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from structent import (
    FixedStructure,
    LabelGraph,
    SpanningTreePartitions,
    StructentError,
    StructureError,
    hierarchy,
    ordinal,
    structure_test,
    trivial,
)
from structent.estimators import linear_objective, prior
from structent.estimators.linear import StructuredLogisticRegression
from structent.structure.catalog import california_counties, months
from tests.estimators.problems import PLANTS, log_loss, planted_problem, rows_of
from tests.estimators.test_files import rewritten
from tests.estimators.test_linear import objective_by_definition

TIGHT = {"tol": 1e-8, "max_iter": 5000}
COUNTIES = SpanningTreePartitions(california_counties(), 10, 0.5, seed=3)
GRID = SpanningTreePartitions(
    LabelGraph([(i, i + 1) for i in range(7) if i != 3] + [(i, i + 4) for i in range(4)]), 3, 0.5
)


def in_order(model, structure):
    """Coefficients and intercepts in the order of the structure's classes."""
    places = [model.classes_.tolist().index(label) for label in structure.classes]
    return model.coef_[places], model.intercept_[places]


def solved_on_the_dense_table(similarity, codes, features, c):
    """Minimise plain cross-entropy + tr(W' K^-1 W) / 2C over W and b by another method."""
    k, d = len(similarity), features.shape[1]
    inverse, one_hot = np.linalg.inv(similarity), np.eye(k)[codes]

    def value_and_gradient(flat):
        coef, intercept = flat[: k * d].reshape(k, d), flat[k * d :]
        logits = features @ coef.T + intercept
        value = -(one_hot * log_softmax(logits, axis=1)).sum()
        value += np.trace(coef.T @ inverse @ coef) / (2 * c)
        error = softmax(logits, axis=1) - one_hot
        gradient = error.T @ features + inverse @ coef / c
        return value, np.concatenate([gradient.ravel(), error.sum(axis=0)])

    start = np.zeros(k * (d + 1))
    found = minimize(value_and_gradient, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    return found.x[: k * d].reshape(k, d)


# Given


@pytest.mark.parametrize("c", [0.1, 2.0])
@pytest.mark.parametrize(
    ("structure", "given", "weights"),
    [
        (PLANTS, 0.5, [0.5, 0.5]),
        (PLANTS, [0.7, 0.3], [0.7, 0.3]),
        (months(), 0.2, [0.8 / 3] * 3 + [0.2]),
        (ordinal(range(5)), 0.4, [0.15] * 4 + [0.4]),
    ],
    ids=["hierarchy", "an array", "circle", "order"],
)
def test_the_prior_alone_is_ridge_by_the_inverse_similarity(structure, given, weights, c):
    features, labels = rows_of(structure.classes, n=150)
    model = StructuredLogisticRegression(structure, weights=1, prior=given, C=c, **TIGHT)
    model.fit(features, labels)
    similarity = structure.reweight(weights).similarity()
    codes = structure.encode(labels)
    expected = solved_on_the_dense_table(similarity, codes, features, c)
    np.testing.assert_allclose(in_order(model, structure)[0], expected, atol=2e-5)
    np.testing.assert_allclose(model.prior_, weights)
    assert model.coef_.shape == (structure.n_classes, features.shape[1])
    assert c == model.C_


def test_the_prior_of_a_sampler_is_that_of_its_expected_similarity():
    features, labels = rows_of(GRID.classes, n=300)
    model = StructuredLogisticRegression(GRID, weights=1, prior=0.3, **TIGHT)
    model.fit(features, labels)
    similarity = GRID.with_singleton_weight(0.3).similarity()
    codes = np.array([GRID.classes.index(label) for label in labels.tolist()])
    expected = solved_on_the_dense_table(similarity, codes, features, 1.0)
    np.testing.assert_allclose(in_order(model, GRID)[0], expected, atol=2e-5)
    np.testing.assert_allclose(model.prior_, [0.7, 0.3])


def test_loss_and_prior_together_are_a_stationary_point_of_their_sum():
    features, labels = rows_of(PLANTS.classes, n=50)
    model = StructuredLogisticRegression(PLANTS, prior=0.3, C=0.7, **TIGHT).fit(features, labels)
    inverse = np.linalg.inv(PLANTS.with_singleton_weight(0.3).similarity())

    def objective(parameters):
        coef = parameters[:12].reshape(3, 4)
        loss = objective_by_definition(
            PLANTS, 0.7, features, labels.tolist(), np.ones(50), parameters
        )
        return loss - 0.5 * (coef**2).sum() + 0.5 * np.trace(coef.T @ inverse @ coef)

    fitted = np.concatenate([part.ravel() for part in in_order(model, PLANTS)])
    np.testing.assert_allclose(approx_fprime(fitted, objective, 1e-6), 0.0, atol=1e-3)
    assert model.weights_.tolist() == PLANTS.weights.tolist()


@pytest.mark.parametrize("given", [1, 1.0, np.float32(1.0), [0.0, 1.0]])
def test_with_all_weight_on_the_singletons_it_is_plain_ridge(given):
    features, labels = rows_of(PLANTS.classes)
    plain = StructuredLogisticRegression(PLANTS).fit(features, labels)
    model = StructuredLogisticRegression(PLANTS, prior=given).fit(features, labels)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.prior_.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("given", [1, [1.0], "auto"])
@pytest.mark.parametrize("structure", [None, trivial(range(5))])
def test_without_partitions_it_is_scikit_learns_logistic_regression(structure, given):
    if structure is None and isinstance(given, list):
        return
    features, labels = rows_of(range(5), n=200)
    model = StructuredLogisticRegression(structure, prior=given, random_state=0, **TIGHT)
    model.fit(features, labels)
    peer = LogisticRegression(C=model.C_, **TIGHT).fit(features, labels)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    assert model.prior_.tolist() == [1.0]


def test_of_two_classes_a_prior_is_a_smaller_c():
    # K = [[1, 1 - s], [1 - s, 1]], so that coefficients -a and a have tr(A' K^-1 A) = 2 a^2 / s.
    both = hierarchy({"yes": ("answer",), "no": ("answer",)})
    features, labels = rows_of(["yes", "no"], n=200)
    model = StructuredLogisticRegression(both, weights=1, prior=0.25, **TIGHT)
    peer = LogisticRegression(C=0.25, **TIGHT).fit(features, labels)
    model.fit(features, labels)
    np.testing.assert_allclose(
        model.predict_proba(features), peer.predict_proba(features), atol=1e-6
    )


@pytest.mark.parametrize("structure", [PLANTS, FixedStructure(PLANTS)])
def test_thousands_of_classes_are_fitted_by_blocks_to_the_same(structure, monkeypatch):
    features, labels = rows_of(PLANTS.classes, n=150)
    options = {"weights": 1, "prior": 0.4, "warm_start": True, **TIGHT}
    by_eigenvectors = StructuredLogisticRegression(structure, **options).fit(features, labels)
    monkeypatch.setattr(linear_objective, "_MOST_EIGENVECTORS", 1)
    by_blocks = StructuredLogisticRegression(structure, **options).fit(features, labels)
    np.testing.assert_allclose(by_blocks.coef_, by_eigenvectors.coef_, atol=1e-5)
    assert by_blocks.n_iter_ > 3
    assert by_blocks.fit(features, labels).n_iter_ <= 1


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    structure, features, labels = planted_problem(80)
    model = StructuredLogisticRegression(structure, prior=0.5, warm_start=True)
    model.fit(features, labels)
    coef = model.coef_
    assert model.n_iter_ > 3
    assert model.fit(features, labels).n_iter_ <= 1
    np.testing.assert_allclose(model.coef_, coef, atol=1e-3)


def test_a_prior_acts_on_classes_by_name_not_by_place():
    features, labels = rows_of(range(1, 13), n=200)
    order = [7, 1, 12, 3, 4, 10, 2, 9, 5, 6, 11, 8]
    first, second = (
        StructuredLogisticRegression(structure, prior=0.3, **TIGHT).fit(features, labels)
        for structure in (months(), months().restrict(order))
    )
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-6)


def test_a_row_of_weight_two_counts_as_two_rows():
    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(PLANTS, weights=1, prior=0.4, **TIGHT)
    weighted = model.fit(features, labels, np.where(np.arange(60) < 20, 2.0, 1.0)).coef_
    twice = np.concatenate([np.arange(60), np.arange(20)])
    np.testing.assert_allclose(weighted, model.fit(features[twice], labels[twice]).coef_, atol=1e-5)


def test_a_class_without_rows_borrows_the_coefficients_of_its_block():
    features, labels = rows_of(PLANTS.classes, n=300)
    seen = labels != "ash"
    model = StructuredLogisticRegression(PLANTS, weights=1, prior=0.1)
    coef = dict(zip(model.fit(features[seen], labels[seen]).classes_, model.coef_, strict=True))
    assert coef["ash"] @ coef["oak"] > 0.5 * np.linalg.norm(coef["ash"]) * np.linalg.norm(
        coef["oak"]
    )
    plain = StructuredLogisticRegression(PLANTS, weights=1).fit(features[seen], labels[seen])
    coef = dict(zip(plain.classes_, plain.coef_, strict=True))
    assert coef["ash"] @ coef["oak"] < 0.5 * np.linalg.norm(coef["ash"]) * np.linalg.norm(
        coef["oak"]
    )


# Refused


@pytest.mark.parametrize(
    ("structure", "given", "message"),
    [
        (PLANTS, None, r"the weight of the singletons \(1 for plain ridge\), .*, got None"),
        (PLANTS, "best", "one number per partition or 'auto', got 'best'"),
        (PLANTS, True, "prior must be the weight of the singletons"),
        (PLANTS, 1.5, "singleton_weight must be between 0 and 1, got 1.5"),
        (PLANTS, [0.5, 0.6], "weights must sum to 1"),
        (PLANTS, [1.0], "one number for each of the 2 partitions"),
        (None, 0.5, "the numbers of prior need a RandomPartition, got no structure"),
        (FixedStructure(PLANTS), [0.5, 0.5], "need a RandomPartition, got FixedStructure"),
    ],
)
def test_what_is_no_prior_is_refused(structure, given, message):
    features, labels = rows_of(PLANTS.classes)
    with pytest.raises(StructureError, match=message):
        StructuredLogisticRegression(structure, weights=None if structure is None else 1,
                                     prior=given).fit(features, labels)  # fmt: skip


def test_in_the_loss_a_sampler_is_still_refused_and_the_way_out_named():
    features, labels = rows_of(COUNTIES.classes)
    for weights in (None, 0.5, "auto"):
        model = StructuredLogisticRegression(COUNTIES, weights=weights, prior=0.5)
        with pytest.raises(StructureError, match="the structure only in the prior"):
            model.fit(features, labels)


def test_a_sampler_whose_singleton_weight_cannot_be_set_is_refused():
    class Drawn:
        classes = PLANTS.classes

        def sample(self, iteration):  # noqa: ARG002  always the same
            return trivial(PLANTS.classes)

    features, labels = rows_of(PLANTS.classes)
    model = StructuredLogisticRegression(Drawn(), prior=0.5)
    with pytest.raises(StructureError, match=r"prior needs .*, got Drawn; leave prior at 1 for no"):
        model.fit(features, labels)


# Chosen


def test_a_planted_structure_is_chosen_and_helps():
    structure, features, labels = planted_problem(1300)
    train, test = slice(150), slice(150, None)
    auto, ridge = (
        StructuredLogisticRegression(
            each, weights=None if each is None else 1, prior="auto", random_state=0
        ).fit(features[train], labels[train])
        for each in (structure, None)
    )
    assert auto.prior_[-1] < 1.0
    gain = log_loss(ridge, features[test], labels[test]) - log_loss(
        auto, features[test], labels[test]
    )
    assert gain > 0.03


def test_a_wrong_structure_costs_next_to_nothing():
    structure, features, labels = planted_problem(3000)
    train, test = slice(600), slice(600, None)
    wrong = structure.scramble(np.random.default_rng(1))
    auto, ridge = (
        StructuredLogisticRegression(
            each, weights=None if each is None else 1, prior="auto", random_state=0
        ).fit(features[train], labels[train])
        for each in (wrong, None)
    )
    cost = log_loss(auto, features[test], labels[test]) / log_loss(
        ridge, features[test], labels[test]
    )
    assert cost < 1.002


def test_the_losses_of_the_search_are_those_of_scikit_learn_on_the_same_folds(monkeypatch):
    features, labels = rows_of(range(4), n=120)
    seen = []
    own = prior.SearchOfC._try

    def remembered(search, step):
        own(search, step)
        seen.append((search.c(step), search.losses[step], search._folds))

    monkeypatch.setattr(prior.SearchOfC, "_try", remembered)
    model = StructuredLogisticRegression(prior="auto", random_state=0, C=2.0, **TIGHT)
    model.fit(features, labels)
    for c, loss, folds in seen:
        expected = 0.0
        for train, held_out in folds:
            peer = LogisticRegression(C=c, **TIGHT).fit(train.features, train.codes)
            logs = peer.predict_log_proba(held_out.features)
            expected -= logs[np.arange(len(logs)), held_out.codes].sum()
        assert loss == pytest.approx(expected, rel=1e-4)
    tried = [c for c, _, _ in seen]
    np.testing.assert_allclose(tried, 2.0 * 10.0 ** (np.arange(len(tried)) / 2 - 4))
    losses = [loss for _, loss, _ in seen]
    assert tried[int(np.argmin(losses))] == model.C_
    assert min(losses) < losses[-1]
    assert min(losses) < losses[-2]


@pytest.mark.parametrize("n", [60, 240])
def test_the_search_finds_the_best_pair_of_all(monkeypatch, n):
    structure, features, labels = planted_problem(n)
    model = StructuredLogisticRegression(structure, weights=1, prior="auto", random_state=0)
    model.fit(features, labels)
    found = model.prior_[-1], model.C_

    def all_of_them(search, *_):
        for step in prior.STEPS_OF_C:
            search._try(step)

    monkeypatch.setattr(prior.SearchOfC, "from_the_smallest", all_of_them)
    monkeypatch.setattr(prior.SearchOfC, "around", all_of_them)
    model.fit(features, labels)
    assert found == (model.prior_[-1], model.C_)


@pytest.mark.parametrize("weights", [1, None, "auto"])
def test_the_model_is_that_of_the_prior_and_c_it_reports(weights):
    structure, features, labels = planted_problem(120)
    auto = StructuredLogisticRegression(
        structure, weights=weights, prior="auto", random_state=0, **TIGHT
    ).fit(features, labels)
    again = StructuredLogisticRegression(
        structure, weights=auto.weights_, prior=auto.prior_, C=auto.C_, **TIGHT
    ).fit(features, labels)
    np.testing.assert_allclose(auto.coef_, again.coef_, rtol=1e-4, atol=1e-6)
    first = auto.coef_.copy()
    np.testing.assert_array_equal(auto.fit(features, labels).coef_, first)


def test_few_rows_of_many_classes_are_fitted_to_the_end():
    structure, features, labels = planted_problem(2000, n_classes=60, own=1.0)
    order = np.argsort(labels, kind="stable")
    train = order[np.unique(labels[order], return_index=True)[1][:, None] + [0, 1]].ravel()
    test = np.setdiff1d(order, train)
    auto = StructuredLogisticRegression(
        structure, weights=1, prior="auto", random_state=0, max_iter=1000
    ).fit(features[train], labels[train])
    losses = []
    for tol in (1e-8, 1e-4):
        given = StructuredLogisticRegression(
            structure, weights=1, prior=auto.prior_, C=auto.C_, tol=tol, max_iter=5000
        ).fit(features[train], labels[train])
        losses.append(log_loss(given, features[test], labels[test]))
    exact, loose = losses
    off = abs(log_loss(auto, features[test], labels[test]) - exact)
    assert off < 0.01 * exact
    assert abs(loose - exact) > 10 * off  # what the same tolerance means elsewhere


def test_a_prior_can_be_chosen_for_a_sampler_and_for_labels_that_are_blocks():
    features, labels = rows_of(GRID.classes, n=200)
    model = StructuredLogisticRegression(GRID, weights=1, prior="auto", random_state=0)
    model.fit(features, labels)
    assert model.prior_[-1] in prior.PRIORS
    features, labels = rows_of(PLANTS.classes, n=120)
    kinds = PLANTS.levels["kind"][0].coarsen(labels)
    mixed = np.where(np.arange(120) % 3, labels, kinds)
    model = StructuredLogisticRegression(PLANTS, prior="auto", allow_blocks=True, random_state=0)
    assert model.fit(features, mixed).score(features, labels) > 0.5


def test_rows_without_weight_have_no_part_in_the_choice():
    structure, features, labels = planted_problem(240)
    weights = np.repeat([1.0, 0.0], 120)
    model = StructuredLogisticRegression(structure, prior="auto", random_state=0)
    some = model.fit(features[:120], labels[:120]).C_, model.prior_.tolist()
    labels[120:] = np.random.default_rng(0).permutation(labels[120:])
    assert (model.fit(features, labels, weights).C_, model.prior_.tolist()) == some


def test_where_no_fold_can_be_trained_it_is_plain_ridge():
    model = StructuredLogisticRegression(PLANTS, prior="auto", C=0.5, random_state=0)
    model.fit([[0.0], [1.0]], ["oak", "rose"])
    assert (model.prior_.tolist(), model.C_) == ([0.0, 1.0], 0.5)


# With the rest


def test_a_prior_can_be_searched_and_tested():
    structure, features, labels = planted_problem(120, n_classes=6)
    search = GridSearchCV(
        StructuredLogisticRegression(structure, weights=1),
        {"prior": [1.0, 0.5, "auto"], "C": [0.1, 1.0]}, cv=2, scoring="neg_log_loss",
    )  # fmt: skip
    assert np.isfinite(search.fit(features, labels).cv_results_["mean_test_score"]).all()
    for given in (0.5, "auto"):
        model = StructuredLogisticRegression(weights=1, prior=given, max_iter=1000)
        found = structure_test(
            features, labels, structure,
            estimator=model, n_permutations=3, n_folds=2, random_state=0,
        )  # fmt: skip
        assert 0 < found.p_value <= 1
    with pytest.raises(StructentError, match="prior of the estimator must be 'auto' or one number"):
        structure_test(features, labels, structure, estimator=model.set_params(prior=[0.5, 0.5]))


@pytest.mark.parametrize(
    ("structure", "given"),
    [(PLANTS, 0.3), (PLANTS, [0.8, 0.2]), (PLANTS, "auto"), (PLANTS, 1), (None, "auto"),
     (FixedStructure(PLANTS), 0.3)],
)  # fmt: skip
def test_a_saved_model_keeps_the_prior_and_fits_again_to_the_same(tmp_path, structure, given):
    features, labels = rows_of(PLANTS.classes, n=120)
    model = StructuredLogisticRegression(
        structure, weights=None if structure is None else 1, prior=given, random_state=0, **TIGHT
    ).fit(features, labels)
    model.save(tmp_path / "model")
    loaded = StructuredLogisticRegression.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.prior_, model.prior_)
    assert loaded.C_ == loaded.C == model.C_
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    # A prior that was chosen was fitted more closely than one that is given.
    rtol = 1e-4 if given == "auto" else 0.0
    np.testing.assert_allclose(loaded.fit(features, labels).coef_, model.coef_, rtol=rtol)


def test_an_own_prior_survives_another_weight_of_the_loss(tmp_path):
    uneven = months().reweight([0.4, 0.1, 0.1, 0.4])
    features, labels = rows_of(range(1, 13), n=150)
    model = StructuredLogisticRegression(uneven, weights=1, prior=0.5).fit(features, labels)
    np.testing.assert_allclose(model.prior_, [2 / 6, 0.5 / 6, 0.5 / 6, 0.5])
    model.save(tmp_path / "model")
    loaded = StructuredLogisticRegression.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.fit(features, labels).prior_, model.prior_)


def test_a_file_without_a_valid_prior_is_refused(tmp_path):
    features, labels = rows_of(PLANTS.classes)
    path = tmp_path / "model"
    StructuredLogisticRegression(PLANTS, prior=0.5).fit(features, labels).save(path)
    rewritten(
        path, "metadata.json", lambda text: text.replace(b'"prior": [0.5, 0.5]', b'"prior": "x"')
    )
    with pytest.raises(StructentError, match="prior must be the weight of the singletons"):
        StructuredLogisticRegression.load(path)
