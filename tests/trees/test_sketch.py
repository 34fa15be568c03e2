"""What splits are searched on, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent.trees import sketch
from structent.trees.vectors import LANES

few = settings(max_examples=40)
seeds = st.integers(0, 2**32)
NO_HESSIAN = np.empty((0, 0), np.float32)


def rows(seed, n, n_classes):
    """Gradients that sum to 0 over the classes, and curvatures."""
    rng = np.random.default_rng(seed)
    gradient = rng.normal(size=(n, n_classes))
    gradient -= gradient.mean(axis=1, keepdims=True)
    return gradient.astype(np.float32), rng.random((n, n_classes)).astype(np.float32)


def side_by_side(statistics, n):
    """Gradient and curvature of wide statistics, (n, gradients) each, without the empty lanes."""
    gradient = np.concatenate(list(statistics[:, :, :LANES]), axis=1)
    curvature = np.concatenate(list(statistics[:, :, LANES:]), axis=1)
    assert (gradient[:, n:] == 0).all()
    return gradient[:, :n], curvature[:, :n]


@few
@given(seeds, st.integers(1, 20), st.integers(1, 40))
def test_the_full_search_sees_gradient_and_curvature_of_each_class(seed, n, n_classes):
    gradient, hessian = rows(seed, n, n_classes)
    statistics = np.full(sketch.wide_shape(n, n_classes), np.float32(-7))
    sketch.write_full(gradient, hessian, statistics, 1)
    found = side_by_side(statistics, n_classes)
    np.testing.assert_array_equal(found[0], gradient)
    np.testing.assert_array_equal(found[1], hessian)
    signed = np.full(sketch.signed_shape(n, n_classes), np.float32(-7))
    sketch.write_full(gradient, NO_HESSIAN, signed, 1)
    np.testing.assert_array_equal(signed, statistics[:, :, :LANES])


@few
@given(seeds, st.integers(1, 20), st.integers(1, 60), st.integers(1, 40))
def test_the_structured_search_sees_the_sums_over_blocks(seed, n, n_classes, n_blocks):
    n_blocks = min(n_blocks, n_classes)
    gradient, hessian = rows(seed, n, n_classes)
    rng = np.random.default_rng(seed)
    block_of = rng.permutation(np.arange(n_classes) % n_blocks).astype(np.int32)
    is_in_block = block_of[:, None] == np.arange(n_blocks)
    for curvature in (hessian, NO_HESSIAN):
        statistics = np.full(sketch.wide_shape(n, n_blocks), np.float32(-7))
        sketch.write_blocks(gradient, curvature, block_of, statistics, 1)
        found = side_by_side(statistics, n_blocks)
        own = hessian if curvature.size else abs(gradient)
        # At most 60 numbers of a size below 5 are added: 60 roundings of up to 2**-24 * 60 * 5.
        for have, wanted in zip(found, (gradient, own), strict=True):
            np.testing.assert_allclose(have, wanted.astype(float) @ is_in_block, atol=1e-4)


@few
@given(seeds, st.integers(1, 20), st.integers(2, 60))
def test_the_sketch_sees_gradient_and_curvature_along_a_direction(seed, n, n_classes):
    gradient, hessian = rows(seed, n, n_classes)
    direction = sketch.random_direction(n_classes, np.random.default_rng(seed))
    for curvature in (hessian, NO_HESSIAN):
        statistics = np.full(sketch.pair_shape(n), np.float32(-7))
        sketch.write_direction(gradient, curvature, direction, statistics, 1)
        own = hessian if curvature.size else abs(gradient)
        wanted = gradient.astype(float) @ direction, own.astype(float) @ direction**2
        np.testing.assert_allclose(statistics[0].T, wanted, atol=1e-5)


@few
@given(seeds, st.integers(2, 80))
def test_a_direction_has_length_1_and_sums_to_0_over_the_classes(seed, n_classes):
    direction = sketch.random_direction(n_classes, np.random.default_rng(seed)).astype(float)
    assert direction.shape == (n_classes,)
    np.testing.assert_allclose(direction.sum(), 0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(direction), 1, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 7, 40])
def test_all_directions_are_equally_likely(n_classes):
    gradient, _ = rows(0, 1, n_classes)
    squares = [
        (gradient[0] @ sketch.random_direction(n_classes, np.random.default_rng(seed))) ** 2
        for seed in range(2000)
    ]
    # Each of k - 1 orthogonal directions has the same share of the length on average; the share of
    # one has a variance of at most 2 / (k - 1)^2.
    wanted = (gradient**2).sum() / (n_classes - 1)
    assert abs(np.mean(squares) - wanted) < 4 * wanted * np.sqrt(2 / 2000) + 1e-6


def test_directions_depend_on_the_generator_alone():
    first, again, other = (
        sketch.random_direction(30, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_single_class_has_no_direction():
    assert (sketch.random_direction(1, np.random.default_rng(0)) == 0).all()


def test_threads_write_the_same_bits(monkeypatch):
    monkeypatch.setattr(sketch, "_LEAST_ROWS", 1)
    gradient, hessian = rows(0, 101, 40)
    block_of = (np.arange(40) % 20).astype(np.int32)
    direction = sketch.random_direction(40, np.random.default_rng(0))
    for write, extra, shape in (
        (sketch.write_full, (), sketch.wide_shape(101, 40)),
        (sketch.write_blocks, (block_of,), sketch.wide_shape(101, 20)),
        (sketch.write_direction, (direction,), sketch.pair_shape(101)),
    ):
        one, two = np.empty((2, *shape), np.float32)
        write(gradient, hessian, *extra, one, 1)
        write(gradient, hessian, *extra, two, 2)
        np.testing.assert_array_equal(one.view(np.uint32), two.view(np.uint32))
