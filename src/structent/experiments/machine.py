"""What the machine is, in a line, to be kept with every result."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "xgboost", "keras", "torch")


def machine(n_threads: int) -> str:
    """Return the processor, how many of it were used, and the versions that results hang on."""
    parts = [
        f"{_processor()}, processors used: {n_threads}",
        f"Python {platform.python_version()} on {platform.system()}",
    ]
    for package in _PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # an experiment that needs it would have said so
    return ", ".join(parts)


def _processor() -> str:
    # platform.processor() knows only the architecture on Linux.
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
