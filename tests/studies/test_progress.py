"""How a study tells what it is doing."""

import pytest

from structent import StructentError
from structent.studies.progress import telling


def test_a_function_is_told():
    told = []
    with telling(lambda *step: told.append(step)) as tell:
        tell("folds", 3, 10)
    assert told == [("folds", 3, 10)]


def test_by_default_nothing_is_shown(capsys):
    with telling(False) as tell:
        tell("folds", 3, 10)
    assert capsys.readouterr() == ("", "")


@pytest.mark.requires("rich")
def test_a_bar_is_shown_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")  # none here would be a terminal without bars
    with telling(True) as tell:
        tell("folds", 3, 10)
    assert "folds" in capsys.readouterr().out


def test_anything_else_is_refused():
    with (
        pytest.raises(StructentError, match="progress must be True, False or a function, got 'no'"),
        telling("no"),
    ):
        pass
