"""The last layer for Keras: ``Dense``, but for how its kernel is made."""

import keras
import numpy as np
import pytest

from structent import StructureError
from structent.layers.keras import StructuredDense
from structent.structure import catalog
from tests.layers.problems import STRUCTURES, similarity, unit_vectors

pytestmark = pytest.mark.requires("keras")

A_TREE = STRUCTURES["a tree with many blocks"]


def built(structure, features=7, **options):
    layer = StructuredDense(structure, seed=0, **options)
    layer.build((None, features))
    return layer


def kernel_of(layer):
    return keras.ops.convert_to_numpy(layer.kernel)


def rows(n=6, features=7):
    return np.random.default_rng(0).normal(size=(n, features)).astype(np.float32)


@pytest.mark.parametrize("singleton_weight", [None, 0.2])
@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - {"trivial"}))
def test_kernels_of_unit_vectors_have_the_similarity_as_their_products(name, singleton_weight):
    structure = STRUCTURES[name]
    plan = built(structure)._plan
    k, m = len(structure.classes), plan.factor.n_blocks
    layer = built(structure, k + m, singleton_weight=singleton_weight)
    layer.set_weights([*unit_vectors(structure, plan), np.zeros(k)])
    kernel = kernel_of(layer)
    np.testing.assert_allclose(
        kernel.T @ kernel, similarity(structure, singleton_weight), atol=1e-5
    )


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_plain_layer_has_the_same_outputs_and_gives_the_layer_back(name, use_bias):
    layer = built(STRUCTURES[name], use_bias=use_bias, activation="tanh")
    dense = layer.to_dense()
    assert type(dense) is keras.layers.Dense
    again = StructuredDense.from_dense(dense, STRUCTURES[name])
    expected = keras.ops.convert_to_numpy(layer(rows()))
    for other in (dense, again):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(other(rows())), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["cifar100", "a tree with many blocks", "sampler"])
def test_a_model_that_is_saved_and_loaded_goes_on(name, tmp_path):
    structure = STRUCTURES[name]
    head = StructuredDense(
        structure, singleton_weight=0.6, kernel_regularizer=keras.regularizers.L2(0.01)
    )
    model = keras.Sequential([keras.Input((7,)), head])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    labels = np.arange(6) % len(structure.classes)
    model.fit(rows(), labels, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].structure == structure
    assert loaded.layers[-1].get_config() == head.get_config()
    np.testing.assert_allclose(
        loaded.predict(rows(), verbose=0), model.predict(rows(), verbose=0), rtol=1e-6
    )
    before, after = (m.fit(rows(), labels, verbose=0).history["loss"] for m in (model, loaded))
    assert after == pytest.approx(before, rel=1e-5)


def test_the_regularizer_is_the_prior_on_the_kernel():
    layer = built(catalog.months(), kernel_regularizer=keras.regularizers.L2(0.5))
    again = StructuredDense.from_dense(layer.to_dense(), catalog.months())
    squares = sum(float((w**2).sum()) for w in again.get_weights()[:2])
    kernel = kernel_of(layer).astype(np.float64)
    prior = np.trace(kernel @ np.linalg.inv(similarity(catalog.months())) @ kernel.T)
    assert squares == pytest.approx(prior, rel=1e-4)
    own = sum(float((w**2).sum()) for w in layer.get_weights()[:2])
    assert sum(float(keras.ops.convert_to_numpy(loss)) for loss in layer.losses) == pytest.approx(
        0.5 * own, rel=1e-5
    )


def test_the_first_kernel_has_the_variance_of_dense():
    layer, dense = built(catalog.cifar100(), 400), keras.layers.Dense(100)
    dense.build((None, 400))
    ours, theirs = (np.var(kernel_of(each)) for each in (layer, dense))
    assert ours == pytest.approx(theirs, rel=0.05)
    np.testing.assert_array_equal(kernel_of(layer), kernel_of(built(catalog.cifar100(), 400)))


def test_in_mixed_precision_the_sums_stay_exact():
    policy = keras.DTypePolicy("mixed_bfloat16")
    layer = StructuredDense(catalog.cifar100(), dtype=policy)
    outputs = layer(rows())
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(layer.kernel.dtype) == "float32"


def test_axes_before_the_last_are_rows():
    layer = built(A_TREE)
    assert tuple(layer(np.zeros((2, 3, 7), np.float32)).shape) == (2, 3, 300)
    assert layer.compute_output_shape((None, 3, 7)) == (None, 3, 300)


def test_what_does_not_fit_is_refused():
    with pytest.raises(StructureError, match="the layer has a kernel only after it is built"):
        StructuredDense(catalog.months()).kernel  # noqa: B018  asking is all
    dense = keras.layers.Dense(5)
    with pytest.raises(StructureError, match=r"a keras\.layers\.Dense that is built, got Dense"):
        StructuredDense.from_dense(dense, catalog.months())
    dense.build((None, 3))
    with pytest.raises(StructureError, match="structure covers 12 classes but dense has 5 outputs"):
        StructuredDense.from_dense(dense, catalog.months())
