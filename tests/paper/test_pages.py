"""Pages of results, written from runs that are made up."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from paper import counties_page, months_page
from paper.counties import Counties
from paper.experiment import Finished
from paper.months import Months
from paper.pages import Page, about, write_page

FIGURES = {"months-log-loss.svg", "months-differences.svg"}


def finished(experiment, *, n_trials=2):
    """Return runs with losses that differ by size, method and trial."""
    runs = []
    for place, settings in enumerate(experiment.runs()):
        loss = 2.2 - settings["size"] / 1e5 + settings["trial"] / 10 + place % 7 / 1000
        result = {
            "depth": [2, 3], "validation": [loss, loss + 0.1], "test": [loss, loss + 0.1],
            "trees": [20, 10],
        }  # fmt: skip
        if settings["trial"] < n_trials:
            runs.append(Finished(settings, result, 90.0, "2026-01-02", "a machine"))
    return runs


MONTHS = finished(Months(Path(), "paper", (500, 1000)))


def refuse(what):
    raise AssertionError(f"{what} is no JSON")


# What was run


def test_nothing_run_is_told_with_the_command():
    told = about([], 625, "python -m paper months --data 'my data'")
    assert told == ["Command: `python -m paper months --data 'my data'`. Nothing has been run yet."]


def test_how_much_was_run_is_told_with_day_machine_and_schedule():
    told = about(MONTHS, 625, "python -m paper months")
    # 100 runs of 90 seconds are two and a half hours.
    assert told[0] == (
        "Command: `python -m paper months`. 100 of 625 runs are finished; they took 2.5 hours "
        "in all, on 2026-01-02."
    )
    assert told[1] == "Machine: a machine."
    assert len(told) == 3
    assert told[2] == (
        'Training set sizes 500, 1,000, preset "paper": max trees 5000, learning rate 0.02, depths '
        "[2, 3, 4], penalty 1.0, row share 0.632, patience 30, n validation 5000, n test 25000."
    )


def test_all_machines_and_the_first_and_last_day_are_told():
    first, second, third = MONTHS[:3]
    runs = [
        Finished(first.settings, first.result, 1.0, "2026-01-05", "a machine"),
        Finished(second.settings, second.result, 1.0, "2025-12-31", "another"),
        Finished(third.settings, third.result, 1.0, "2026-01-01", "a machine"),
    ]
    told = about(runs, 3, "a command")
    assert told[0].endswith("between 2025-12-31 and 2026-01-05.")
    assert told[1:3] == ["Machine: a machine.", "Machine: another."]


def test_sizes_with_schedules_of_their_own_are_told_apart():
    runs = []
    for size, epochs in ((2500, 60), (1000, 80), (5000, 60)):
        schedule = {"epochs": epochs}
        settings = {"size": size, "preset": "quick", "schedule": schedule}
        runs.append(Finished(settings, {}, 1.0, "2026-01-02", "a machine"))
    assert about(runs, 3, "a command")[2:] == [
        'Training set sizes 2,500, 5,000, preset "quick": epochs 60.',
        'Training set sizes 1,000, preset "quick": epochs 80.',
    ]


def test_runs_without_a_schedule_are_told_without_one():
    runs = [Finished({"size": 300}, {}, 1.0, "2026-01-02", "a machine")]
    assert about(runs, 1, "a command")[1:] == ["Machine: a machine."]


# The page


def test_the_page_its_numbers_and_its_figures_are_written(tmp_path):
    folder = tmp_path / "made" / "when needed"
    page = months_page.page(MONTHS, ["How it was run."])
    write_page(page, folder)
    assert {path.name for path in folder.iterdir()} == {"months.md", "months.json", *FIGURES}
    written = (folder / "months.md").read_text(encoding="utf-8")
    assert written == page.text.rstrip() + "\n"
    assert "\n\nHow it was run.\n\n" in written
    for figure in FIGURES:
        assert f"]({figure})" in written
        assert ET.fromstring((folder / figure).read_text()).tag.endswith("svg")  # noqa: S314  ours
    content = (folder / "months.json").read_text()
    assert json.loads(content, parse_constant=refuse) == page.numbers
    # The mean of 2.195 and 2.295, and of what the places of the standard runs add, 0 and 4 / 1000.
    assert page.numbers["chosen on validation"]["500"]["standard"]["mean"] == pytest.approx(2.247)


def test_writing_again_writes_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        write_page(months_page.page(MONTHS, []), tmp_path / folder)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_one_trial_gives_numbers_that_json_has(tmp_path):
    one_trial = finished(Months(Path(), "smoke"), n_trials=1)
    write_page(months_page.page(one_trial, []), tmp_path)
    numbers = json.loads((tmp_path / "months.json").read_text(), parse_constant=refuse)
    # The standard error of one trial is not known.
    assert numbers["chosen on validation"]["200"]["standard"]["error"] is None


@pytest.mark.parametrize(("name", "module"), [("months", months_page), ("counties", counties_page)])
def test_where_nothing_was_run_there_is_a_page_without_figures(tmp_path, name, module):
    write_page(module.page([], about([], 10, "a command")), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.md", f"{name}.json"}
    assert "Nothing has been run yet." in (tmp_path / f"{name}.md").read_text()
    json.loads((tmp_path / f"{name}.json").read_text(), parse_constant=refuse)


def test_counties_have_a_page_of_their_own(tmp_path):
    write_page(counties_page.page(finished(Counties(Path(), "paper", (500,))), []), tmp_path)
    assert (tmp_path / "counties.md").read_text().startswith("# Counties\n")
    assert list(tmp_path.glob("counties*.svg"))


def test_a_page_that_fails_leaves_the_old_one_as_it_was(tmp_path):
    write_page(months_page.page(MONTHS, ["old"]), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = months_page.page(MONTHS, ["new"])._replace(numbers={"loss": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_page(broken, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_page_without_numbers_has_no_file_of_them(tmp_path):
    write_page(Page("answers", "# Answers\n"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"answers.md"}
