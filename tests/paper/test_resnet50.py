"""A network of TensorFlow.js: shards are read as they are written, and give the same numbers."""

import json

import keras
import numpy as np
import pytest

from paper.networks import in_layout, read_backbone
from paper.resnet50 import read_network, read_weights, save
from structent.errors import StructentError

RNG = np.random.default_rng(0)
WEIGHTS = {
    "bn/gamma": RNG.random(4) + 0.5, "bn/beta": RNG.normal(size=4),
    "bn/moving_mean": RNG.normal(size=4), "bn/moving_variance": RNG.random(4) + 0.5,
    "conv1/kernel": RNG.normal(size=(3, 3, 3, 4)), "conv1/bias": RNG.normal(size=4),
    "side/kernel": RNG.normal(size=(1, 1, 4, 4)), "side/bias": RNG.normal(size=4),
    "fc/kernel": RNG.normal(size=(4, 7)), "fc/bias": RNG.normal(size=7),
}  # fmt: skip
MEANS = [103.939, 116.779, 123.68]  # of blue, green and red


def layer(kind, name, *inputs, **config):
    nodes = [[[each, 0, 0, {}] for each in inputs]] if inputs else []
    old = {"name": name, "trainable": True, "dtype": "float32"}
    return {"class_name": kind, "name": name, "config": {**old, **config}, "inbound_nodes": nodes}


def convolution(name, before, size):
    return layer(
        "Conv2D", name, before, filters=4, kernel_size=[size, size], strides=[1, 1],
        padding="valid", data_format="channels_last", activation="linear", use_bias=True,
    )  # fmt: skip


LAYERS = [
    layer("InputLayer", "input_1", batch_input_shape=[None, 8, 8, 3]),
    layer("ZeroPadding2D", "pad", "input_1", padding=[[1, 1], [1, 1]], data_format="channels_last"),
    convolution("conv1", "pad", 3),
    layer("BatchNormalization", "bn", "conv1", axis=[3], momentum=0.99, epsilon=0.001),
    layer("Activation", "relu", "bn", activation="relu"),
    convolution("side", "relu", 1),
    layer("Add", "add", "relu", "side"),
    layer("GlobalAveragePooling2D", "pool", "add", data_format="channels_last"),
    layer("Dense", "fc", "pool", units=7),
]


@pytest.fixture
def folder(tmp_path):
    """A network in three shards, which end within numbers."""
    content = b"".join(value.astype("<f4").tobytes() for value in WEIGHTS.values())
    paths = [f"group1-shard{place}of3.bin" for place in (1, 2, 3)]
    cuts = [0, 101, 303, len(content)]
    for path, start, end in zip(paths, cuts[:-1], cuts[1:], strict=True):
        (tmp_path / path).write_bytes(content[start:end])
    listed = [
        {"name": name, "shape": list(value.shape), "dtype": "float32"}
        for name, value in WEIGHTS.items()
    ]
    model = {
        "format": "layers-model",
        "modelTopology": {"model_config": {"class_name": "Model", "config": {"layers": LAYERS}}},
        "weightsManifest": [{"paths": paths, "weights": listed}],
    }
    (tmp_path / "model.json").write_text(json.dumps(model))
    return tmp_path


def test_weights_are_those_that_were_written(folder):
    found = read_weights(folder)
    assert list(found) == list(WEIGHTS)
    for name, value in WEIGHTS.items():
        assert np.array_equal(found[name], value.astype(np.float32))


def features_by_hand(images):
    """Return what the layers give, by loops, of images in [0, 1] with red first."""
    x = images[..., ::-1] * 255.0 - MEANS
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n, height, width, _ = x.shape
    out = np.zeros((n, height - 2, width - 2, 4))
    for i in range(3):
        for j in range(3):
            out += x[:, i : i + height - 2, j : j + width - 2] @ WEIGHTS["conv1/kernel"][i, j]
    out += WEIGHTS["conv1/bias"]
    out = (out - WEIGHTS["bn/moving_mean"]) / np.sqrt(WEIGHTS["bn/moving_variance"] + 0.001)
    out = np.maximum(out * WEIGHTS["bn/gamma"] + WEIGHTS["bn/beta"], 0.0)
    out = out + out @ WEIGHTS["side/kernel"][0, 0] + WEIGHTS["side/bias"]
    return out.mean(axis=(1, 2))


@pytest.mark.parametrize("pixels", [8, 11])  # of any size
def test_features_are_those_of_the_layers_by_hand(folder, pixels):
    images = RNG.random((3, pixels, pixels, 3)).astype(np.float32)
    found = keras.ops.convert_to_numpy(read_network(folder)(images))
    assert found == pytest.approx(features_by_hand(images), rel=1e-4)


def test_what_is_saved_is_a_backbone(folder, tmp_path):
    network = read_network(folder)
    save(network, tmp_path / "tiny.keras")
    images = RNG.random((2, 8, 8, 3)).astype(np.float32)
    expected = keras.ops.convert_to_numpy(network(images))
    for read in (read_backbone(str(tmp_path / "tiny.keras")), in_layout(network)):
        found = keras.ops.convert_to_numpy(read(images))
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_same_network_is_saved_as_the_same_bytes(folder, tmp_path):
    for name in ("first", "second"):
        keras.utils.clear_session()  # as in a new process
        save(read_network(folder), tmp_path / f"{name}.keras")
    first, second = ((tmp_path / f"{name}.keras").read_bytes() for name in ("first", "second"))
    assert first == second
    assert b"date_saved" not in first
    assert b"shared_object_id" not in first


def test_shards_that_are_cut_short_or_too_long_are_refused(folder):
    last = folder / "group1-shard3of3.bin"
    content = last.read_bytes()
    last.write_bytes(content[:-4])
    with pytest.raises(StructentError, match="got an end within fc/bias; get the package again"):
        read_weights(folder)
    last.write_bytes(content + b"1234")
    with pytest.raises(StructentError, match="got 4 bytes more"):
        read_weights(folder)


def test_weights_of_another_kind_are_refused(folder):
    model = json.loads((folder / "model.json").read_text())
    model["weightsManifest"][0]["weights"][0]["dtype"] = "uint8"
    (folder / "model.json").write_text(json.dumps(model))
    with pytest.raises(StructentError, match="weights must be float32, got bn/gamma as uint8"):
        read_weights(folder)


def test_a_folder_without_a_network_is_refused(tmp_path):
    with pytest.raises(StructentError, match=r"must have model\.json"):
        read_weights(tmp_path)
