"""Networks whose axes are in the backend's order give what they gave before."""

import keras
import numpy as np
import pytest
from keras import layers

from structent.experiments.cifar100.layout import in_layout

IMAGES = np.random.default_rng(0).random((3, 20, 20, 3)).astype(np.float32)


def functional(*steps, size=None):
    keras.utils.set_random_seed(0)
    images = value = layers.Input((size, size, 3))
    for step in steps:
        value = step(value)
    return keras.Model(images, layers.GlobalAveragePooling2D()(value))


def with_statistics(network):
    """Give a normalisation other numbers than those that it begins with."""
    rng = np.random.default_rng(1)
    network.set_weights([weight + rng.random(weight.shape) for weight in network.get_weights()])
    return network


def with_a_sum():
    images = layers.Input((None, None, 3))
    shared = layers.Conv2D(3, 1)
    value = layers.Add()([shared(images), shared(shared(images))])
    return keras.Model(images, layers.GlobalAveragePooling2D()(value))


TURNED = {
    "convolutions": lambda: functional(
        layers.ZeroPadding2D(((0, 1), (2, 3))),
        layers.Conv2D(5, 3, strides=2, padding="same", activation="relu"),
        layers.DepthwiseConv2D((2, 3)),
        layers.MaxPooling2D((2, 1)),
        layers.ReLU(6.0),
    ),
    "normalisation": lambda: with_statistics(
        functional(layers.Conv2D(4, 3), layers.BatchNormalization(), layers.Activation("tanh"))
    ),
    "standardisation": lambda: functional(
        layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0]),
        layers.Rescaling(2.0, offset=-1.0),
        layers.Conv2D(4, (1, 3)),
    ),
    "a sum": with_a_sum,
    "a sequence": lambda: keras.Sequential(
        [
            layers.Input((None, None, 3)),
            layers.Conv2D(4, (3, 1)),
            layers.GlobalAveragePooling2D(),
        ]
    ),
}
AS_THEY_ARE = {
    "softmax of the channels": lambda: functional(layers.Conv2D(4, 3, activation="softmax")),
    "a scale a channel": lambda: functional(layers.Rescaling([1.0, 2.0, 3.0])),
    "normalised columns": lambda: functional(layers.BatchNormalization(axis=2), size=20),
    "a layer of another kind": lambda: functional(layers.SpatialDropout2D(0.1)),
}


@pytest.mark.parametrize("name", [*TURNED, *AS_THEY_ARE])
def test_a_network_gives_the_same_in_the_order_of_the_backend(name):
    network = {**TURNED, **AS_THEY_ARE}[name]()

    assert in_layout(network).predict(IMAGES, verbose=0) == pytest.approx(
        network.predict(IMAGES, verbose=0), abs=1e-5
    )


@pytest.mark.parametrize("name", TURNED)
def test_a_network_of_known_layers_is_turned_and_keeps_its_weights(name):
    network = TURNED[name]()
    turned = in_layout(network)

    assert turned is not network
    assert turned.input_shape == network.input_shape
    assert [weight.ravel().tolist() for weight in turned.get_weights()] == [
        weight.ravel().tolist() for weight in network.get_weights()
    ]


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_a_network_that_depends_on_the_order_stays_as_it_is(name):
    network = AS_THEY_ARE[name]()

    assert in_layout(network) is network


def test_a_network_for_images_of_one_size_stays_one():
    assert in_layout(functional(layers.Conv2D(4, 3), size=20)).input_shape == (None, 20, 20, 3)
