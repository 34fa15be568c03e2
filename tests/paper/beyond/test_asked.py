"""How a question beyond the paper is asked."""

from pathlib import Path

import pytest

from paper.beyond import Asked
from structent.errors import StructentError


def asked(*problems):
    return Asked(Path("folder"), Path("results"), "a command", problems or None)


def test_all_problems_are_wanted_if_none_is_named():
    assert asked().problems_among(("linear", "trees")) == ("linear", "trees")


def test_those_problems_are_wanted_that_are_named():
    assert asked("trees").problems_among(("linear", "trees")) == ("trees",)
    assert asked("trees", "linear").problems_among(("linear", "trees")) == ("trees", "linear")


def test_a_problem_that_is_not_there_is_told_in_one_sentence():
    with pytest.raises(StructentError, match="--problem must be linear or trees, got 'months'"):
        asked("linear", "months").problems_among(("linear", "trees"))


def test_finished_runs_are_in_the_folder_of_results():
    assert asked().kept("prior").path == Path("results") / "prior.jsonl"
