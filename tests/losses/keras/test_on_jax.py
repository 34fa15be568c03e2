"""The tests of the Keras adapters once more, on JAX: Keras has one backend per process."""

import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

HERE = "tests/losses/keras"
FILES = (
    f"{HERE}/test_agreement.py", f"{HERE}/test_coarse.py", f"{HERE}/test_scores.py",
    f"{HERE}/test_training.py", "src/structent/losses/keras",
    "tests/layers/test_keras.py", "src/structent/layers/keras.py",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.requires("keras")
@pytest.mark.requires("jax")
@pytest.mark.parametrize("file", FILES)
def test_what_holds_on_torch_holds_on_jax(file):
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "XLA_FLAGS": "--xla_backend_optimization_level=0",  # to compile takes longer than to run
    }
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file],
        cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2_000:]
