"""Sums whose order is the same on every processor: against that order, written as a slow loop."""

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import binding

from structent._compiled import kernel
from structent.kernels import cpu, sums
from structent.kernels.sums import sum_of, sum_where

LANES, AT_ONCE = 8, 32


@kernel
def summed(x, at, n):
    return sum_of(x, at, n)


@kernel
def summed_where(x, at, n, ids, ids_at, wanted):
    return sum_where(x, at, n, ids, ids_at, wanted)


def in_order(numbers):
    """Add the numbers one after the other in the order that the module promises."""
    zero = numbers.dtype.type(0)
    lanes, rest, place = [zero] * AT_ONCE, zero, 0
    while place + AT_ONCE <= len(numbers):
        for lane in range(AT_ONCE):
            lanes[lane] += numbers[place + lane]
        place += AT_ONCE
    while place + LANES <= len(numbers):
        for lane in range(LANES):
            lanes[lane] += numbers[place + lane]
        place += LANES
    for number in numbers[place:]:
        rest += number
    a, b, c, d = (lanes[first : first + LANES] for first in range(0, AT_ONCE, LANES))
    total = [(a[i] + b[i]) + (c[i] + d[i]) for i in range(LANES)]
    total = [total[i] + total[i + 4] for i in range(4)]
    return ((total[0] + total[2]) + (total[1] + total[3])) + rest


numbers = st.tuples(
    st.integers(0, 200), st.integers(0, 5), st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip


@given(numbers)
def test_a_sum_adds_in_the_promised_order(drawn):
    n, at, dtype, seed = drawn
    x = np.random.default_rng(seed).normal(size=at + n).astype(dtype) * 1000
    found = summed(x, np.uint64(at), np.uint64(n))
    assert found == in_order(x[at:])
    assert type(found) is float or found.dtype == dtype


@given(numbers)
def test_a_sum_over_ids_adds_only_the_wanted_numbers_in_that_order(drawn):
    n, at, dtype, seed = drawn
    rng = np.random.default_rng(seed)
    x = rng.normal(size=at + n).astype(dtype) * 1000
    ids = rng.integers(3, size=n + 2).astype(np.int32)
    found = summed_where(x, np.uint64(at), np.uint64(n), ids, np.uint64(2), 1)
    assert found == in_order(np.where(ids[2:] == 1, x[at:], dtype(0)))


def test_the_digest_that_renews_the_cache_is_that_of_the_file():
    digest = hashlib.sha256(Path(sums.__file__).read_bytes()).hexdigest()[:16]
    assert digest == cpu.DIGEST_OF_SUMS


DIGESTS_OF_MODELS = """
import hashlib
import numpy as np
from structent import StructuredBoostingClassifier, StructuredLogisticRegression
from structent.datasets import load_seattle_weather
X, _, y, months = load_seattle_weather()
proba = StructuredBoostingClassifier(months, random_state=0).fit(X, y).predict_proba(X)
print("trees", hashlib.sha256(proba.tobytes()).hexdigest())
linear = StructuredLogisticRegression(months, encode=True).fit(X, y)
print("linear", hashlib.sha256(linear.coef_.tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of this family")
def test_processors_with_other_vectors_learn_the_same_models(tmp_path):
    features = binding.get_host_cpu_features()
    if not (features.get("avx2") and features.get("fma")):
        pytest.skip("a processor without AVX2 and FMA")
    other = {
        "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+prefer-128-bit",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    found = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS_OF_MODELS],
            env={**os.environ, **processor}, capture_output=True, text=True, check=True,
        ).stdout
        for processor in ({}, other)
    ]  # fmt: skip
    assert found[0].count("\n") == 2
    assert found[0] == found[1]
