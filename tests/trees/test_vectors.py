"""The vector functions are tested where they are used; here only that edits to files are seen."""

import hashlib
from pathlib import Path

import pytest

from structent.kernels import cpu
from structent.trees import (
    forest,
    growing,
    histogram,
    leaves,
    rounds,
    sketch,
    smoothing,
    splits,
    vectors,
    walking,
)

# Files whose compiled functions call those of another file.
USERS = {
    **{
        (module, "DIGEST_OF_VECTORS"): vectors
        for module in (histogram, leaves, sketch, splits, walking)
    },
    (forest, "DIGEST_OF_WALKING"): walking,
    (growing, "DIGEST_OF_HISTOGRAM"): histogram,
    (growing, "DIGEST_OF_SPLITS"): splits,
    **{
        (rounds, f"DIGEST_OF_{used.__name__.rpartition('.')[2].upper()}"): used
        for used in (cpu, forest, growing, leaves, sketch, smoothing, walking)
    },
}


@pytest.mark.parametrize(
    ("user", "used"), USERS.items(), ids=[f"{m.__name__}-{name}" for m, name in USERS]
)
def test_the_digest_that_renews_the_cache_is_that_of_the_file(user, used):
    digest = hashlib.sha256(Path(used.__file__).read_bytes()).hexdigest()[:16]
    assert digest == getattr(*user)
