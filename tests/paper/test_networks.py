"""The networks: their layers counted by hand, and the files and names that backbones come from."""

import re
import warnings
import zipfile

import keras
import numpy as np
import pytest
import torch
from keras import layers

from paper.networks import (
    feature_extractor,
    head,
    in_layout,
    read_backbone,
    small_cnn,
    with_head,
)
from structent.errors import StructentError
from tests.paper.made_up_images import write_backbone

IMAGES = np.random.default_rng(0).random((5, 32, 32, 3)).astype(np.float32)


def without_weights(monkeypatch, name):
    """Let the network of a name begin at random weights, which are not downloaded."""
    real, made = getattr(keras.applications, name), []

    def constructor(**options):
        keras.utils.set_random_seed(0)
        made.append(real(**{**options, "weights": None}))
        return made[-1]

    monkeypatch.setattr(keras.applications, name, constructor)
    return made


# The small network


def test_the_small_network_has_the_layers_of_the_cifar_10_example():
    kinds = [type(layer).__name__ for layer in small_cnn(100).layers]
    block = ["Conv2D", "Conv2D", "MaxPooling2D", "Dropout"]

    assert [kind for kind in kinds if kind != "Permute"] == (
        [*block, *block, "Flatten", "Dense", "Dropout", "Dense"]
    )


def test_the_small_network_has_the_shapes_of_the_cifar_10_example():
    steps = [
        layer
        for layer in small_cnn(100).layers
        if isinstance(layer, layers.Conv2D | layers.MaxPooling2D | layers.Dense)
    ]
    # Height and width, in whatever order the backend has its axes, then channels.
    shapes = [
        [*sorted(layer.output.shape[1:], key=[32, 64].__contains__)] for layer in steps[:6]
    ]  # the first shape is all 32
    assert shapes == [
        [32, 32, 32], [30, 30, 32], [15, 15, 32], [15, 15, 64], [13, 13, 64], [6, 6, 64],
    ]  # fmt: skip
    assert [tuple(layer.output.shape[1:]) for layer in steps[6:]] == [(512,), (100,)]


def test_the_small_network_has_as_many_weights_as_reckoned_by_hand():
    by_hand = [
        *(3 * 3 * 3 * 32 + 32, 3 * 3 * 32 * 32 + 32),
        *(3 * 3 * 32 * 64 + 64, 3 * 3 * 64 * 64 + 64),
        *(6 * 6 * 64 * 512 + 512, 512 * 100 + 100),
    ]
    network = small_cnn(100)
    counts = [layer.count_params() for layer in network.layers]

    assert [count for count in counts if count] == by_hand
    assert network.count_params() == sum(by_hand) == 1_297_028


def test_the_small_network_drops_a_quarter_a_quarter_and_a_half():
    network = small_cnn(100)
    rates = [layer.rate for layer in network.layers if isinstance(layer, layers.Dropout)]

    assert rates == [0.25, 0.25, 0.5]


def test_all_layers_of_the_small_network_but_the_last_are_rectified():
    network = small_cnn(100)
    active = [layer.activation.__name__ for layer in network.layers if layer.count_params()]

    assert active == ["relu"] * 5 + ["linear"]


def test_the_convolutions_of_the_small_network_are_those_of_torch():
    network = small_cnn(10)
    kernels = [torch.as_tensor(weight) for weight in network.get_weights() if weight.ndim == 4]
    x = torch.as_tensor(IMAGES).permute(0, 3, 1, 2)
    for place, kernel in enumerate(kernels):  # biases begin at 0
        padding = 1 if place in (0, 2) else 0
        x = torch.relu(torch.conv2d(x, kernel.permute(3, 2, 0, 1), padding=padding))
        if place in (1, 3):
            x = torch.max_pool2d(x, 2)
    inner = keras.Model(network.inputs, network.layers[-5].output)  # what is flattened
    seen = inner.predict(IMAGES, verbose=0)
    expected = x.numpy() if seen.shape[1] == 64 else x.permute(0, 2, 3, 1).numpy()

    assert seen == pytest.approx(expected, abs=1e-5)


def test_the_last_layer_alone_is_linear():
    network = head(6, 100)
    kernel, bias = network.get_weights()
    features = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)

    assert network.predict(features, verbose=0) == pytest.approx(features @ kernel + bias, abs=1e-6)


# Backbones


def test_a_backbone_in_a_file_is_the_network_that_was_saved(backbone):
    saved = keras.models.load_model(backbone)

    assert read_backbone(backbone).predict(IMAGES, verbose=0) == pytest.approx(
        saved.predict(IMAGES, verbose=0), abs=1e-6
    )


def test_features_are_the_backbones_of_images_that_are_made_larger(backbone):
    larger = torch.nn.functional.interpolate(
        torch.as_tensor(IMAGES).permute(0, 3, 1, 2), size=(48, 48), mode="bilinear"
    ).permute(0, 2, 3, 1)
    expected = keras.models.load_model(backbone).predict(larger.numpy(), verbose=0)

    features = feature_extractor(read_backbone(backbone), pixels=48).predict(IMAGES, verbose=0)
    assert features == pytest.approx(expected, abs=1e-5)


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(
        StructentError, match=r"must be a \.keras file that exists, got .*no\.keras$"
    ):
        read_backbone(str(tmp_path / "no.keras"))


def test_an_unknown_name_is_refused():
    with pytest.raises(
        StructentError, match=r"must be a \.keras file, MobileNetV2 or ResNet50, got 'VGG16'"
    ):
        read_backbone("VGG16")


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "mine.keras").write_bytes(b"no model")
    with pytest.raises(
        StructentError, match=r"must be a model that Keras saved, got .*mine\.keras"
    ):
        read_backbone(str(tmp_path / "mine.keras"))


def test_a_file_that_is_cut_short_is_refused(tmp_path, backbone):
    with open(backbone, "rb") as whole:  # noqa: PTH123  the fixture is an option of the command
        (tmp_path / "short.keras").write_bytes(whole.read()[:-500])
    with pytest.raises(StructentError, match=r"must be a model that Keras saved, got .*short\.ke"):
        read_backbone(str(tmp_path / "short.keras"))


def test_an_archive_of_something_else_is_refused_in_one_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "mine.keras", "w") as archive:
        archive.writestr("notes.txt", "no model")
    with pytest.raises(StructentError, match="must be a model that Keras can load") as refused:
        read_backbone(str(tmp_path / "mine.keras"))
    assert "\n" not in str(refused.value)


def test_a_network_with_layers_that_are_not_there_is_refused_in_one_sentence(tmp_path):
    @keras.saving.register_keras_serializable(package="made up")
    class Unknown(layers.Layer):
        def call(self, inputs):
            return inputs

    keras.Sequential(
        [layers.Input((None, None, 3)), Unknown(), layers.GlobalAveragePooling2D()]
    ).save(tmp_path / "mine.keras")
    keras.saving.get_custom_objects().pop("made up>Unknown")
    with pytest.raises(StructentError, match="must be a model that Keras can load") as refused:
        read_backbone(str(tmp_path / "mine.keras"))
    assert "\n" not in str(refused.value)


def test_a_network_that_gives_maps_is_refused(tmp_path):
    file = write_backbone(tmp_path / "maps.keras", pooled=False)
    with pytest.raises(StructentError, match=r"must give features, .*GlobalAveragePooling2D"):
        read_backbone(str(file))


def test_a_network_that_takes_no_images_is_refused(tmp_path):
    keras.Sequential([layers.Input((7,)), layers.Dense(3)]).save(tmp_path / "dense.keras")
    with pytest.raises(StructentError, match=r"must take images, .* which takes \(None, 7\)"):
        read_backbone(str(tmp_path / "dense.keras"))


@pytest.mark.parametrize("use", [feature_extractor, lambda *a, **b: with_head(*a, 100, **b)])
def test_a_network_for_images_of_another_size_is_refused(tmp_path, use):
    file = write_backbone(tmp_path / "fixed.keras", pixels=64)
    with pytest.raises(StructentError, match=r"images of 48 by 48 pixels, got .* 64 by 64"):
        use(read_backbone(str(file)), pixels=48)


def test_a_network_for_images_of_this_size_is_taken(tmp_path):
    file = write_backbone(tmp_path / "fixed.keras", pixels=48)

    assert feature_extractor(read_backbone(str(file)), pixels=48).output_shape == (None, 6)


# Names of keras.applications


@pytest.mark.parametrize(
    ("name", "module", "by_hand", "n_features"),
    [
        ("MobileNetV2", "mobilenet_v2", lambda x: 2 * x - 1, 1280),
        (
            "ResNet50",
            "resnet",
            lambda x: 255 * x[..., ::-1] - np.array([103.939, 116.779, 123.68], dtype=np.float32),
            2048,
        ),
    ],
)
def test_images_are_prepared_as_the_application_asks_for(
    monkeypatch, name, module, by_hand, n_features
):
    made = without_weights(monkeypatch, name)
    network = read_backbone(name)
    prepared = getattr(keras.applications, module).preprocess_input(255 * IMAGES)
    assert prepared == pytest.approx(by_hand(IMAGES), abs=1e-4)

    features = network.predict(IMAGES, verbose=0)
    assert features.shape == (5, n_features)
    # Random weights make features of any size.
    expected = made[0].predict(prepared, verbose=0)
    assert features == pytest.approx(expected, abs=1e-5 * float(expected.max()))


def test_the_application_goes_without_its_last_layer_and_without_a_warning(monkeypatch):
    asked = []

    def constructor(**options):
        asked.append(options)
        warnings.warn("`input_shape` is undefined or non-square", stacklevel=2)
        return keras.Sequential([layers.Input((None, None, 3)), layers.GlobalAveragePooling2D()])

    monkeypatch.setattr(keras.applications, "MobileNetV2", constructor)
    read_backbone("MobileNetV2")

    assert asked == [{"include_top": False, "pooling": "avg"}]


def test_a_download_that_fails_is_told_in_one_sentence(monkeypatch):
    def constructor(**_):
        raise Exception("URL fetch failure\nand more")

    monkeypatch.setattr(keras.applications, "ResNet50", constructor)
    with pytest.raises(
        StructentError,
        match=re.escape("could not download ResNet50 (URL fetch failure); give a .keras file"),
    ):
        read_backbone("ResNet50")


# All layers learn


@pytest.mark.parametrize("trainable", [True, False])
def test_with_a_head_all_weights_learn_whatever_was_saved(tmp_path, trainable):
    file = write_backbone(tmp_path / "mine.keras", trainable=trainable)
    network = with_head(read_backbone(str(file)), 100, pixels=48)
    network.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    before = network.get_weights()
    network.train_on_batch(IMAGES, np.arange(5))

    # A kernel; the scale, shift, mean and variance of the normalisation; kernel and bias.
    assert len(before) == 7
    assert len(network.trainable_weights) == 5
    assert not any(map(np.array_equal, before, network.get_weights()))


def test_with_a_head_the_backbone_begins_at_its_own_weights(backbone):
    saved = keras.models.load_model(backbone).get_weights()
    network = with_head(read_backbone(backbone), 100, pixels=48)

    assert all(map(np.array_equal, saved, network.get_weights()))
    assert network.output_shape == (None, 100)
    assert network.layers[-1].activation.__name__ == "linear"


# Axes in the backend's order

SMALL_IMAGES = np.random.default_rng(0).random((3, 20, 20, 3)).astype(np.float32)


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

    assert in_layout(network).predict(SMALL_IMAGES, verbose=0) == pytest.approx(
        network.predict(SMALL_IMAGES, verbose=0), abs=1e-5
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
