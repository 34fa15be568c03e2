"""The page of a test without a browser."""

import json
from dataclasses import replace

import pytest

from structent import SpanningTreePartitions
from structent.report import structure_test_page
from structent.report.tables import facts_of_test
from structent.structure import catalog
from tests.report.test_page import HOSTILE, QUOTES, Page
from tests.studies.made_tests import made_gains, made_test

ABOUT = {"data": "weather.csv", "target": "month"}
SECTIONS = ["null", "differences", "partitions", "tested", "structure"]


def made_page(structure, **options):
    found = made_test(structure)
    return Page(structure_test_page(found, **(ABOUT | {"gains": made_gains(structure)} | options)))


@pytest.fixture(scope="module", params=["months", "hostile"])
def page(request):
    return made_page({"months": catalog.months(), "hostile": HOSTILE}[request.param])


def test_every_section_is_there_and_linked(page):
    assert [section["id"] for section in page.named("section")] == SECTIONS
    assert [a["href"] for a in page.named("a")] == ["#main", *(f"#{name}" for name in SECTIONS)]


def test_the_answer_comes_first(page):
    answer = "The structure helps more than its scrambled copies: log loss is lower by"
    assert page.text.index(answer) < page.text.index("Among its scrambled copies")


def test_every_figure_says_what_there_is_to_be_seen(page):
    assert len(page.named("svg")) == 3
    assert all(len(svg["aria-label"]) > 30 for svg in page.named("svg"))
    assert "99 scrambled copies" in page.named("svg")[0]["aria-label"]


def test_names_are_text_and_never_tags(page):
    assert [script.get("type") for script in page.named("script")] == ["application/json", None]
    assert page.named("b", "i", "img") == []


def test_hostile_names_are_shown_as_they_are():
    text = made_page(HOSTILE, data="<b>", target=QUOTES, notes=("<i>",)).text
    for name in ("<b>", QUOTES, "<i>"):
        assert name in text


def test_the_whole_result_is_in_the_page_as_json(page):
    found = json.loads(page.data)
    assert found["target"] == "month"
    assert len(found["null_losses"]) == 99
    assert found["partitions"]


def test_a_sampler_has_no_partitions_to_show():
    found = made_test(SpanningTreePartitions(catalog.california_counties(), 10, 0.5))
    page = Page(structure_test_page(found, **ABOUT))
    assert "partitions" not in [section["id"] for section in page.named("section")]


def test_what_was_tested_is_told():
    found = made_test(catalog.months(), n_copies=10, n_as_good=3)
    text = " ".join(
        Page(structure_test_page(found, **ABOUT, notes=("2 rows left out.",))).text.split()
    )
    for told in (
        "600",
        "5 folds",
        "month, 12 classes",
        "10, 3 of them as good",
        "2 rows left out.",
    ):
        assert told in text


def test_the_file_is_the_page(tmp_path):
    found = made_test(catalog.months())
    found.to_html(tmp_path / "test.html", **ABOUT)
    written = (tmp_path / "test.html").read_text(encoding="utf-8")
    assert written == structure_test_page(found, **ABOUT)


def test_a_structure_that_none_beats_is_not_shown_in_green():
    html = structure_test_page(made_test(catalog.months(), against_none=0.05), **ABOUT)
    assert '<p class="verdict no-better-than-none">The structure does not help' in html
    helps = structure_test_page(made_test(catalog.months(), against_none=-0.05), **ABOUT)
    assert '<p class="verdict helps">' in helps


def test_losses_of_a_function_have_no_rows():
    found = replace(made_test(catalog.months()), n_rows=None)
    assert "Rows" not in dict(facts_of_test(found, "d", "t"))
