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
from structent.experiments.cifar100.layout import data_format, in_layout, to_layout

# The names in keras.applications, and the modules that hold what prepares images for them.
_APPLICATIONS = {"MobileNetV2": "mobilenet_v2", "ResNet50": "resnet"}


def small_cnn(n_classes: int) -> Any:
    """Return the network of Experiments 1A and 1B, from images in [0, 1] to logits."""
    placed = {"data_format": data_format()}
    active = {"activation": "relu", **placed}
    return keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            *to_layout(),
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
            layers.Dense(n_classes),
        ]
    )


def head(n_features: int, n_classes: int) -> Any:
    """Return the last layer alone, from features to logits."""
    return keras.Sequential([layers.Input((n_features,)), layers.Dense(n_classes)])


def with_head(backbone: Any, n_classes: int, *, pixels: int) -> Any:
    """Return a backbone with a last layer of its own, from images in [0, 1] of 32 pixels.

    All of it learns, even if the backbone was saved as one that does not.
    """
    backbone.trainable = True
    return keras.Sequential([*_resized(backbone, pixels), layers.Dense(n_classes, dtype="float32")])


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


def _from_file(file: Path) -> Any:
    if not file.is_file():
        raise StructentError(f"--backbone must be a .keras file that exists, got {file}")
    if not zipfile.is_zipfile(file):
        raise StructentError(
            f"--backbone must be a model that Keras saved, got {file}, which is none or is cut "
            "short; save it again"
        )
    try:
        network = keras.models.load_model(file, compile=False)
    except Exception as error:  # Keras raises whatever it stumbles on
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
            # For any size of images MobileNetV2 has the weights of one, which is what we want.
            warnings.filterwarnings("ignore", "`input_shape` is undefined", UserWarning)
            trunk = getattr(keras.applications, name)(include_top=False, pooling="avg")
    except Exception as error:  # Keras raises no narrower one where there is no network
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
