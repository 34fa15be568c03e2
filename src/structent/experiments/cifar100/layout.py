"""The order of an image's axes in which the backend is fastest.

Keras's own is channels last. On torch every layer then moves its images to channels first and back:
the networks of the experiments are 1.3 to 1.7 times as fast when they stay there.
"""

from __future__ import annotations

from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
from keras import layers

# Layers that work alike in either order, once their settings say which.
_KNOWN = frozenset({
    "Activation", "Add", "BatchNormalization", "Conv2D", "DepthwiseConv2D", "Dropout",
    "GlobalAveragePooling2D", "InputLayer", "MaxPooling2D", "Normalization", "ReLU", "Rescaling",
    "ZeroPadding2D",
})  # fmt: skip
# Activations that look at a number by itself: softmax, say, looks along the last axis.
_POINTWISE = frozenset({"linear", "relu", "relu6", "elu", "gelu", "silu", "sigmoid", "tanh"})
_LAST_AXIS = (-1, 3, [-1], [3], (-1,), (3,))


def data_format() -> str:
    """Return the order of axes that layers are built with."""
    return "channels_first" if keras.backend.backend() == "torch" else "channels_last"


def to_layout() -> list[Any]:
    """Return the layers that bring images, channels last, into that order."""
    return [layers.Permute((3, 1, 2))] if data_format() == "channels_first" else []


def in_layout(network: Any) -> Any:
    """Return a network of channels-last images that computes in the backend's order.

    Weights are the same in either order. A network with layers of other kinds than those of the
    experiments is returned as it is.
    """
    config = network.get_config()
    steps = config.get("layers", [])
    if data_format() == "channels_last" or not steps or not all(map(_works_alike, steps)):
        return network
    for layer in steps:
        _turn(layer)
    config.pop("build_input_shape", None)  # of a Sequential; it is found anew
    turned = type(network).from_config(config)
    turned.set_weights(
        [
            weight.reshape(place.shape)  # statistics of channels: (1, 1, 1, c) or (1, c, 1, 1)
            for weight, place in zip(network.get_weights(), turned.weights, strict=True)
        ]
    )
    return keras.Sequential([layers.Input(network.input_shape[1:]), *to_layout(), turned])


def _works_alike(layer: dict[str, Any]) -> bool:
    config = layer["config"]
    return (
        layer["class_name"] in _KNOWN
        and config.get("activation", "linear") in _POINTWISE
        and config.get("axis", -1) in _LAST_AXIS
        # Of each channel apart, in the order of channels last.
        and not any(isinstance(config.get(name), list | tuple) for name in ("scale", "offset"))
    )


def _turn(layer: dict[str, Any]) -> None:
    config = layer["config"]
    if "data_format" in config:
        config["data_format"] = "channels_first"
    if "axis" in config:
        config["axis"] = 1
    if layer["class_name"] == "InputLayer":
        n_images, height, width, channels = config["batch_shape"]
        config["batch_shape"] = (n_images, channels, height, width)
    # Shapes that were kept for building; they are found anew.
    layer.pop("build_config", None)
