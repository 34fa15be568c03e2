"""Made-up images for all tests; what trains networks is tested where Keras and torch are."""

import importlib.util
import sys
from pathlib import Path

import pytest

from structent.experiments.cifar100.images import read_images
from tests.experiments.cifar100.made_up_images import write_backbone, write_npz
from tests.losses.test_keras import OLD_CONVERSION

if any(importlib.util.find_spec(package) is None for package in ("keras", "torch")):
    collect_ignore = [
        f"test_{name}.py"
        for name in (
            *("features", "fine_tuning", "image_trial", "last_layer", "layout", "measures"),
            *("networks", "small_network", "training", "training_loss"),
        )
    ]


def pytest_collection_modifyitems(items):
    """Let Keras convert to NumPy as it does, in the tests of this folder."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings(OLD_CONVERSION))


@pytest.fixture(autouse=True)
def one_thread():
    """So few rows are no work for more threads, which wait for each other on a busy machine."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def images_anew():
    """Read images anew, which a process otherwise reads once."""
    read_images.cache_clear()


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A file of made-up images."""
    return write_npz(tmp_path_factory.mktemp("images") / "cifar100.npz")


@pytest.fixture(scope="session")
def backbone(tmp_path_factory):
    """A file of a tiny network, as the option --backbone takes it."""
    return str(write_backbone(tmp_path_factory.mktemp("backbone") / "tiny.keras"))
