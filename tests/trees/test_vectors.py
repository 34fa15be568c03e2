"""The vector functions are tested where they are used; here only that edits to them are seen."""

import hashlib
from pathlib import Path

import pytest

from structent.trees import boosting, forest, histogram, sketch, splits, vectors

USERS = [boosting, forest, histogram, sketch, splits]


@pytest.mark.parametrize("module", USERS, ids=lambda module: module.__name__)
def test_the_digest_that_renews_the_cache_is_that_of_the_file(module):
    digest = hashlib.sha256(Path(vectors.__file__).read_bytes()).hexdigest()[:16]
    assert digest == module.DIGEST_OF_VECTORS
