"""Rows that are known to be in a set of classes: the definition, the formulas and the kernel."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from structent import LabelError, circular, hierarchy, trivial
from structent.kernels import fused, reference
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, coarse_problems, members_of, problems, some_sets

TOLERANCE = {np.float32: {"rtol": 4e-6, "atol": 4e-6}, np.float64: {"rtol": 1e-11, "atol": 1e-12}}
STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "no singletons": catalog.months(singleton_weight=0.0),
    "trivial": trivial(range(7)),
    "two classes": trivial(["a", "b"]),
    "one block only": circular(range(4), width=4, singleton_weight=0.0),
}
ALL_STRUCTURES = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())


def slow_loss(row, classes, structure):
    """The definition, partition by partition; ``classes`` are indices."""
    q = [exp(z - max(row)) for z in row]
    q = [value / sum(q) for value in q]
    total = 0.0
    for ids, weight in zip(structure.block_of.tolist(), structure.weights, strict=True):
        blocks = [{c for c, b in enumerate(ids) if b == number} for number in set(ids)]
        holding = [block for block in blocks if set(classes) <= block]
        total -= weight * log(sum(q[c] for c in (holding[0] if holding else classes)))
    return total


def own_blocks(structure, classes):
    """The blocks of the structure under which a set is as good as any of its classes."""
    in_set = np.isin(np.arange(structure.n_classes), classes).astype(int)
    rows = [ids if np.ptp(ids[list(classes)]) == 0 else in_set for ids in structure.block_of]
    return np.array(rows)


def by_reference(name, structure, logits, codes, sets):
    function = getattr(reference, name)
    return function(
        logits.astype(np.float64), codes, structure.block_of, structure.weights,
        xp=np, members=members_of(sets, structure.n_classes),
    )  # fmt: skip


@given(coarse_problems())
def test_the_loss_of_a_set_is_the_definition(problem):
    structure, logits, codes, sets = problem
    table = [(c,) for c in range(structure.n_classes)] + sets
    found = by_reference("structured_cross_entropy_from_logits", *problem)
    wanted = [slow_loss(row, table[c], structure) for row, c in zip(logits, codes, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@given(problems())
def test_a_set_of_one_class_is_the_class(problem):
    structure, logits, labels = problem
    sets = [(c,) for c in range(structure.n_classes)]
    for name in ("structured_cross_entropy_from_logits", "gradient_from_logits", "exact_curvature"):
        found = by_reference(name, structure, logits, labels + structure.n_classes, sets)
        arguments = (logits, labels, structure.block_of, structure.weights)
        np.testing.assert_array_equal(found, getattr(reference, name)(*arguments, xp=np))


@given(coarse_problems())
def test_gradient_and_exact_curvature_are_those_of_finite_differences(problem):
    structure, logits, codes, sets = problem
    step = 1e-5
    gradient = by_reference("gradient_from_logits", *problem)
    curvature = by_reference("exact_curvature", *problem)
    for j in range(structure.n_classes):
        up, down = (logits + sign * step * np.eye(structure.n_classes)[j] for sign in (1, -1))
        for name, of in (
            ("structured_cross_entropy_from_logits", gradient),
            ("gradient_from_logits", curvature),
        ):
            above, below = (by_reference(name, structure, z, codes, sets) for z in (up, down))
            change = (above - below) / (2 * step)
            wanted = change if change.ndim == 1 else change[:, j]
            np.testing.assert_allclose(of[:, j], wanted, atol=1e-7)


@given(coarse_problems())
def test_fisher_is_that_of_the_structure_of_the_sets_own(problem):
    structure, logits, codes, sets = problem
    found = by_reference("fisher_curvature_of_codes", *problem)
    table = [(c,) for c in range(structure.n_classes)] + sets
    for i, code in enumerate(codes):
        blocks = own_blocks(structure, table[code])
        wanted = reference.fisher_curvature(logits[i : i + 1], blocks, structure.weights, xp=np)
        np.testing.assert_allclose(found[i : i + 1], wanted, atol=1e-12)
    assert (found >= -1e-12).all()


def run_fused(structure, logits, codes, sets, **options):
    layout = Layout.of(structure)
    gradient = np.empty_like(logits)
    losses = fused.loss_and_gradient(
        logits, codes.reshape(-1), layout,
        gradient=gradient, coarse=CoarseLayouts.of(layout, sets), **options,
    )  # fmt: skip
    np.testing.assert_allclose(losses.total, losses.rows.sum(dtype=np.float64), rtol=1e-5)
    return losses, gradient


def assert_fused_conforms(structure, logits, codes, sets):
    losses, gradient = run_fused(structure, logits, codes, sets)
    problem = (structure, logits, codes, sets)
    wanted = by_reference("structured_cross_entropy_from_logits", *problem)
    wanted_gradient = by_reference("gradient_from_logits", *problem)
    np.testing.assert_allclose(losses.rows, wanted, **TOLERANCE[logits.dtype.type])
    np.testing.assert_allclose(gradient, wanted_gradient, **TOLERANCE[logits.dtype.type])


@given(coarse_problems(), st.sampled_from([np.float32, np.float64]))
def test_the_kernel_gives_what_the_reference_gives(problem, dtype):
    structure, logits, codes, sets = problem
    assert_fused_conforms(structure, logits.astype(dtype), codes, sets)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@ALL_STRUCTURES
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(structure, case, dtype):
    logits, labels = case(structure.n_classes)
    sets, codes = some_sets(structure.n_classes, labels)
    assert_fused_conforms(structure, logits.astype(dtype), codes, sets)


@pytest.mark.parametrize("curvature", ["bound", "gradient", "fisher"])
@ALL_STRUCTURES
def test_gradient_and_curvature_for_boosters_are_those_of_the_reference(structure, curvature):
    rng = np.random.default_rng(0)
    k, layout = structure.n_classes, Layout.of(structure)
    logits = rng.normal(scale=3, size=(9, k))
    sets, codes = some_sets(k, rng.integers(k, size=9))
    rows, losses = rng.random(9), np.empty(9)
    gradient, hessian = np.empty_like(logits), np.empty_like(logits)
    fused.gradient_and_curvature(
        logits, codes, rows, layout, curvature=curvature, gradient=gradient, hessian=hessian,
        losses=losses, coarse=CoarseLayouts.of(layout, sets),
    )  # fmt: skip
    problem = (structure, logits, codes, sets)
    wanted_gradient = by_reference("gradient_from_logits", *problem)
    wanted_losses = by_reference("structured_cross_entropy_from_logits", *problem)
    if curvature == "bound":
        kept = structure.weights * (structure.block_of.max(axis=1) > 0)
        wanted = reference.bound_curvature(logits, kept, xp=np)
        # A row that may be anything has no loss, and no curvature either.
        wanted[members_of(sets, k)[codes].all(axis=1)] = 0.0
    else:
        name = {"gradient": "gradient_magnitude", "fisher": "fisher_curvature_of_codes"}[curvature]
        wanted = by_reference(name, *problem)
    np.testing.assert_allclose(losses, rows * wanted_losses, atol=1e-12)
    np.testing.assert_allclose(gradient, rows[:, None] * wanted_gradient, atol=1e-12)
    np.testing.assert_allclose(hessian, np.maximum(rows[:, None] * wanted, 1e-16), atol=1e-12)


def test_pixels_are_rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 12, 5, 2))
    sets, codes = some_sets(12, rng.integers(12, size=30))
    losses, gradient = run_fused(catalog.months(), logits, codes.reshape(3, 5, 2), sets)
    as_rows = np.ascontiguousarray(np.moveaxis(logits, 1, -1).reshape(-1, 12))
    wanted, wanted_gradient = run_fused(catalog.months(), as_rows, codes, sets)
    np.testing.assert_allclose(losses.rows, wanted.rows)
    np.testing.assert_allclose(np.moveaxis(gradient, 1, -1).reshape(-1, 12), wanted_gradient)


def test_a_row_of_a_set_weighs_what_its_classes_do_on_average():
    rng = np.random.default_rng(0)
    logits, class_weights = rng.normal(size=(3, 12)), rng.random(12)
    codes, sets = np.array([3, 12, 13]), [(0, 1, 2), (5, 9)]
    plain, plain_gradient = run_fused(catalog.months(), logits, codes, sets)
    losses, gradient = run_fused(
        catalog.months(), logits, codes, sets, class_weights=class_weights, of_mean=True
    )
    rows = np.array(
        [class_weights[3], class_weights[:3].mean(), (class_weights[5] + class_weights[9]) / 2]
    )
    np.testing.assert_allclose(losses.rows, rows * plain.rows)
    np.testing.assert_allclose(losses.total_weight, rows.sum())
    np.testing.assert_allclose(gradient, rows[:, None] / rows.sum() * plain_gradient)


def test_ignored_rows_count_nothing_beside_rows_of_sets():
    logits = np.array([[0.0] * 12, [np.nan] * 12])
    losses, gradient = run_fused(catalog.months(), logits, np.array([12, -7]), [(0, 1)], ignored=-7)
    assert losses.total_weight == 1.0
    assert losses.rows[1] == 0.0
    assert (gradient[1] == 0.0).all()


def test_an_impossible_class_of_a_possible_set_does_no_harm():
    logits = np.zeros((1, 12))
    logits[0, 0] = -np.inf
    assert_fused_conforms(catalog.months(), logits, np.array([12]), [(0, 1)])


def test_layouts_that_do_not_fit_in_memory_are_made_anew(monkeypatch):
    monkeypatch.setattr("structent.kernels.coarse._KEPT", 0)
    rng = np.random.default_rng(0)
    sets, codes = some_sets(12, rng.integers(12, size=9))
    assert_fused_conforms(catalog.months(), rng.normal(size=(9, 12)), codes, sets)


@pytest.mark.parametrize("wrong", [14, -1])
def test_a_code_beyond_the_table_is_named(wrong):
    with pytest.raises(LabelError, match=f"between 0 and 13, got {wrong} in row 1"):
        run_fused(
            catalog.months(), np.zeros((2, 12)), np.array([13, wrong]), [(0, 1), (1, 2)],
            ignored=-100,
        )  # fmt: skip


# Properness: the classes are drawn from p; a share of the rows is told a block of the class only,
# that of one partition of the structure, drawn by chance.

PROPER = {
    "circular": circular(range(6), width=3, singleton_weight=0.3),
    "hierarchy": hierarchy({i: ("ab"[i // 3], "uvwxyz"[i // 2]) for i in range(6)}),
    "hierarchy in part": hierarchy({0: ("a",), 1: ("a",), 2: ("b", "c"), 3: ("b", "c"), 4: ("b",)}),
}


def expected_loss_and_gradient(structure, p, logits, share):
    """Of rows whose class is drawn from p, and coarsened by a partition drawn uniformly."""
    blocks = structure.block_of
    value, gradient = 0.0, np.zeros_like(logits)
    for y, chance in enumerate(p):
        told = [((y,), 1 - share)]
        told += [
            (tuple(np.flatnonzero(ids == ids[y]).tolist()), share / len(blocks)) for ids in blocks
        ]
        for members, probability in told:
            problem = (structure, logits[None], np.array([structure.n_classes]), [members])
            loss = by_reference("structured_cross_entropy_from_logits", *problem)[0]
            value += chance * probability * loss
            slope = by_reference("gradient_from_logits", *problem)[0]
            gradient = gradient + chance * probability * slope
    return value, gradient


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("structure", PROPER.values(), ids=PROPER.keys())
def test_the_expected_loss_is_least_at_the_truth_at_every_share_of_coarse_rows(structure, share):
    p = np.random.default_rng(1).dirichlet(np.full(structure.n_classes, 2.0))
    _, gradient = expected_loss_and_gradient(structure, p, np.log(p), share)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-14)
    found = minimize(
        lambda z: expected_loss_and_gradient(structure, p, z, share),
        np.zeros(len(p)), jac=True, method="BFGS", options={"gtol": 1e-9},
    )  # fmt: skip
    q = np.exp(found.x - found.x.max())
    np.testing.assert_allclose(q / q.sum(), p, atol=1e-6)


def test_the_union_of_the_blocks_that_meet_a_set_would_not_do():
    """Rows are told which of {1, 2}, {3, 4}, {5, 0} they are in; blocks are {0, 1}, {2, 3}, ..."""
    p = np.random.default_rng(1).dirichlet(np.full(6, 2.0))
    told = [{1, 2}, {3, 4}, {5, 0}]
    unions = [{0, 1, 2, 3}, {2, 3, 4, 5}, {4, 5, 0, 1}]

    def expected_gradient_at_the_truth(looked_at):
        total = np.zeros(6)
        for members, block in zip(told, looked_at, strict=True):
            is_inside = np.isin(np.arange(6), list(block))
            total += p[list(members)].sum() * (p - is_inside * p / p[is_inside].sum())
        return total

    np.testing.assert_allclose(expected_gradient_at_the_truth(told), 0.0, atol=1e-15)
    assert abs(expected_gradient_at_the_truth(unions)).max() > 0.01
