"""``structent test``, run as a user runs it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

COMMAND = Path(sys.executable).parent / "structent"
QUICK = ["--folds", "3", "--jobs", "1", "--model", "linear"]


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """Six plants in three genera; a number that tells their genus."""
    rng = np.random.default_rng(0)
    genus_of = dict(zip("abcdef", ["x", "x", "y", "y", "z", "z"], strict=True))
    species = rng.choice(list("abcdef"), size=90)
    size = np.array([2 * "xyz".index(genus_of[name]) for name in species]) + rng.normal(size=90)
    path = tmp_path_factory.mktemp("plants") / "plants.csv"
    genus = [genus_of[name] for name in species]
    pl.DataFrame({"species": species, "genus": genus, "size": size}).write_csv(path)
    return path


def about(plants):
    return ["test", plants, "--target", "species", "--structure", "hierarchy:columns=genus"]


def test_the_answer_comes_last_and_the_report_and_the_losses_are_written(
    structent_command, plants, tmp_path
):
    report, out = tmp_path / "test.html", tmp_path / "losses.jsonl"
    code, text, err = structent_command(
        *about(plants), "--permutations", "4", "--out", out, "--report", report, *QUICK
    )
    assert code == 0, err
    shown = " ".join(text.split())
    for told in (
        "no structure",
        "scrambled copies, mean",
        "genus: x, y, z",
        "too small for the level",
    ):
        assert told in shown
    assert shown.endswith("with 4 scrambled copies p can be no lower than 0.2.")
    assert "<html" in report.read_text()
    assert len(out.read_text().splitlines()) == 2 + 4  # leaving out the genus is no structure


def test_folds_are_told_from_repeats(structent_command, plants, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    quick = ["--permutations", "1", "--repeats", "2", "--quiet", *QUICK]
    code, text, err = structent_command(*about(plants), *quick)
    assert code == 0, err
    assert "; 3 folds x 2 repeats, 1 scrambled copy\n" in text


def test_as_json_it_is_for_machines_and_goes_on_from_the_file(structent_command, plants, tmp_path):
    out = tmp_path / "losses.jsonl"
    arguments = [*about(plants), "--out", out, "--level", "0.5", "--json", *QUICK]
    code, text, _ = structent_command(*arguments, "--permutations", "2")
    assert code == 0
    before = json.loads(text)
    code, text, _ = structent_command(*arguments, "--permutations", "5")
    found = json.loads(text)
    assert len(out.read_text().splitlines()) == 2 + 5
    assert found["orbit_size"] == 15
    assert found["loss"] == before["loss"]
    assert found["p_value"] == (1 + found["as_good"]) / 6
    assert found["null_losses"][:2] == before["null_losses"]
    assert found["partitions"][0]["mean"] == pytest.approx(found["against_none"]["mean"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--permutations", "0"], "--permutations must be between 1"),
        (["--level", "2"], "level must be a number between 0 and 1, got 2.0"),
        (["--folds", "1"], "--folds must be between 3"),
        (["--structure", "trivial"], "must be a scrambled copy that differs"),
        (["--out", "nowhere/losses.jsonl"], "there is no folder nowhere"),
        (["--report", "nowhere/report.html"], "there is no folder nowhere"),
        (["--target", "spezies"], "spezies"),
    ],
)
def test_bad_input_is_one_sentence(structent_command, plants, changed, message):
    code, _, err = structent_command(*about(plants), *changed, "--quiet")
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_ctrl_c_keeps_what_is_finished(plants, tmp_path):
    out = tmp_path / "losses.jsonl"
    arguments = [*about(plants), "--out", out, "--permutations", "14", "--folds", "6"]
    process = subprocess.Popen(
        [COMMAND, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for _ in range(1200):
        if out.exists() and len(out.read_text().splitlines()) >= 3:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    lines = out.read_text().splitlines()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert 3 <= len(lines) < 16
    assert all(len(json.loads(line)["losses"]) == 6 for line in lines)
