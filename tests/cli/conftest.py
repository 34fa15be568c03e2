"""The command, run in the process of the tests."""

import sys

import pytest

from structent.cli import main


@pytest.fixture
def structent_command(monkeypatch, capsys):
    """Run the command in this process: exit code, stdout and stderr."""

    def run_here(*arguments):
        monkeypatch.setattr(sys, "argv", ["structent", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run_here
