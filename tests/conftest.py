"""What a test may need of the machine, and what happens where that is missing."""

import importlib.util
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a compiled function compiles it: time is no sign of a defect here.
settings.register_profile("structent", deadline=None)
settings.load_profile("structent")

# Tests press Ctrl-C, which shells have ignored by what they start in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROJECT = Path(__file__).parent.parent
SHARED_DATA = Path(os.environ.get("STRUCTENT_DATA", PROJECT.parent / "shared" / "data"))

# Keras takes its backend when it is first imported; its tests on JAX start processes.
os.environ.setdefault("KERAS_BACKEND", "torch")
# Else Keras writes to the home of whoever runs the tests.
os.environ.setdefault("KERAS_HOME", str(Path(tempfile.gettempdir()) / "structent-keras"))

PROGRAMS = {"chromium", "g++"}


def _is_there(name: str) -> bool:
    if name == "shared-data":
        return SHARED_DATA.is_dir()
    if name in PROGRAMS:
        return shutil.which(name) is not None
    return importlib.util.find_spec(name) is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, by name, where what it needs is missing; fail it where that is required."""
    required = os.environ.get("STRUCTENT_REQUIRE", "").split(",")
    for mark in item.iter_markers("requires"):
        (name,) = mark.args
        if not _is_there(name):
            if name in required:
                pytest.fail(f"needs {name}, which STRUCTENT_REQUIRE says must be there")
            pytest.skip(f"needs {name}")


@pytest.fixture(autouse=True)
def ctrl_c_of_pytest() -> None:
    """Give Ctrl-C back to pytest: a command that ran in this process has taken it for good."""
    # Set, not restored: what ran may have been a fixture of a whole file, before this one.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shared_data() -> Path:
    """The folder of the data that is not part of the project."""
    return SHARED_DATA
