"""The main job on real tables, on a small one that is made up; log losses by a loop of its own."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from paper import log_losses
from paper.beyond import Asked, tables
from paper.beyond.tables import Tables
from paper.experiment import Finished
from tests.paper.made_up_priors import keep

RNG = np.random.default_rng(0)
PLACE = np.arange(240) % 4
PLANTS = pl.DataFrame(
    {
        "size": PLACE + RNG.normal(size=240),
        "height": RNG.normal(size=240),
        "kind": ["SMLX"[place] for place in PLACE],
        "plot": [f"p{number // 8}" for number in range(240)],
    }
)
ASKED = (
    "--target", "kind", "--structure", "ordinal:order=S|M|L|X", "--model", "linear",
    "--folds", "3", "--repeats", "1",
)  # fmt: skip


@pytest.fixture
def one_table(monkeypatch):
    made_up = tables._Table(lambda _data, _folder: PLANTS, lambda _: {}, ASKED, group="plot")
    monkeypatch.setattr(tables, "_TABLES", {"months": made_up})
    monkeypatch.setattr(tables, "_ANSWERED", ("months",))
    monkeypatch.setattr(tables, "_N_DRAWS", 2)


@pytest.mark.usefixtures("one_table")
def test_each_run_says_what_the_commands_said(tmp_path):
    experiment = Tables(Path("folder"))
    results = [experiment.run(settings, 1) for settings in experiment.runs()]
    compared, *answered = results
    assert compared["rows"] == 240
    assert compared["finding"] in ("use it", "do not use it", "undecided")
    assert compared["off"] < 1e-12
    assert 0 < compared["none"] < math.log(4)
    assert [each["rows"] for each in answered] == [80, 80]
    covered = [each["answers"]["coverage"] for each in answered]
    assert min(covered) >= 0.75
    assert covered[0] != covered[1]  # other rows were kept away
    runs = [
        Finished(settings, result, 5.0, "2026-01-02", "a machine")
        for settings, result in zip(experiment.runs(), results, strict=True)
    ]
    keep(runs, tmp_path / "tables.jsonl")
    page = tables.page(Asked(Path("folder"), tmp_path, "python -m paper tables --data folder"))
    assert compared["sentence"] in page.text
    assert f"| {50 * sum(covered):.1f} ± " in page.text


def test_a_wrong_gain_is_found(tmp_path):
    tested = "split,label,no structure: a,no structure: b,the structure: a,the structure: b\n"
    tested += "0,a,0.5,0.5,0.25,0.75\n0,b,0.5,0.5,0.25,0.75\n1,a,0.5,0.5,0.5,0.5\n"
    (tmp_path / "tested.csv").write_text(tested)
    gain = -(math.log(0.25) + math.log(0.75)) / 2 + math.log(0.5)
    for wrong in (0.0, 0.01):
        content = {"against_none": {"per_split": [gain + wrong, 0.0]}}
        (tmp_path / "found.json").write_text(json.dumps(content))
        off = log_losses.largest_difference(
            str(tmp_path / "tested.csv"), str(tmp_path / "found.json")
        )
        assert off == pytest.approx(wrong, abs=1e-12)
