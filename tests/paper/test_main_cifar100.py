"""``python -m paper cifar100`` on made-up images: what it writes, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.paper.made_up_images import (
    arrays,
    write_backbone,
    write_pickles,
)

pytestmark = [
    pytest.mark.requires("keras"),
    pytest.mark.requires("torch"),
]
OTHERS = {
    *("label smoothing", "hierarchical .1", "hierarchical .3", "hierarchical .5"),
    *("soft labels 10", "soft labels 30"),
}


@pytest.fixture
def cifar100(paper_command, tmp_path):
    """Run an experiment in its smoke preset, with results in a folder of the test."""

    def run_here(experiment, *options):
        return paper_command(
            *("cifar100", "--experiment", experiment, "--preset", "smoke"),
            *("--out", tmp_path / "out", *options),
        )

    return run_here


def finished(tmp_path):
    lines = (tmp_path / "out" / "cifar100.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def losses(lines):
    return sorted((line["settings"]["loss"], line["settings"]["trial"]) for line in lines)


def in_two_trials(*names):
    return sorted((name, trial) for name in names for trial in (0, 1))


def assert_page(folder, name, text):
    """The page, its numbers and its figures are there, and the table was printed."""
    page = (folder / f"{name}.md").read_text()
    assert json.loads((folder / f"{name}.json").read_text())
    figures = sorted(path.name for path in folder.glob(f"{name}*.svg"))
    assert figures
    assert all(f"({figure})" in page for figure in figures)
    assert "python -m paper cifar100" in page
    assert "standard" in text
    assert "structured" in text


# What it does


@pytest.mark.slow
def test_1a_is_run_and_1b_goes_on_from_its_lines(cifar100, data, tmp_path):
    code, text, err = cifar100("1A", "--data", data)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1A", text)
    lines = finished(tmp_path)
    assert losses(lines) == in_two_trials("standard", "structured", *OTHERS)

    code, text, err = cifar100("1B", "--data", data)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1B", text)
    assert finished(tmp_path)[: len(lines)] == lines
    assert losses(finished(tmp_path)[len(lines) :]) == in_two_trials("scrambled")
    assert "6 of 6 runs are finished" in (tmp_path / "out" / "cifar100-1B.md").read_text()


def test_1c_is_run_on_the_original_files_and_not_again(cifar100, backbone, tmp_path):
    given = ["--data", write_pickles(tmp_path / "cifar-100-python"), "--backbone", backbone]
    code, text, err = cifar100("1C", *given)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1C", text)
    lines = finished(tmp_path)
    assert losses(lines) == in_two_trials("standard", "structured")
    assert {line["settings"]["network"] for line in lines} == {"tiny"}

    assert cifar100("1C", *given)[0] == 0
    assert finished(tmp_path) == lines


def test_the_page_of_1c_has_every_network_that_was_run(cifar100, data, backbone, tmp_path):
    other = tmp_path / "other.keras"
    other.write_bytes(Path(backbone).read_bytes())
    for network in (backbone, other):
        assert cifar100("1C", "--data", data, "--backbone", network)[0] == 0
    page = (tmp_path / "out" / "cifar100-1C.md").read_text()
    assert "8 of 8 runs are finished" in page
    assert all(f"{network}, 40 images | standard" in page for network in ("tiny", "other"))


@pytest.mark.slow
def test_the_original_files_give_what_the_npz_file_gives(cifar100, data, backbone, tmp_path):
    results = []
    for copy in (data, write_pickles(tmp_path / "cifar-100-python")):
        assert cifar100("1C", "--data", copy, "--backbone", backbone)[0] == 0
        results.append([line["result"] for line in finished(tmp_path)])
        (tmp_path / "out" / "cifar100.jsonl").unlink()

    assert results[0] == results[1]


@pytest.mark.slow
def test_1d_is_run_and_keeps_its_features(cifar100, data, backbone, tmp_path):
    cache = tmp_path / "cache"
    given = ["--data", data, "--backbone", backbone, "--cache", cache]
    code, text, err = cifar100("1D", *given)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1D", text)
    assert losses(finished(tmp_path)) == in_two_trials("standard", "structured", *OTHERS)
    # Of each trial two views and the validation images, and the test images once.
    assert sorted(np.load(file).shape for file in cache.iterdir()) == [(20, 6)] * 3 + [(40, 6)] * 4


@pytest.mark.slow
def test_without_a_folder_features_are_kept_in_the_users_cache(
    cifar100, data, backbone, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert cifar100("1D", "--data", data, "--backbone", backbone)[0] == 0
    assert len(list((tmp_path / "home" / "structent").iterdir())) == 7


@pytest.mark.slow
def test_two_processes_give_what_one_gives(cifar100, data, backbone, tmp_path, monkeypatch):
    monkeypatch.setattr("paper.__main__.available_threads", lambda: 2)
    results = []
    for jobs in (1, 2):
        given = ["--data", data, "--backbone", backbone, "--jobs", jobs]
        code, _, err = cifar100("1C", *given)
        assert code == 0, err
        by_run = {str(line["settings"]): line["result"] for line in finished(tmp_path)}
        results.append(by_run)
        (tmp_path / "out" / "cifar100.jsonl").unlink()

    assert results[0] == results[1]


def test_json_has_the_numbers_of_the_page(cifar100, data, backbone, tmp_path):
    code, text, _ = cifar100("1C", "--data", data, "--backbone", backbone, "--json")
    assert code == 0
    assert json.loads(text) == json.loads((tmp_path / "out" / "cifar100-1C.json").read_text())


# What it refuses


def assert_refused(outcome, *parts):
    """One sentence, and the exit code of what the user can mend."""
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert err.startswith("paper: ")
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_sizes_are_refused_where_there_is_one(cifar100, data, backbone, experiment):
    outcome = cifar100(experiment, "--data", data, "--backbone", backbone, "--sizes", "1000")
    assert_refused(outcome, "--sizes", experiment)


def test_another_size_than_that_of_1b_is_refused(cifar100, data):
    assert_refused(cifar100("1B", "--data", data, "--sizes", "1000"), "--sizes", "got 1000")


def test_an_unknown_experiment_is_refused(cifar100, data):
    assert_refused(cifar100("1E", "--data", data), "1A, 1B, 1C, 1D", "'1E'")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_an_unknown_backbone_is_refused(cifar100, data, tmp_path, experiment):
    outcome = cifar100(
        experiment, "--data", data, "--backbone", "VGG16", "--cache", tmp_path / "cache"
    )
    assert_refused(outcome, "--backbone must be", "'VGG16'")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_a_file_that_is_no_backbone_is_refused(cifar100, data, tmp_path, experiment):
    file = tmp_path / "mine.keras"
    for content in (None, b"no model"):
        if content:
            file.write_bytes(content)
        outcome = cifar100(
            experiment, "--data", data, "--backbone", file, "--cache", tmp_path / "cache"
        )
        assert_refused(outcome, "--backbone must be", "mine.keras")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_a_backbone_that_gives_no_features_is_refused(cifar100, data, tmp_path, experiment):
    file = write_backbone(tmp_path / "maps.keras", pooled=False)
    outcome = cifar100(
        experiment, "--data", data, "--backbone", file, "--cache", tmp_path / "cache"
    )
    assert_refused(outcome, "--backbone must give features", "maps.keras")


def test_too_few_images_are_refused(cifar100, tmp_path):
    few = {name: values[:50] for name, values in arrays().items()}
    np.savez(tmp_path / "few.npz", **few)
    outcome = cifar100("1A", "--data", tmp_path / "few.npz")
    assert_refused(outcome, "training images, got 50")


def test_data_that_is_not_there_is_refused(cifar100, tmp_path):
    assert_refused(cifar100("1A", "--data", tmp_path / "none.npz"), "which does not exist")
