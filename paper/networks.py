"""The networks: the small one of Keras's CIFAR-10 example, and pre-trained ones with a new head."""

from __future__ import annotations

import importlib
import warnings
import zipfile
from pathlib import Path
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
from keras import layers

from structent.errors import StructentError

# Names in keras.applications, and the modules with the functions that prepare images for them.
_APPLICATIONS = {"MobileNetV2": "mobilenet_v2", "ResNet50": "resnet"}
# Layers that work in either order of axes, as their settings say.
_KNOWN = frozenset({
    "Activation", "Add", "BatchNormalization", "Conv2D", "DepthwiseConv2D", "Dropout",
    "GlobalAveragePooling2D", "InputLayer", "MaxPooling2D", "Normalization", "ReLU", "Rescaling",
    "ZeroPadding2D",
})  # fmt: skip
# Elementwise activations; softmax, for example, works along the last axis.
_POINTWISE = frozenset({"linear", "relu", "relu6", "elu", "gelu", "silu", "sigmoid", "tanh"})
_LAST_AXIS = (-1, 3, [-1], [3], (-1,), (3,))


def small_cnn(last: Any) -> Any:
    """Return the network of Experiments 1A and 1B, from images in [0, 1] to logits.

    ``last`` is the last layer, or the number of classes for an ordinary one, also below.
    """
    placed = {"data_format": _data_format()}
    active = {"activation": "relu", **placed}
    return keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            *_to_layout(),
            layers.Conv2D(32, 3, padding="same", **active),
            layers.Conv2D(32, 3, **active),
            layers.MaxPooling2D(**placed),
            layers.Dropout(0.25),
            layers.Conv2D(64, 3, padding="same", **active),
            layers.Conv2D(64, 3, **active),
            layers.MaxPooling2D(**placed),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.5),
            _layer(last),
        ]
    )


def head(n_features: int, last: Any) -> Any:
    """Return the last layer alone, from features to logits."""
    return keras.Sequential([layers.Input((n_features,)), _layer(last)])


def with_head(backbone: Any, last: Any, *, pixels: int) -> Any:
    """Return a backbone with a last layer of its own, from images in [0, 1] of 32 pixels.

    All layers learn, even if the backbone was saved as frozen.
    """
    backbone.trainable = True
    return keras.Sequential([*_resized(backbone, pixels), _layer(last)])


def _layer(last: Any) -> Any:
    # In full precision whatever the policy is: in half precision, differences of losses are lost.
    return layers.Dense(last, dtype="float32") if isinstance(last, int) else last


def feature_extractor(backbone: Any, *, pixels: int) -> Any:
    """Return a backbone that takes images in [0, 1] of 32 pixels."""
    return keras.Sequential(_resized(backbone, pixels))


def read_backbone(backbone: str) -> Any:
    """Return a pre-trained network without its last layer: images in [0, 1] to features.

    Parameters
    ----------
    backbone
        A ``.keras`` file of such a network, or a name of ``keras.applications``, whose weights
        Keras downloads: MobileNetV2 or ResNet50.
    """
    if backbone.endswith(".keras"):
        return _from_file(Path(backbone))
    if backbone not in _APPLICATIONS:
        raise StructentError(
            f"--backbone must be a .keras file, {' or '.join(_APPLICATIONS)}, got {backbone!r}"
        )
    return _from_applications(backbone)


def backbone_name(backbone: str) -> str:
    """Return what a backbone is called in results.

    >>> backbone_name("weights/mobilenet_v2_imagenet.keras"), backbone_name("ResNet50")
    ('mobilenet_v2_imagenet', 'ResNet50')
    """
    return Path(backbone).stem if backbone.endswith(".keras") else backbone


def in_layout(network: Any) -> Any:
    """Return a network of channels-last images that computes in the backend's order.

    Weights are the same in either order. A network with other kinds of layers than the experiments
    use is returned unchanged.
    """
    config = network.get_config()
    steps = config.get("layers", [])
    if _data_format() == "channels_last" or not steps or not all(map(_works_alike, steps)):
        return network
    for layer in steps:
        _turn(layer)
    config.pop("build_input_shape", None)  # of a Sequential; Keras computes it again
    turned = type(network).from_config(config)
    turned.set_weights(
        [
            weight.reshape(place.shape)  # statistics of channels: (1, 1, 1, c) or (1, c, 1, 1)
            for weight, place in zip(network.get_weights(), turned.weights, strict=True)
        ]
    )
    return keras.Sequential([layers.Input(network.input_shape[1:]), *_to_layout(), turned])


def _from_file(file: Path) -> Any:
    if not file.is_file():
        raise StructentError(f"--backbone must be a .keras file that exists, got {file}")
    if not zipfile.is_zipfile(file):
        raise StructentError(
            f"--backbone must be a model that Keras saved, got {file}, which is not one or is cut "
            "short; save it again"
        )
    try:
        network = keras.models.load_model(file, compile=False)
    except Exception as error:  # Keras may raise any error
        raise StructentError(
            f"--backbone must be a model that Keras can load, got {file}: {_first_line(error)}"
        ) from error
    _check_shapes(network, file)
    return in_layout(network)


def _check_shapes(network: Any, file: Path) -> None:
    taken, given = (getattr(network, f"{side}_shape", None) for side in ("input", "output"))
    if not (isinstance(taken, tuple) and len(taken) == 4 and taken[-1] in (3, None)):
        raise StructentError(
            f"--backbone must take images, (n, height, width, 3), got {file}, which takes {taken}"
        )
    if not (isinstance(given, tuple) and len(given) == 2):
        raise StructentError(
            f"--backbone must give features, (n, features), got {file}, which gives {given}; end "
            "it with a GlobalAveragePooling2D"
        )


def _from_applications(name: str) -> Any:
    prepare = importlib.import_module(f"keras.applications.{_APPLICATIONS[name]}")
    try:
        with warnings.catch_warnings():
            # For other image sizes MobileNetV2 loads the weights of one size, which we want.
            warnings.filterwarnings("ignore", "`input_shape` is undefined", UserWarning)
            trunk = getattr(keras.applications, name)(include_top=False, pooling="avg")
    except Exception as error:  # Keras raises no narrower one without a network connection
        raise StructentError(
            f"Keras could not download {name} ({_first_line(error)}); give a .keras file as "
            "--backbone"
        ) from error
    images = layers.Input((None, None, 3))
    return keras.Model(images, in_layout(trunk)(prepare.preprocess_input(images * 255.0)))


def _resized(backbone: Any, pixels: int) -> list[Any]:
    taken = backbone.input_shape[1:3]
    if any(side not in (None, pixels) for side in taken):
        raise StructentError(
            f"--backbone must take images of {pixels} by {pixels} pixels, got one that takes "
            f"{taken[0]} by {taken[1]}"
        )
    return [layers.Input((32, 32, 3)), layers.Resizing(pixels, pixels), backbone]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _data_format() -> str:
    """Return the order of an image's axes in which the backend is fastest.

    Keras's default is channels last. On torch every layer then converts its images to channels
    first and back; without these conversions the networks here are 1.3 to 1.7 times as fast.
    """
    return "channels_first" if keras.backend.backend() == "torch" else "channels_last"


def _to_layout() -> list[Any]:
    """Return the layers that convert images, channels last, to that order."""
    return [layers.Permute((3, 1, 2))] if _data_format() == "channels_first" else []


def _works_alike(layer: dict[str, Any]) -> bool:
    config = layer["config"]
    return (
        layer["class_name"] in _KNOWN
        and config.get("activation", "linear") in _POINTWISE
        and config.get("axis", -1) in _LAST_AXIS
        # One value per channel, in the order of channels last.
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
    # Shapes that were kept for building; Keras computes them again.
    layer.pop("build_config", None)
