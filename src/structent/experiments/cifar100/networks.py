"""The networks: the small one of Keras's CIFAR-10 example, and pre-trained ones with a new head."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import keras  # type: ignore[import-untyped]  # Keras has no types
from keras import layers

from structent.errors import StructentError

# The names in keras.applications, and the modules that hold what prepares images for them.
_APPLICATIONS = {"MobileNetV2": "mobilenet_v2", "ResNet50": "resnet"}


def small_cnn(n_classes: int, *, precision: str) -> Any:
    """Return the network of Experiments 1A and 1B, from images in [0, 1] to logits.

    Parameters
    ----------
    n_classes
        The number of logits.
    precision
        Keras's dtype policy, "float32" or "mixed_bfloat16"; logits are float32 in any case.
    """
    in_it = {"dtype": precision}
    active = {"activation": "relu", **in_it}
    return keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", **active),
            layers.Conv2D(32, 3, **active),
            layers.MaxPooling2D(**in_it),
            layers.Dropout(0.25, **in_it),
            layers.Conv2D(64, 3, padding="same", **active),
            layers.Conv2D(64, 3, **active),
            layers.MaxPooling2D(**in_it),
            layers.Dropout(0.25, **in_it),
            layers.Flatten(**in_it),
            layers.Dense(512, **active),
            layers.Dropout(0.5, **in_it),
            layers.Dense(n_classes, dtype="float32"),
        ]
    )


def head(n_features: int, n_classes: int) -> Any:
    """Return the last layer alone, from features to logits."""
    return keras.Sequential([layers.Input((n_features,)), layers.Dense(n_classes)])


def with_head(backbone: Any, n_classes: int, *, pixels: int) -> Any:
    """Return a backbone with a last layer of its own, from images in [0, 1] of 32 pixels."""
    return keras.Sequential(
        [*_resized(backbone, pixels).layers, layers.Dense(n_classes, dtype="float32")]
    )


def feature_extractor(backbone: Any, *, pixels: int) -> Any:
    """Return a backbone that takes images in [0, 1] of 32 pixels."""
    return _resized(backbone, pixels)


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
    prepare = importlib.import_module(f"keras.applications.{_APPLICATIONS[backbone]}")
    trunk = getattr(keras.applications, backbone)(include_top=False, pooling="avg")
    images = layers.Input((None, None, 3))
    return keras.Model(images, trunk(prepare.preprocess_input(images * 255.0)))


def backbone_name(backbone: str) -> str:
    """Return what a backbone is called in results.

    >>> backbone_name("weights/mobilenet_v2_imagenet.keras"), backbone_name("ResNet50")
    ('mobilenet_v2_imagenet', 'ResNet50')
    """
    return Path(backbone).stem if backbone.endswith(".keras") else backbone


def _from_file(file: Path) -> Any:
    if not file.is_file():
        raise StructentError(f"--backbone must be a .keras file that exists, got {file}")
    try:
        return keras.models.load_model(file, compile=False)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise StructentError(f"{file} must be a model that Keras saved: {reason}") from None


def _resized(backbone: Any, pixels: int) -> Any:
    return keras.Sequential([layers.Input((32, 32, 3)), layers.Resizing(pixels, pixels), backbone])
