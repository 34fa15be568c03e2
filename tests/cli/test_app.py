"""The command line, run as a user runs it."""

import re
import subprocess
import sys
from pathlib import Path

import structent

COMMAND = Path(sys.executable).parent / "structent"


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_it_tells_its_version():
    result = run("--version")
    assert result.stdout == f"structent {structent.__version__}\n"
    assert result.returncode == 0


def test_the_demo_goes_from_the_coarse_entropy_to_that_of_shannon():
    result = run("demo")
    assert result.returncode == 0
    # -0.3 log2 0.3 - 0.7 log2 0.7, and Shannon's entropy of (0.1, 0.2, 0.7).
    entropies = re.findall(r"│ +(\d\.\d{4}) │", result.stdout)
    assert entropies[0] == "0.8813"
    assert entropies[-1] == "1.1568"
    assert "0.333, 0.333, 0.333" in result.stdout


def test_without_a_command_it_shows_what_there_is():
    result = run()
    assert "demo" in result.stdout + result.stderr


def test_a_wrong_command_is_refused_in_a_sentence():
    result = run("dmeo")
    assert result.returncode == 2
    assert "No such command 'dmeo'" in result.stderr
    assert "Traceback" not in result.stderr
