import subprocess
import sys

import pytest

MAPPED_AGAIN = """
import resource
import sys
import numpy as np
from structent.experiments.memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
np.ones(4_000_000)  # what is kept from here on
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(4_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_asked_for(how):
    found = subprocess.run(
        [sys.executable, "-c", MAPPED_AGAIN, how], capture_output=True, text=True, check=True
    )
    return int(found.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc alone")
def test_memory_that_is_given_back_is_not_asked_for_again():
    assert pages_asked_for("kept") < pages_asked_for("as it is") / 10
