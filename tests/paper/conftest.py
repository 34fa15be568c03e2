"""The command, made-up weather and images; networks are tested where Keras and torch are."""

import importlib.util
import sys

import pytest

from paper.__main__ import main
from paper.images import read_images
from tests.paper.made_up_images import write_backbone, write_npz
from tests.paper.made_up_weather import write_weather

if any(importlib.util.find_spec(package) is None for package in ("keras", "torch")):
    collect_ignore = [
        "beyond/test_layers.py",
        "test_features.py",
        "test_fine_tuning.py",
        "test_last_layer.py",
        "test_networks.py",
        "test_resnet50.py",
        "test_small_network.py",
        "test_training.py",
    ]


@pytest.fixture(autouse=True)
def one_thread():
    """So few rows are no work for more threads, which wait for each other on a busy machine."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def images_again():
    """Read images again, which a process otherwise reads once."""
    read_images.cache_clear()


@pytest.fixture
def paper_command(monkeypatch, capsys):
    """Run the command in this process: exit code, stdout and stderr."""
    # So few rows are no work for more processors, which wait for each other on a busy machine.
    monkeypatch.setattr("paper.experiment.available_threads", lambda: 1)

    def run_here(*arguments):
        monkeypatch.setattr(sys, "argv", ["paper", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run_here


@pytest.fixture(scope="session")
def weather(tmp_path_factory):
    """A folder of made-up weather."""
    return write_weather(tmp_path_factory.mktemp("weather"))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A file of made-up images."""
    return write_npz(tmp_path_factory.mktemp("images") / "cifar100.npz")


@pytest.fixture(scope="session")
def backbone(tmp_path_factory):
    """A file of a tiny network, as the option --backbone takes it."""
    return str(write_backbone(tmp_path_factory.mktemp("backbone") / "tiny.keras"))
