"""Numba in real life: read-only installs, caches that cannot be written, forks and threads."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import structent

DRAW = """
    from structent import SpanningTreePartitions
    from structent.structure.catalog import us_states

    sampler = SpanningTreePartitions(us_states(), 7, 0.5)
"""
PRINT_DRAW = DRAW + "    print(sampler.sample(0).partitions[0].block_of.tolist())\n"


def run(code, folder=None, **environment):
    """Run code in a fresh interpreter, on a copy of the package where a folder is given."""
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def installed(tmp_path):
    """A copy of the package, as an install of its own without a cache."""
    folder = tmp_path / "site"
    package = Path(structent.__file__).parent
    shutil.copytree(package, folder / "structent", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def block_cache_folders(package):
    """Make every cache folder impossible; permissions would not stop a superuser."""
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("a file where the cache folder would be")


@pytest.fixture(scope="module")
def expected():
    return run(PRINT_DRAW).stdout


def test_a_read_only_install_uses_the_cache_of_the_user(installed, tmp_path, expected):
    block_cache_folders(installed / "structent")
    result = run(PRINT_DRAW, installed, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (result.stderr, result.stdout) == ("", expected)
    assert list((tmp_path / "cache" / "numba").rglob("*.nbi"))


def test_where_no_cache_can_be_written_the_code_is_compiled_in_memory(
    installed, tmp_path, expected
):
    block_cache_folders(installed / "structent")
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run(PRINT_DRAW, installed, XDG_CACHE_HOME=str(blocked), HOME=str(blocked))
    assert (result.stderr, result.stdout) == ("", expected)


def test_a_cache_that_fails_after_the_import_does_no_harm(installed, expected):
    code = """
        import shutil
        from pathlib import Path
        import structent
    """
    lose_the_cache = """
    for folder in list(Path(structent.__file__).parent.rglob("__pycache__")):
        shutil.rmtree(folder)
        folder.write_text("")
    """
    code = textwrap.dedent(code) + textwrap.dedent(DRAW) + textwrap.dedent(lose_the_cache)
    code += "print(sampler.sample(0).partitions[0].block_of.tolist())"
    result = run(code, installed)
    assert (result.stderr, result.stdout) == ("", expected)


def test_the_second_process_loads_what_the_first_compiled(installed, expected):
    assert run(PRINT_DRAW, installed).stdout == expected
    cached = sorted((installed / "structent").rglob("*.nbc"))
    assert cached
    before = [path.stat().st_mtime_ns for path in cached]
    assert run(PRINT_DRAW, installed).stdout == expected
    assert sorted((installed / "structent").rglob("*.nbc")) == cached
    assert [path.stat().st_mtime_ns for path in cached] == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("drawn_before", [False, True])
def test_forked_workers_draw_the_same(drawn_before):
    code = (
        DRAW
        + f"""
    import multiprocessing

    if {drawn_before}:
        sampler.sample(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        drawn = pool.map(sampler.sample, range(20))
    assert drawn == [sampler.sample(i) for i in range(20)]
    """
    )
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_threads_that_draw_at_once_draw_the_same():
    code = (
        DRAW
        + """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(sampler.sample, range(200)))
    assert drawn == [sampler.sample(i) for i in range(200)]
    """
    )
    result = run(code, NUMBA_DISABLE_CACHING="1")
    assert result.returncode == 0, result.stderr
