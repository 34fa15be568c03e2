"""``structent reproduce cifar100`` on made-up images: what it writes, and what it refuses."""

import json

import numpy as np
import pytest

from structent.experiments import run
from tests.experiments.cifar100.made_up_images import (
    arrays,
    write_backbone,
    write_npz,
    write_pickles,
)
from tests.losses.test_keras import OLD_CONVERSION

pytestmark = [
    pytest.mark.requires("keras"),
    pytest.mark.requires("torch"),
    pytest.mark.filterwarnings(OLD_CONVERSION),
]
OTHERS = {
    *("label smoothing", "hierarchical .1", "hierarchical .3", "hierarchical .5"),
    *("soft labels 10", "soft labels 30"),
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_npz(tmp_path_factory.mktemp("images") / "cifar100.npz")


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return write_backbone(tmp_path_factory.mktemp("backbone") / "tiny.keras")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """So few rows are no work for more threads, which wait for each other on a busy machine."""
    monkeypatch.setattr(run, "available_threads", lambda: 1)


@pytest.fixture
def reproduce(structent_command, tmp_path):
    """Run an experiment in its smoke preset, with results in a folder of the test."""

    def run_here(experiment, *options):
        return structent_command(
            *("reproduce", "cifar100", "--experiment", experiment, "--preset", "smoke"),
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
    assert "structent reproduce cifar100" in page
    assert "standard" in text
    assert "structured" in text


# What it does


def test_1a_is_run_and_1b_goes_on_from_its_lines(reproduce, images, tmp_path):
    code, text, err = reproduce("1A", "--data", images)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1A", text)
    lines = finished(tmp_path)
    assert losses(lines) == in_two_trials("standard", "structured", *OTHERS)

    code, text, err = reproduce("1B", "--data", images)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1B", text)
    assert finished(tmp_path)[: len(lines)] == lines
    assert losses(finished(tmp_path)[len(lines) :]) == in_two_trials("scrambled")
    assert "6 of 6 runs are finished" in (tmp_path / "out" / "cifar100-1B.md").read_text()


def test_1c_is_run_on_the_original_files_and_not_again(reproduce, backbone, tmp_path):
    given = ["--data", write_pickles(tmp_path / "cifar-100-python"), "--backbone", backbone]
    code, text, err = reproduce("1C", *given)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1C", text)
    lines = finished(tmp_path)
    assert losses(lines) == in_two_trials("standard", "structured")
    assert {line["settings"]["network"] for line in lines} == {"tiny"}

    assert reproduce("1C", *given)[0] == 0
    assert finished(tmp_path) == lines


def test_the_original_files_give_what_the_npz_file_gives(reproduce, images, backbone, tmp_path):
    results = []
    for data in (images, write_pickles(tmp_path / "cifar-100-python")):
        assert reproduce("1C", "--data", data, "--backbone", backbone)[0] == 0
        results.append([line["result"] for line in finished(tmp_path)])
        (tmp_path / "out" / "cifar100.jsonl").unlink()

    assert results[0] == results[1]


def test_1d_is_run_and_keeps_its_features(reproduce, images, backbone, tmp_path):
    cache = tmp_path / "cache"
    given = ["--data", images, "--backbone", backbone, "--cache", cache]
    code, text, err = reproduce("1D", *given)
    assert code == 0, err
    assert_page(tmp_path / "out", "cifar100-1D", text)
    assert losses(finished(tmp_path)) == in_two_trials("standard", "structured", *OTHERS)
    # Of each trial two views and the validation images, and the test images once.
    assert sorted(np.load(file).shape for file in cache.iterdir()) == [(20, 6)] * 3 + [(40, 6)] * 4


def test_without_a_folder_features_are_kept_in_the_users_cache(
    reproduce, images, backbone, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert reproduce("1D", "--data", images, "--backbone", backbone)[0] == 0
    assert len(list((tmp_path / "home" / "structent").iterdir())) == 7


def test_two_processes_give_what_one_gives(reproduce, images, backbone, tmp_path, monkeypatch):
    monkeypatch.setattr("structent.cli.reproduce.available_threads", lambda: 2)
    results = []
    for jobs in (1, 2):
        given = ["--data", images, "--backbone", backbone, "--jobs", jobs]
        code, _, err = reproduce("1C", *given)
        assert code == 0, err
        by_run = {str(line["settings"]): line["result"] for line in finished(tmp_path)}
        results.append(by_run)
        (tmp_path / "out" / "cifar100.jsonl").unlink()

    assert results[0] == results[1]


def test_json_has_the_numbers_of_the_page(reproduce, images, backbone, tmp_path):
    code, text, _ = reproduce("1C", "--data", images, "--backbone", backbone, "--json")
    assert code == 0
    assert json.loads(text) == json.loads((tmp_path / "out" / "cifar100-1C.json").read_text())


# What it refuses


def assert_refused(outcome, *parts):
    """One sentence, and the exit code of what the user can mend."""
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert err.startswith("structent: ")
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_sizes_are_refused_where_there_is_one(reproduce, images, backbone, experiment):
    outcome = reproduce(experiment, "--data", images, "--backbone", backbone, "--sizes", "1000")
    assert_refused(outcome, "--sizes", experiment)


def test_another_size_than_that_of_1b_is_refused(reproduce, images):
    assert_refused(reproduce("1B", "--data", images, "--sizes", "1000"), "--sizes", "got 1000")


def test_an_unknown_experiment_is_refused(reproduce, images):
    assert_refused(reproduce("1E", "--data", images), "1A, 1B, 1C, 1D", "'1E'")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_an_unknown_backbone_is_refused(reproduce, images, tmp_path, experiment):
    outcome = reproduce(
        experiment, "--data", images, "--backbone", "VGG16", "--cache", tmp_path / "cache"
    )
    assert_refused(outcome, "--backbone must be", "'VGG16'")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_a_file_that_is_no_backbone_is_refused(reproduce, images, tmp_path, experiment):
    file = tmp_path / "mine.keras"
    for content in (None, b"no model"):
        if content:
            file.write_bytes(content)
        outcome = reproduce(
            experiment, "--data", images, "--backbone", file, "--cache", tmp_path / "cache"
        )
        assert_refused(outcome, "--backbone must be", "mine.keras")


@pytest.mark.parametrize("experiment", ["1C", "1D"])
def test_a_backbone_that_gives_no_features_is_refused(reproduce, images, tmp_path, experiment):
    file = write_backbone(tmp_path / "maps.keras", pooled=False)
    outcome = reproduce(
        experiment, "--data", images, "--backbone", file, "--cache", tmp_path / "cache"
    )
    assert_refused(outcome, "--backbone must give features", "maps.keras")


def test_too_few_images_are_refused(reproduce, tmp_path):
    few = {name: values[:50] for name, values in arrays().items()}
    np.savez(tmp_path / "few.npz", **few)
    outcome = reproduce("1A", "--data", tmp_path / "few.npz")
    assert_refused(outcome, "training images, got 50")


def test_data_that_is_not_there_is_refused(reproduce, tmp_path):
    assert_refused(reproduce("1A", "--data", tmp_path / "none.npz"), "which does not exist")
