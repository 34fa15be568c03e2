"""Features of a frozen network: computed once, and kept apart by network and size."""

import io
from pathlib import Path

import keras
import numpy as np
import pytest
import torch

from paper import features as features_module
from paper import networks as module
from paper.features import (
    KeptFeatures,
    cifar100_features,
    features_of_images,
    fresh_cifar100_features,
)
from tests.paper.made_up_images import arrays, write_backbone, write_npz

# More than are computed at a time.
IMAGES = np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), dtype=np.uint8)


def never():
    pytest.fail("features are computed again")


@pytest.fixture
def features(tmp_path, backbone):
    return KeptFeatures(tmp_path / "cache", backbone, 48)


def test_features_are_the_backbones_of_images_that_are_made_larger(features, backbone):
    pixels = torch.as_tensor(IMAGES / 255, dtype=torch.float32).permute(0, 3, 1, 2)
    larger = torch.nn.functional.interpolate(pixels, size=(48, 48), mode="bilinear")
    network = keras.models.load_model(backbone)
    expected = network.predict(larger.permute(0, 2, 3, 1).numpy(), verbose=0)

    features.keep("some", lambda: IMAGES)
    kept = features.read("some")
    assert kept.shape == (70, 6)
    assert kept.dtype == np.float32
    assert kept == pytest.approx(expected, abs=1e-5)


def test_features_are_computed_once(features, backbone, monkeypatch):
    features.keep("some", lambda: IMAGES)
    monkeypatch.setattr(module, "read_backbone", lambda _: never())
    again = KeptFeatures(features.folder, backbone, 48)
    again.keep("some", never)

    assert np.array_equal(again.read("some"), features.read("some"))


def test_features_of_other_names_are_others(features):
    features.keep("some", lambda: IMAGES[:5])
    features.keep("others", lambda: IMAGES[5:])

    assert len(features.read("some")) == 5
    assert len(features.read("others")) == 65


def test_another_network_in_a_file_of_the_same_name_has_other_features(tmp_path):
    file, kept = tmp_path / "mine.keras", []
    for seed in (0, 1):
        features = KeptFeatures(tmp_path / "cache", str(write_backbone(file, seed)), 48)
        features.keep("some", lambda: IMAGES[:5])
        kept.append(features.read("some"))

    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert not np.allclose(*kept)


def test_images_of_another_size_have_other_features(tmp_path, backbone):
    kept = []
    for pixels in (32, 48):
        features = KeptFeatures(tmp_path, backbone, pixels)
        features.keep("some", lambda: IMAGES[:5])
        kept.append(features.read("some"))

    assert len(list(tmp_path.iterdir())) == 2
    assert not np.allclose(*kept)


def test_the_same_network_under_another_name_has_the_same_features(tmp_path, features, backbone):
    features.keep("some", lambda: IMAGES[:5])
    copy = tmp_path / "copy.keras"
    copy.write_bytes(Path(backbone).read_bytes())
    KeptFeatures(features.folder, str(copy), 48).keep("some", never)


def test_writing_that_is_broken_off_leaves_nothing_that_is_read(features, monkeypatch):
    whole = np.save

    def broken_off(path, array):
        content = io.BytesIO()
        whole(content, array)
        Path(path).write_bytes(content.getvalue()[:200])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", broken_off)
        with pytest.raises(KeyboardInterrupt):
            features.keep("some", lambda: IMAGES)
    with pytest.raises(FileNotFoundError):
        features.read("some")

    features.keep("some", lambda: IMAGES)
    assert len(features.read("some")) == 70


def test_computing_that_is_broken_off_leaves_nothing_that_is_read(features):
    def broken_off():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features.keep("some", broken_off)
    with pytest.raises(FileNotFoundError):
        features.read("some")


@pytest.fixture
def few_images(tmp_path, monkeypatch):
    """A folder of data, and the features of all its images, of the training and the test part."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for name, value in {"_N_TRAIN": 30, "_N_TEST": 25, "_IN_A_FILE": 20, "_PIXELS": 48}.items():
        monkeypatch.setattr(features_module, name, value)
    (tmp_path / "weights").mkdir()
    backbone = write_backbone(tmp_path / "weights" / "mobilenet_v2_imagenet.keras")
    write_npz(tmp_path / "cifar100.npz")
    network = KeptFeatures(tmp_path / "other", str(backbone), 48)
    network.keep("train", lambda: arrays()["x_train"])
    network.keep("test", lambda: arrays()["x_test"])
    return tmp_path, network.read("train"), network.read("test")


def test_questions_share_the_features_of_the_first_images_and_fresh_ones_follow(few_images):
    data, train, test = few_images
    first, fresh = cifar100_features(data), fresh_cifar100_features(data)
    assert first.train == pytest.approx(train[:30], abs=1e-6)
    assert first.test == pytest.approx(test[:25], abs=1e-6)
    assert fresh.train == pytest.approx(train[30:60], abs=1e-6)
    assert fresh.test == pytest.approx(train[60:85], abs=1e-6)
    assert fresh.test_labels.tolist() == arrays()["y_train"][60:85].tolist()
    # Two files for each of the four parts.
    assert len(list((data / "home" / "structent").iterdir())) == 8


def test_features_of_the_first_images_of_a_part_come_with_their_labels(few_images):
    data, *parts = few_images
    for part, count, expected in zip(("train", "test"), (105, 25), parts, strict=True):
        features, labels = features_of_images(data, part, count)
        assert features == pytest.approx(expected[:count], abs=1e-6)
        assert labels.tolist() == arrays()[f"y_{part}"][:count].tolist()


def test_features_of_more_images_go_on_from_those_that_are_kept(few_images, monkeypatch):
    data, train, _ = few_images
    features_of_images(data, "train", 40)
    kept = data / "home" / "structent"
    assert len(list(kept.iterdir())) == 2
    with monkeypatch.context() as patched:
        patched.setattr(module, "read_backbone", lambda _: never())
        features_of_images.cache_clear()
        assert features_of_images(data, "train", 20)[0] == pytest.approx(train[:20], abs=1e-6)
    features, _ = features_of_images(data, "train", 60)
    assert features == pytest.approx(train[:60], abs=1e-6)
    assert len(list(kept.iterdir())) == 3
