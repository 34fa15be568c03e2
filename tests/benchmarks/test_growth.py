"""Growth curves: what is measured, what is left to measure, and what is drawn of it."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

from benchmarks import growth
from benchmarks.growth import BY, WHAT, Size
from tests.conftest import PROJECT


def line(what, size, by, seconds):
    sizes = {"rows": size.rows, "classes": size.classes, "partitions": size.partitions}
    about = {"date": "2026-01-02", "machine": "a machine", "python": "3.11", "versions": {}}
    return {"what": what, "by": by, **sizes, "seconds": seconds, "repeats": 5, **about}


# Time in proportion to rows, to the square of classes, whatever the partitions.
LINES = [
    line(what, size, by, 1e-6 * size.rows * size.classes**2)
    for what, measured in WHAT.items()
    for by in BY
    for size in measured.sizes(by)
]


def test_one_size_grows_and_the_others_stay():
    for measured in WHAT.values():
        for by in BY:
            sizes = measured.sizes(by)
            assert len({getattr(size, by) for size in sizes}) == len(sizes) == 4
            others = [name for name in BY if name != by]
            for name in others:
                assert {getattr(size, name) for size in sizes} == {getattr(measured.base, name)}


def test_every_point_has_rows_for_all_classes_and_a_structure_of_its_partitions():
    for what, measured in WHAT.items():
        for by in BY:
            for size in measured.sizes(by):
                assert what == "loss" or size.rows >= size.classes
                assert size.classes % size.partitions == 0
    assert Size(100, 12, 4).structure.n_partitions == 4 + 1  # the rotations and the singletons


def test_only_points_without_a_line_are_left():
    assert list(growth.missing(LINES)) == []
    (left,) = growth.missing(LINES[:-1])
    assert left == ("compare", WHAT["compare"].sizes("partitions")[-1], "partitions")
    assert len(list(growth.missing([]))) == len(LINES) == 4 * 3 * 4


def test_a_point_is_the_median_of_its_runs(monkeypatch):
    ticks = iter([0, 5, 10, 11, 20, 22])  # runs of 5, 1 and 2 seconds
    monkeypatch.setattr(growth.time, "perf_counter", lambda: next(ticks))
    found = growth.measure("loss", Size(20, 12, 3), "rows", 3)
    assert found["seconds"] == 2
    assert (found["rows"], found["classes"], found["partitions"]) == (20, 12, 3)


@pytest.mark.parametrize("what", ["linear model", "engine"])
def test_what_is_timed_runs_on_few_rows(what):
    assert growth.measure(what, Size(60, 12, 3), "rows", 1)["seconds"] > 0


def test_the_figure_has_a_panel_for_each_and_the_exponent_of_growth():
    drawn = growth.figure(LINES)
    assert [ax.get_title() for ax in drawn.axes[:3]] == [
        "loss, exponent 1.00", "loss, exponent 2.00", "loss, exponent 0.00"
    ]  # fmt: skip
    assert len(drawn.axes) == 12
    x, y = drawn.axes[0].lines[0].get_data()
    assert list(x) == list(WHAT["loss"].rows)
    assert list(y) == pytest.approx([1e-6 * rows * 120**2 for rows in WHAT["loss"].rows])


def test_of_two_lines_of_a_point_the_later_one_counts():
    again = {**LINES[0], "seconds": 7.0}
    assert growth.figure([*LINES, again]).axes[0].lines[0].get_ydata()[0] == 7.0


def test_the_page_has_every_point_and_the_exponents(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "KEPT", tmp_path / "growth.jsonl")
    assert growth.page() == ["Nothing was measured yet."]
    growth.KEPT.write_text("".join(json.dumps(each) + "\n" for each in LINES))
    rows = [row for row in growth.page() if row.startswith("| loss |")]
    assert (
        rows[1] == "| loss | classes | 12: 0.14, 120: 14, 1,200: 1.4e+03, 12,000: 1.4e+05 | 2.00 |"
    )
    assert len(growth.page()) == 2 + 2 + 4 * 3


def test_the_figure_is_the_same_file_again(tmp_path):
    for name in ("first.svg", "second.svg"):
        growth.draw(LINES, tmp_path / name)
    first, second = (tmp_path / name for name in ("first.svg", "second.svg"))
    assert first.read_bytes() == second.read_bytes()


def test_a_figure_of_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "KEPT", tmp_path / "none.jsonl")
    monkeypatch.setattr("sys.argv", ["growth", "--figure"])
    with pytest.raises(SystemExit, match="nothing was measured yet"):
        growth.main()


def test_the_command_has_help():
    command = [sys.executable, "-m", "benchmarks.growth", "--help"]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert "--figure" in found.stdout
