"""``python -m paper`` on made-up weather: what it prints and writes, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO

import pytest
from rich.console import Console

from paper.beyond.prior import Prior
from paper.beyond.significance import Significance
from paper.counties import Counties
from paper.experiment import Finished, Kept
from paper.months import Months
from structent._threads import available_threads
from structent.cli.output import Output
from tests.conftest import PROJECT
from tests.paper.made_up_priors import prior_result
from tests.paper.made_up_weather import TABLE, weather_table, write_weather

SMOKE = ["--preset", "smoke"]
PAGE = {"months.md", "months.json", "months-log-loss.svg", "months-differences.svg"}


def numbers(kept):
    """Return method and trial of every line of a results file."""
    settings = [json.loads(line)["settings"] for line in kept.read_text().splitlines()]
    return [(one["method"], one["trial"]) for one in settings]


def files(folder):
    return {path.name for path in folder.iterdir()}


# What it does


def test_it_runs_months_prints_the_table_and_writes_the_page(paper_command, weather, tmp_path):
    out = tmp_path / "new" / "results"
    about = ["months", *SMOKE, "--data", weather, "--out", out]
    code, text, err = paper_command(*about)
    assert code == 0, err
    assert files(out) == PAGE | {"months.jsonl"}
    assert len(set(numbers(out / "months.jsonl"))) == len(numbers(out / "months.jsonl")) == 10
    page = (out / "months.md").read_text()
    assert f"Command: `python -m paper months --preset smoke --data {weather}`" in page
    assert "10 of 10 runs are finished" in page
    assert "![" in page
    assert "![" not in text  # a terminal shows no figures
    found = json.loads((out / "months.json").read_text())["chosen on validation"]["200"]
    for loss in (found["standard"]["mean"], found["fixed"]["loss"]["mean"]):
        assert f"{loss:.4f}" in text
        assert f"{loss:.4f}" in page
    assert "2.2196" in text  # the paper's, of 500 rows
    assert "The page: " in err

    before = (out / "months.jsonl").read_bytes(), (out / "months-log-loss.svg").read_bytes()
    assert paper_command(*about)[:2] == (0, text)
    assert before == (
        (out / "months.jsonl").read_bytes(),
        (out / "months-log-loss.svg").read_bytes(),
    )


def test_counties_as_json_are_json_and_nothing_else(paper_command, weather, tmp_path):
    code, text, err = paper_command(
        "counties", *SMOKE, "--data", weather, "--out", tmp_path, "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(text) == json.loads((tmp_path / "counties.json").read_text())
    assert len(numbers(tmp_path / "counties.jsonl")) == 2 * 16  # two engines


@pytest.mark.parametrize("problem", ["months", "counties"])
def test_a_report_before_any_run_says_so(paper_command, weather, tmp_path, problem):
    code, text, err = paper_command(
        problem, *SMOKE, "--data", weather, "--out", tmp_path, "--report-only"
    )
    assert code == 0, err
    assert "Nothing has been run yet." in " ".join(text.split())
    assert files(tmp_path) == {f"{problem}.md", f"{problem}.json"}


def test_a_report_has_the_finished_runs_of_its_preset_alone(paper_command, weather, tmp_path):
    result = {"depth": [2], "validation": [2.0], "test": [2.0], "trees": [5]}
    for settings in Months(weather, "smoke").runs()[:7]:
        done = Finished(settings, result, 1.0, "2026-01-02", "a machine")
        Kept(tmp_path / "months.jsonl").add(done)
    about = [
        "months",
        "--data",
        weather,
        "--out",
        tmp_path,
        "--report-only",
        "--quiet",
    ]
    for preset, told in (("smoke", "7 of 10 runs"), ("paper", "Nothing has been run yet.")):
        code, text, err = paper_command(*about, "--preset", preset)
        assert (code, err) == (0, "")
        assert told in " ".join(text.split())


def test_a_page_keeps_the_sizes_that_are_not_run_this_time(paper_command, weather, tmp_path):
    result = {"depth": [2], "validation": [2.0], "test": [2.0], "trees": [5]}
    whole = Counties(weather, "paper").runs()
    for settings in whole:
        if settings["size"] in (500, 1000):
            done = Finished(settings, result, 1.0, "2026-01-02", "a machine")
            Kept(tmp_path / "counties.jsonl").add(done)
    about = ["counties", "--preset", "paper", "--data", weather, "--out", tmp_path]
    code, _, err = paper_command(
        *about, "--engine", "xgboost", "--sizes", "500"
    )  # all of that size are finished
    assert code == 0, err
    page = (tmp_path / "counties.md").read_text()
    assert "80 of 480 runs are finished" in page
    assert "| 1,000 | XGBoost | 2.0000" in page
    assert f"Command: `python -m paper counties --preset paper --data {weather}`." in page


def test_the_time_left_is_told_though_runs_are_minutes_apart(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    now, shown = [0.0], StringIO()
    output = Output(as_json=False, quiet=False)
    output.messages = Console(
        file=shown, force_terminal=True, width=80, get_time=lambda: now[0], legacy_windows=False
    )
    with output.progress() as on_progress:
        on_progress("months", 0, 10)
        for done in range(1, 5):
            now[0] += 600
            on_progress("months", done, 10)
    # Six runs of ten minutes are left.
    assert "1:00:00" in shown.getvalue()


# Questions beyond the paper


RECORDED = PROJECT / "docs" / "results"


@pytest.fixture
def one_run_is_missing(tmp_path, monkeypatch):
    """The recorded runs of the test of structures without the last, which is then not computed."""
    lines = (RECORDED / "significance.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "significance.jsonl").write_text("".join(lines[:-1]))
    last = json.loads(lines[-1])
    done = []

    def run(_, settings, n_threads):
        done.append((settings, n_threads))
        return last["result"]

    monkeypatch.setattr(Significance, "run", run)
    return last["settings"], done


def test_a_question_goes_on_from_its_finished_runs(paper_command, tmp_path, one_run_is_missing):
    missing, done = one_run_is_missing
    code, text, err = paper_command("significance", "--data", "folder", "--out", tmp_path)
    assert code == 0, err
    assert done == [(missing, 1)]
    assert len((tmp_path / "significance.jsonl").read_text().splitlines()) == 420
    assert "With early stopping P(p ≤ a) is below" in " ".join(text.split())
    page = (tmp_path / "significance.md").read_text()
    assert "Command: `python -m paper significance --data folder`. 420 runs took" in page


@pytest.mark.usefixtures("one_run_is_missing")
def test_runs_of_a_question_are_its_numbers(paper_command, tmp_path):
    asked = ["significance", "--data", "folder", "--out", tmp_path, "--json"]
    code, _, err = paper_command(*asked, "--report-only")
    assert code == 2
    assert "the page of significance needs all its runs (left: 1); leave out" in err
    code, text, err = paper_command(*asked)
    assert (code, err) == (0, "")
    lines = (tmp_path / "significance.jsonl").read_text().splitlines()
    assert json.loads(text)["runs"] == [json.loads(line) for line in lines]
    assert files(tmp_path) == {"significance.jsonl", "significance.md"}


def test_a_page_waits_for_the_problem_that_is_left_out(paper_command, tmp_path):
    for name in ("coarse_labels", "coarse_labels_cause"):
        lines = (RECORDED / f"{name}.jsonl").read_text().splitlines(keepends=True)
        of_months = [line for line in lines if '"problem": "months"' in line]
        (tmp_path / f"{name}.jsonl").write_text("".join(of_months))
    asked = ["coarse_labels", "--problem", "months", "--data", "folder", "--out", tmp_path]
    code, out, err = paper_command(*asked)  # all of that problem are finished
    assert (code, out) == (0, "")
    assert "The page of coarse_labels needs all its runs (left: 35)." in " ".join(err.split())
    assert files(tmp_path) == {"coarse_labels.jsonl", "coarse_labels_cause.jsonl"}


def test_linear_models_and_trees_are_run_apart_and_the_page_waits_for_both(
    paper_command, tmp_path, monkeypatch
):
    done = []

    def run(_, settings, __):
        done.append(settings["model"])
        return prior_result(settings)

    monkeypatch.setattr(Prior, "run", run)
    monkeypatch.setattr(Prior, "sources", lambda *_: {})
    asked = ["prior", "--data", "folder", "--out", tmp_path, "--problem"]
    code, out, err = paper_command(*asked, "linear")
    assert (code, out) == (0, "")
    assert done == ["linear"] * 75
    assert "The page of prior needs all its runs (left: 80)." in " ".join(err.split())
    assert files(tmp_path) == {"prior.jsonl"}

    code, _, err = paper_command(*asked, "trees")
    assert code == 0, err
    assert done == ["linear"] * 75 + ["trees"] * 80
    assert files(tmp_path) == {"prior.jsonl", "prior.md", "prior.svg"}
    # The page has all runs, and the command that gives them.
    page = (tmp_path / "prior.md").read_text()
    assert "Command: `python -m paper prior --data folder`. 155 of 155 runs are finished" in page


def test_the_help_has_no_type_beside_flags(paper_command):
    code, out, _ = paper_command("--help")
    assert code == 0
    assert "--report-only" in out
    assert "<path>" in out
    assert "<bool>" not in out


def test_nothing_heavy_is_loaded_before_a_question_is_asked():
    loaded = "import sys, paper.__main__; print({'keras', 'torch', 'matplotlib'} & {*sys.modules})"
    found = subprocess.run(
        [sys.executable, "-c", loaded], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert found.stdout == "set()\n"


# What users do wrong


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["days"], "the question must be one of months, counties, cifar100, answers,"),
        (["months", "--preset", "tiny"], "--preset must be paper, quick, smoke, got 'tiny'"),
        (["months", *SMOKE, "--sizes", "many"], "--sizes must be whole numbers"),
        (["months", *SMOKE, "--sizes", ","], "--sizes must be whole numbers"),
        (["months", *SMOKE, "--sizes", "500"], "--sizes must be among 200, got 500"),
        (["months", "--sizes", "500,600"], "--sizes must be among 500, 1000"),
        (["months", *SMOKE, "--jobs", "0"], "--jobs must be between 1 and the"),
        (["months", *SMOKE, "--jobs", f"{available_threads() + 1}"], "--jobs must be between 1"),
        (["months", *SMOKE, "--experiment", "1A"], "--experiment is for cifar100 alone"),
        (["months", "--engine", "xgboost"], "--engine is for counties alone, got it with months"),
        (["counties", "--engine", "gpu"], "--engine must be structent or xgboost, got 'gpu'"),
        (["months", "--backbone", "VGG16"], "--backbone is for cifar100, learning_rate alone"),
        (["answers", *SMOKE], "--preset is for months, counties, cifar100 alone, got it with ans"),
        (["months", "--problem", "months"], "--problem is for coarse_labels, layers, prior alone"),
        (["coarse_labels", "--problem", "days"], "--problem must be months or cifar100, got"),
        (["prior", "--problem", "months"], "--problem must be linear or trees, got 'months'"),
        (["prior", "--problem", "trees,forests"], "must be linear or trees, got 'forests'"),
        (["prior", "--report-only"], "prior needs all its runs (left: 155); leave out --report"),
        (["prior", "--problem", "linear"], "a folder that holds text/clinc150_minilm.npz, got"),
        (["answers", "--report-only"], "answers needs all its runs (left: 47); leave out"),
        (["structureboost"], "structureboost needs months.jsonl and structureboost.jsonl in"),
        (["cifar100", *SMOKE], "cifar100 needs --experiment 1A, 1B, 1C, 1D, got None"),
        (["cifar100", *SMOKE, "--experiment", "2"], "cifar100 needs --experiment 1A, 1B, 1C, 1D"),
        (["months", "--preset", "quick"], "a trial needs 30,500 rows, got a table with 700"),
        (["months", *SMOKE, "--data", "nowhere"], f"a folder that holds {TABLE}"),
        (["counties", *SMOKE, "--data", "."], "a folder that holds california_"),
        (["months", *SMOKE, "--out", "a file"], "--out must be a folder, got a file"),
        (["months", *SMOKE, "--out", "a file/x"], "--out must be a folder, got a file/x"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_every_mistake_is_one_sentence(
    paper_command, weather, tmp_path, monkeypatch, arguments, sentence
):
    (tmp_path / "a file").touch()
    monkeypatch.chdir(tmp_path)
    data = [] if "--data" in arguments else ["--data", weather]
    code, out, err = paper_command(*arguments, *data)
    assert code == 2
    assert err.startswith("paper: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert out == ""
    assert files(tmp_path) == {"a file"}


@pytest.mark.parametrize(
    ("question", "folder"),
    [("counties", "of California's daily weather"), ("learned", "of the weather (weather/), the")],
)
def test_data_is_needed(paper_command, tmp_path, monkeypatch, question, folder):
    monkeypatch.chdir(tmp_path)
    code, out, err = paper_command(question)
    assert (code, out) == (2, "")
    assert err.startswith(f"paper: {question} needs --data: the folder {folder}")
    assert files(tmp_path) == set()


def test_a_table_without_a_column_is_told_in_one_sentence(paper_command, tmp_path):
    data = write_weather(tmp_path / "data", weather_table().drop("TMIN"))
    code, out, err = paper_command("months", *SMOKE, "--data", data, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("paper: ")
    assert "no column 'TMIN'" in err
    assert err.count("\n") == 1


def test_a_wrong_line_in_the_results_is_told(paper_command, weather, tmp_path):
    (tmp_path / "months.jsonl").write_text("no run\n")
    code, _, err = paper_command("months", *SMOKE, "--data", weather, "--out", tmp_path)
    assert code == 2
    assert "line 1 of" in err
    assert err.count("\n") == 1


# Breaking off


@pytest.mark.slow
@pytest.mark.parametrize("jobs", sorted({1, min(2, available_threads())}))
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(
    paper_command, weather, tmp_path, jobs
):
    about = ["months", *SMOKE, "--data", weather, "--out", tmp_path]
    kept = tmp_path / "months.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "paper", *about, "--jobs", str(jobs)], cwd=PROJECT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        while process.poll() is None and not (kept.exists() and kept.stat().st_size):
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        # Read to the end: every process that was started has stderr open for as long as it lives.
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    note, sentence = err.rstrip("\n").rsplit("\n", 1)
    # Before it stand the warnings that two rounds are too few, as often as a run got that far.
    assert "Finished runs are in" in " ".join(note.split())
    assert "Traceback" not in note
    assert sentence == "paper: interrupted; no file was left incomplete"
    before = kept.read_bytes()
    assert 1 <= len(numbers(kept)) < 10
    assert files(tmp_path) == {"months.jsonl"}

    code, _, err = paper_command(*about)
    assert code == 0, err
    assert kept.read_bytes().startswith(before)
    assert len(numbers(kept)) == len(set(numbers(kept))) == 10
    assert files(tmp_path) == PAGE | {"months.jsonl"}
