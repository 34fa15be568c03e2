"""Run the benchmarks: ``python -m benchmarks`` prints the tables, ``--record`` keeps them.

One thread each; alternatives take turns in one process; medians.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # read when NumPy and Numba are first imported

os.environ["KERAS_BACKEND"] = "torch"

import platform  # noqa: E402
import sys  # noqa: E402
from datetime import UTC, datetime  # noqa: E402
from importlib.metadata import version  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks import (  # noqa: E402
    boosting,
    jax_losses,
    linear,
    losses,
    quality,
    structures,
)

VERSIONS = (
    "numpy", "scipy", "numba", "torch", "keras", "jax", "scikit-learn", "xgboost", "lightgbm",
)  # fmt: skip
RESULTS = Path(__file__).parent / "RESULTS.md"


def report() -> str:
    """Return all tables as Markdown."""
    lines = [
        "# Benchmark results",
        "",
        "Written by `make bench ARGS=--record`. The machine is shared, so absolute times vary.",
        "Ratios come from alternatives that take turns in one process, on one thread.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {_machine()}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in VERSIONS),
    ]
    for module in (structures, losses, jax_losses, boosting, linear):
        lines += ["", f"## {module.TITLE}", "", "| case | structent | baseline | ratio |"]
        lines += ["|---|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in module.rows()]
    lines += ["", f"## {quality.TITLE}", *quality.tables()]
    return "\n".join(lines) + "\n"


def _machine() -> str:
    cpu = platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        names = [line for line in cpu_info.read_text().splitlines() if "model name" in line]
        cpu = names[0].split(":")[1].strip() if names else cpu
    return f"{cpu}, {os.cpu_count()} cores"


if __name__ == "__main__":
    text = report()
    print(text)
    if "--record" in sys.argv:
        RESULTS.write_text(text)
