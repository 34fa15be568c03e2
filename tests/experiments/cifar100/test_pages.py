"""The pages."""

import re

import pytest

from structent.experiments.cifar100.pages import claims, figures, page, summary
from tests.experiments.cifar100.made_up import pair, run

NAMES = ("1A", "1B", "1C", "1D")
EVERYTHING = [
    *pair([0.1, 0.2], size=1000),
    *pair([0.1, 0.2], size=5000),
    *[run("soft labels 10", trial, entropy=[2.5], size=5000) for trial in (0, 1)],
    *[run("scrambled", trial, entropy=[3.5], size=5000, experiment="1B") for trial in (0, 1)],
    *pair([0.1], size=5000, experiment="1C", network="mobilenet_v2_imagenet"),
    *pair([0.1, 0.2], size=1000, experiment="1D", network="mobilenet_v2_imagenet"),
]


def headings(text):
    return re.findall(r"^#+ (.*)$", text, flags=re.M)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_a_page_is_there_and_no_other(name):
    links = re.findall(r"\]\((.*)\.svg\)", page(name, EVERYTHING, []))
    assert links == list(figures(name, EVERYTHING))
    assert links


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_cells_in_every_line(name):
    text = page(name, EVERYTHING, [])
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        assert len({line.count("|") for line in table.splitlines()}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_it_is_about_stands_under_the_title(name):
    text = page(name, EVERYTHING, ["Command: x.", "Preset: quick."])
    first, second, third, _ = text.split("\n\n", 3)
    assert first.startswith(f"# CIFAR-100, experiment {name}: ")
    assert (second, third) == ("Command: x.", "Preset: quick.")


@pytest.mark.parametrize("name", NAMES)
def test_without_runs_a_page_has_the_papers_numbers_alone(name):
    text = page(name, [], [])
    assert "not run" in text
    assert "in the paper" in text
    assert "nan" not in text
    assert "Trajectories" not in headings(text)
    assert figures(name, []) == {}
    assert summary(name, [])["results"] == []
    assert {claim.holds for claim in claims(name, [])} == {"not run"}


def test_all_losses_are_compared_where_they_were_run():
    assert headings(page("1A", EVERYTHING, []))[-3:] == [
        "Which loss to choose",
        "5,000 images",
        "Trajectories",
    ]
    assert "Which loss to choose" not in headings(page("1B", EVERYTHING, []))
    assert "Which loss to choose" in headings(page("1D", EVERYTHING, []))


def test_sizes_that_were_not_run_are_on_the_page():
    text = page("1A", EVERYTHING, [])
    assert text.count("| 50,000 images | standard | not run |") == 2


def test_the_chosen_epochs_are_listed():
    # Cross-entropy is least at epochs 10 and 30, of 30; accuracy is highest at 30 and 20.
    runs = [
        run("standard", 0, entropy=[1, 1, 1], validation=[1, 2, 3], accuracy=[0.1, 0.2, 0.3]),
        run("standard", 1, entropy=[1, 1, 1], validation=[3, 2, 1], accuracy=[0.1, 0.3, 0.2]),
    ]
    listed = "- 1,000 images: standard 20 for cross-entropy, 25 for Acc, of 30\n"
    assert listed in page("1A", runs, [])


def test_the_page_of_1b_has_all_three_losses_and_their_differences():
    text = page("1B", EVERYTHING, [])
    # 3.5 against 3, and against 2.9 and 2.8.
    lines = text.splitlines()
    (minus_standard,) = [x for x in lines if "scrambled - standard | chosen" in x]
    (minus_structured,) = [x for x in lines if "scrambled - structured | chosen" in x]
    assert "**+0.5000 ± 0.0000**" in minus_standard
    assert "+0.6500 ± 0.0500" in minus_structured
