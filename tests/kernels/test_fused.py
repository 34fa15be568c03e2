"""The fused CPU kernel, against the readable formulas."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from structent import (
    LabelError,
    Partition,
    RandomPartition,
    SpanningTreePartitions,
    circular,
    hierarchy,
    trivial,
)
from structent.kernels import bits, cpu, fused, reference
from structent.kernels.layout import Layout
from structent.structure import catalog
from tests.kernels.problems import EXTREME_LOGITS, problems

TOLERANCE = {np.float32: {"rtol": 2e-6, "atol": 2e-6}, np.float64: {"rtol": 1e-12, "atol": 1e-12}}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def wide_tree(n_classes, group_counts, seed=0):
    """A hierarchy of many classes in no order."""
    rng = np.random.default_rng(seed)
    paths = {}
    for label in rng.permutation(n_classes).tolist():
        paths[label] = tuple(f"{d}:{label * n // n_classes}" for d, n in enumerate(group_counts))
    return hierarchy(paths, classes=range(n_classes))


STRUCTURES = {
    "cifar100": catalog.cifar100(),
    "months": catalog.months(),
    "trivial": trivial(range(7)),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5).sample(0),
    "one class": trivial(["a"]),
    "one block only": circular(range(4), width=4, singleton_weight=0.0),
    "tree of 700": wide_tree(700, [3, 9, 50, 200]),
    "tree in order": wide_tree(700, [3, 9, 50, 200]).restrict(range(700)),
    "no singletons": catalog.months(singleton_weight=0.0),
}


def run(structure, logits, labels, dtype, **options):
    logits = np.ascontiguousarray(logits, dtype=dtype)
    gradient = np.empty_like(logits)
    losses = fused.loss_and_gradient(
        logits, labels.reshape(-1), Layout.of(structure), gradient=gradient, **options
    )
    np.testing.assert_allclose(losses.total, losses.rows.sum(dtype=np.float64), rtol=1e-5)
    return losses.rows, gradient


def expected(structure, logits, labels):
    arguments = (logits.astype(np.float64), labels, structure.block_of, structure.weights)
    return (
        reference.structured_cross_entropy_from_logits(*arguments, xp=np),
        reference.gradient_from_logits(*arguments, xp=np),
    )


@given(problems(), st.sampled_from([np.float32, np.float64]))
def test_loss_and_gradient_are_those_of_the_reference(problem, dtype):
    structure, logits, labels = problem
    logits = logits.astype(dtype)
    for found, wanted in zip(
        run(structure, logits, labels, dtype), expected(structure, logits, labels), strict=True
    ):
        np.testing.assert_allclose(found, wanted, **TOLERANCE[dtype])


@DTYPES
@given(
    rng=st.integers(0, 2**32 - 1).map(np.random.default_rng),
    shape=st.tuples(st.integers(0, 400), st.sampled_from([1, 2, 12, 100, 513, 5000])),
    scale=st.sampled_from([0.0, 1.0, 50.0, 1e4]),
)
def test_probabilities_are_the_softmax_of_each_row(dtype, rng, shape, scale):
    logits = (scale * rng.normal(size=shape)).astype(dtype)
    found = fused.probabilities(logits)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, softmax(logits.astype(float), axis=1), **TOLERANCE[dtype])


def test_probabilities_do_not_depend_on_the_order_in_memory():
    logits = np.random.default_rng(0).normal(size=(30, 7))
    found = fused.probabilities(np.asfortranarray(logits))
    np.testing.assert_array_equal(found, fused.probabilities(logits))
    np.testing.assert_array_equal(fused.probabilities(logits[::3]), found[::3])


@DTYPES
def test_probabilities_of_a_row_with_nan_are_nan_and_others_are_not(dtype):
    logits = np.zeros((3, 4), dtype)
    logits[1, 2] = np.nan
    found = fused.probabilities(logits)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], 0.25)


@DTYPES
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_loss_and_gradient_of_known_structures_are_those_of_the_reference(structure, dtype):
    rng = np.random.default_rng(0)
    k = structure.n_classes
    logits = rng.normal(scale=4, size=(23, k)).astype(dtype)
    labels = rng.integers(k, size=23)
    for found, wanted in zip(
        run(structure, logits, labels, dtype), expected(structure, logits, labels), strict=True
    ):
        np.testing.assert_allclose(found, wanted, **TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
@pytest.mark.parametrize("case", EXTREME_LOGITS.values(), ids=EXTREME_LOGITS.keys())
def test_extreme_logits_give_the_exact_loss_and_a_finite_gradient(structure, dtype, case):
    logits, labels = case(structure.n_classes)
    logits = logits.astype(dtype)
    losses, gradient = run(structure, logits, labels, dtype)
    wanted_losses, wanted_gradient = expected(structure, logits, labels)
    np.testing.assert_allclose(losses, wanted_losses, **TOLERANCE[dtype])
    np.testing.assert_allclose(gradient, wanted_gradient, **TOLERANCE[dtype])
    assert np.isfinite(gradient).all()


@DTYPES
def test_pixels_are_rows(dtype):
    structure = catalog.cifar100()
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 100, 5, 17)).astype(dtype)
    labels = rng.integers(100, size=(3, 5, 17))
    losses, gradient = run(structure, logits, labels, dtype)
    as_rows = np.moveaxis(logits, 1, -1).reshape(-1, 100)
    wanted_losses, wanted_gradient = run(structure, as_rows, labels.reshape(-1), dtype)
    np.testing.assert_array_equal(losses, wanted_losses)
    np.testing.assert_array_equal(np.moveaxis(gradient, 1, -1).reshape(-1, 100), wanted_gradient)


@pytest.mark.parametrize("shape", [(2000, 100), (8, 100, 20, 20)])
def test_threads_change_nothing(shape):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=shape).astype(np.float32)
    labels = rng.integers(100, size=shape[:1] + shape[2:])
    alone = run(catalog.cifar100(), logits, labels, np.float32, n_threads=1)
    together = run(catalog.cifar100(), logits, labels, np.float32, n_threads=3)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_gradient_the_losses_are_the_same():
    rng = np.random.default_rng(0)
    layout = Layout.of(catalog.cifar100())
    for shape in [(50, 100), (2, 100, 7)]:
        logits = rng.normal(size=shape).astype(np.float32)
        labels = rng.integers(100, size=shape[:1] + shape[2:])
        losses = fused.loss_and_gradient(logits, labels.reshape(-1), layout, gradient=None)
        expected_losses, _ = run(catalog.cifar100(), logits, labels, np.float32)
        np.testing.assert_array_equal(losses.rows, expected_losses)


def test_class_weights_multiply_and_the_mean_divides_by_their_sum():
    rng = np.random.default_rng(0)
    logits, labels, class_weights = (
        rng.normal(size=(9, 12)),
        rng.integers(12, size=9),
        rng.random(12),
    )
    gradient = np.empty((9, 12))
    losses = fused.loss_and_gradient(
        logits, labels, Layout.of(catalog.months()),
        gradient=gradient, class_weights=class_weights, of_mean=True,
    )  # fmt: skip
    plain_losses, plain_gradient = expected(catalog.months(), logits, labels)
    rows = class_weights[labels]
    np.testing.assert_allclose(losses.rows, rows * plain_losses)
    np.testing.assert_allclose(losses.total_weight, rows.sum())
    np.testing.assert_allclose(gradient, rows[:, None] / rows.sum() * plain_gradient)


def test_nan_stays_in_its_row():
    logits = np.zeros((3, 12))
    logits[1, 5] = np.nan
    for shape in [(3, 12), (1, 12, 3)]:
        given_logits = logits if len(shape) == 2 else logits.T[None].copy()
        losses, gradient = run(catalog.months(), given_logits, np.array([0, 1, 2]), np.float64)
        rows = gradient if len(shape) == 2 else gradient[0].T
        assert np.isnan(losses).tolist() == [False, True, False]
        assert np.isnan(rows).all(axis=1).tolist() == [False, True, False]


def test_ignored_rows_have_no_loss_and_no_gradient_even_where_they_are_nan():
    logits = np.full((2, 12), np.nan)
    logits[0] = 0.0
    gradient = np.empty((2, 12))
    losses = fused.loss_and_gradient(
        logits, np.array([3, -7]), Layout.of(catalog.months()), gradient=gradient, ignored=-7
    )
    assert losses.total_weight == 1.0
    assert losses.rows[1] == 0.0
    assert (gradient[1] == 0.0).all()


@pytest.mark.parametrize("wrong", [12, -1, 10**12])
def test_a_label_that_is_no_class_is_named(wrong):
    with pytest.raises(LabelError, match=f"between 0 and 11, got {wrong} in row 1"):
        fused.loss_and_gradient(
            np.zeros((2, 12)), np.array([0, wrong]), Layout.of(catalog.months()),
            gradient=None, ignored=-100,
        )  # fmt: skip


@DTYPES
@pytest.mark.parametrize("curvature", ["bound", "gradient", "fisher"])
@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_gradient_and_curvature_are_those_of_the_reference(structure, curvature, dtype):
    rng = np.random.default_rng(0)
    k = min(structure.n_classes, 100)
    structure = structure.restrict(structure.classes[:k])
    logits = rng.normal(scale=3, size=(9, k)).astype(dtype)
    labels, rows = rng.integers(k, size=9), rng.random(9).astype(dtype)
    gradient, hessian = np.empty_like(logits), np.empty_like(logits)
    fused.gradient_and_curvature(
        logits, labels, rows, Layout.of(structure),
        curvature=curvature, gradient=gradient, hessian=hessian, losses=np.empty_like(rows),
    )  # fmt: skip
    z, weights = logits.astype(np.float64), rows[:, None].astype(np.float64)
    arguments = (z, labels, structure.block_of, structure.weights)
    # The partition into one block has no loss, and no curvature either.
    kept = structure.weights * (structure.block_of.max(axis=1) > 0)
    wanted = {
        "bound": lambda: reference.bound_curvature(z, kept, xp=np),
        "gradient": lambda: reference.gradient_magnitude(*arguments, xp=np),
        "fisher": lambda: reference.fisher_curvature(z, *arguments[2:], xp=np),
    }[curvature]()
    wanted_gradient = reference.gradient_from_logits(*arguments, xp=np)
    np.testing.assert_allclose(gradient, weights * wanted_gradient, **TOLERANCE[dtype])
    np.testing.assert_allclose(hessian, np.maximum(weights * wanted, 1e-16), **TOLERANCE[dtype])
    assert (hessian >= np.asarray(1e-16, dtype)).all()


@DTYPES
def test_the_fisher_curvature_is_positive_where_a_block_is_all_but_certain(dtype):
    # q / Q(B) - q is rounding then; the class that is left has no singletons to add to it.
    structure = RandomPartition([Partition.from_blocks([range(20), [20]])])
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=5, size=(500, 21)).astype(dtype)
    gradient, hessian = np.empty_like(logits), np.empty_like(logits)
    fused.gradient_and_curvature(
        logits, rng.integers(21, size=500), np.ones(500, dtype), Layout.of(structure),
        curvature="fisher", gradient=gradient, hessian=hessian, losses=np.empty(500, dtype),
    )  # fmt: skip
    assert (hessian >= np.asarray(1e-16, dtype)).all()


@given(st.floats(-104, 0), st.floats(-760, 0))
def test_the_exponential_is_that_of_the_mathematics_library(x32, x64):
    single, double = np.array([np.float32(x32)]), np.array([x64])
    cpu._exponentiate(single, np.uint64(1))
    cpu._exponentiate(double, np.uint64(1))
    wanted = np.exp(np.float64(np.float32(x32)))
    np.testing.assert_allclose(single[0], wanted, rtol=2.5e-7, atol=1.2e-38)
    np.testing.assert_allclose(double[0], np.exp(x64), rtol=4e-16, atol=1e-307)


def test_the_digest_that_renews_the_cache_is_that_of_the_file():
    digest = hashlib.sha256(Path(bits.__file__).read_bytes()).hexdigest()[:16]
    assert digest == cpu.DIGEST_OF_BITS
