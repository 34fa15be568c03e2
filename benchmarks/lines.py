"""Measurements as lines of JSON, each with its day, machine, versions and commit."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "scikit-learn", "xgboost", "lightgbm", "catboost", "chimeraboost", "numpy", "numba", "pandas",
)  # fmt: skip

Line = dict[str, Any]


def kept(path: Path) -> list[Line]:
    """Return the lines that were kept so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(path: Path, measured: Line) -> Line:
    """Append a line to the file, print it, and return it."""
    load = round(os.getloadavg()[0], 1)  # shows whether the machine was busy
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    line = {**measured, "date": date, "load": load, "machine": machine(), **_software()}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(measured, flush=True)
    return line


def when_and_where(lines: list[Line]) -> str:
    """Return the days, machines and versions of measurements, as a sentence for RESULTS.md."""
    days = sorted({line["date"] for line in lines})
    parts = [" to ".join(days if len(days) < 2 else [days[0], days[-1]])]
    parts += sorted({line["machine"] for line in lines})
    parts += ["Python " + ", ".join(sorted({line["python"] for line in lines}))]
    commits = {line["commit"] for line in lines if "commit" in line}
    parts += [f"commit {min(commits)}" if len(commits) == 1 else f"{len(commits)} commits"]
    for package in PACKAGES:
        found = {line["versions"][package] for line in lines if package in line["versions"]}
        parts += [f"{package} {' and '.join(sorted(found))}"] if found else []
    return ", ".join(parts)


def table_row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def table_head(*names: str) -> list[str]:
    """Return the two rows that a Markdown table begins with."""
    return [table_row(*names), "|---" * len(names) + "|"]


def machine() -> str:
    """Return the processor of this machine and its number of cores."""
    cpu = platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        names = [line for line in cpu_info.read_text().splitlines() if "model name" in line]
        cpu = names[0].split(":")[1].strip() if names else cpu
    return f"{cpu}, {os.cpu_count()} cores"


@cache
def _software() -> Line:
    return {
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def commit() -> str:
    """Return the last commit that changed the library, marked if the library differs from it."""
    here = partial(
        subprocess.run,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    name = here(["git", "log", "-1", "--format=%h", "--", "src"]).stdout.strip()
    differs = here(["git", "diff", "--quiet", "HEAD", "--", "src"]).returncode
    return (name or "unknown") + ("-dirty" if differs else "")
