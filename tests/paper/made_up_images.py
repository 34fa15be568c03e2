"""A made-up CIFAR-100 of a few images, and a tiny backbone, as the files that users have."""

import pickle

import numpy as np

from structent.structure.catalog import cifar100

# Two slices of 40, and 20 validation images behind them, which is what the smoke presets need.
N_TRAIN, N_TEST = 110, 30


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(0, 256, (N_TRAIN, 32, 32, 3), dtype=np.uint8),
        "y_train": rng.integers(0, 100, N_TRAIN),
        "x_test": rng.integers(0, 256, (N_TEST, 32, 32, 3), dtype=np.uint8),
        "y_test": rng.integers(0, 100, N_TEST),
    }


def write_npz(path, seed=0):
    np.savez(path, **arrays(seed))
    return path


def write_pickles(folder):
    """Write the same images as the original files for Python."""
    folder.mkdir()
    given = arrays()
    parts = {
        name: {
            "data": given[f"x_{name}"].transpose(0, 3, 1, 2).reshape(-1, 3072),
            "fine_labels": given[f"y_{name}"].tolist(),
        }
        for name in ("train", "test")
    }
    parts["meta"] = {"fine_label_names": list(cifar100().classes)}
    for name, content in parts.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return folder


def write_backbone(path, seed=0, *, pixels=None, pooled=True, trainable=True):
    """Write a network from images in [0, 1] to six features, or to maps of them."""
    import keras

    keras.utils.set_random_seed(seed)
    steps = [
        keras.layers.Input((pixels, pixels, 3)),
        keras.layers.Conv2D(6, 3, strides=2, use_bias=False),
        keras.layers.BatchNormalization(),
        keras.layers.Activation("tanh"),
    ]
    pooling = [keras.layers.GlobalAveragePooling2D()] if pooled else []
    network = keras.Sequential([*steps, *pooling])
    network.trainable = trainable
    network.save(path)
    return path
