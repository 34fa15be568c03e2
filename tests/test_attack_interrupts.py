"""Commands that are interrupted at random moments end, and leave no half file."""

import pytest

from tests.attack_interrupts import COMMANDS, WORST, Command, attack, interrupted, prepare, table

pytestmark = [pytest.mark.requires("sklearn"), pytest.mark.requires("polars")]


@pytest.mark.slow
def test_commands_end_at_any_moment(tmp_path):
    prepare(tmp_path)
    found = attack(tmp_path, seed=0, n_tries=40)
    assert [each for each in found if each["outcome"] in WORST] == []


@pytest.mark.parametrize("after", [0.02, 0.3, 1.0])
def test_a_command_ends_while_it_imports(tmp_path, after):
    [compare] = [command for command in COMMANDS if command.name == "compare"]
    assert interrupted(compare, tmp_path, after)[0] == "broken off"


def program(*lines):
    return "\n".join(["import signal, sys, time; print('up', flush=True)", *lines])


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (["time.sleep(60)"], "traceback"),
        (["signal.signal(signal.SIGINT, lambda *_: None)", "time.sleep(1)",
          "print('down', time.monotonic())"], "went on"),
        (["signal.signal(signal.SIGINT, lambda *_: sys.exit(1))", "time.sleep(60)"],
         "other ending"),
        (["signal.signal(signal.SIGINT, signal.SIG_DFL)", "open('new.json', 'w').write('{')",
          "time.sleep(60)"], "half a file"),
        (["signal.signal(signal.SIGINT, signal.SIG_DFL)", "open('.new.json', 'w')",
          "time.sleep(60)"], "half a file"),
    ],
)  # fmt: skip
def test_the_attack_sees_what_it_looks_for(tmp_path, monkeypatch, lines, outcome):
    monkeypatch.setattr("tests.attack_interrupts._PROGRAM", program(*lines))
    assert interrupted(Command("", (), ("new.json",)), tmp_path, 0.5)[0] == outcome


def test_the_table_counts_tries_and_names_the_worst():
    outcomes = ["broken off", "traceback", "broken off", "went on"]
    found = [{"name": "train", "outcome": outcome} for outcome in outcomes]
    assert table([*found, {"name": "predict", "outcome": "broken off"}])[2:] == [
        "| train | 4 | 2 | 2 | went on |", "| predict | 1 | 1 | 0 | none |",
        "| all | 5 | 3 | 2 | went on |",
    ]  # fmt: skip
