"""The Keras adapter, on each backend in a process of its own: Keras has one backend per process."""

import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

PROGRAMS = [
    *("tests/losses/keras_programs/agreement.py", "tests/losses/keras_programs/training.py"),
    *("tests/losses/keras_programs/scores.py", "tests/losses/keras_programs/coarse.py"),
    "src/structent/losses/keras",
]
# Keras's own conversions to NumPy, which is newer than they are.
OLD_CONVERSION = "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"


@pytest.mark.requires("keras")
@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.requires(name)) for name in ("torch", "jax")]
)
def test_every_claim_of_the_programs_holds_on_the_backend(backend, tmp_path):
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "KERAS_HOME": str(tmp_path),  # else Keras writes to the home of whoever runs the tests
        "XLA_FLAGS": "--xla_backend_optimization_level=0",  # to compile takes longer than to run
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", OLD_CONVERSION]
    result = subprocess.run(
        [*command, *PROGRAMS],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2_000:]
