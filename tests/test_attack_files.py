"""Files that were changed at random are refused, or give a model: no crash, no other error."""

import pytest

from tests import attack_files
from tests.attack_files import TARGETS, attack, table, write_targets

pytestmark = [pytest.mark.requires("sklearn"), pytest.mark.requires("pandas")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    write_targets(folder)
    return folder


def assert_nothing_breaks(folder, seed, n_tries):
    found = attack(folder, [target.name for target in TARGETS], seed, n_tries)
    assert [each for each in found if each["outcome"] in attack_files.WORST] == []
    # It is an attack: most changes matter, and some go through.
    outcomes = [each["outcome"] for each in found]
    assert len(outcomes) == n_tries
    assert outcomes.count("refused") > 0.5 * n_tries
    assert outcomes.count("same") > 0
    assert outcomes.count("other") > 0


def test_changed_files_are_refused_or_harmless(folder):
    assert_nothing_breaks(folder, seed=0, n_tries=400)


@pytest.mark.slow
def test_many_changed_files_are_refused_or_harmless(folder):
    assert_nothing_breaks(folder, seed=1, n_tries=20_000)


def test_the_attack_sees_what_it_looks_for(tmp_path, monkeypatch):
    monkeypatch.setattr(attack_files, "SECONDS", 5)
    found = attack(tmp_path, ["abort", "fail", "hang", "much", "other"], 0, 6)
    assert [each["outcome"] for each in found] == [
        "process ended", "other error", "hangs", "memory", "unnoticed", "process ended",
    ]  # fmt: skip


def test_the_table_counts_tries_and_names_the_worst():
    outcomes = ["refused", "same", "other", "refused", "hangs", "unnoticed"]
    found = [{"name": "trees.structent", "outcome": outcome} for outcome in outcomes]
    *_, ours, everything = table([*found, {"name": "tree.nwk", "outcome": "refused"}])[:-1]
    assert ours == "| models of our own engine | 6 | 2 | 1 | 1 | 2 | hangs |"
    assert everything == ("| hierarchies and graphs that users write | 1 | 1 | 0 | 0 | 0 | none |")
