"""The page of a comparison without a browser: what is in it, and what must never be."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from structent import SpanningTreePartitions, circular, hierarchy, ordinal, trivial
from structent.report import comparison_page
from structent.report.tables import (
    chosen_table,
    confusions_table,
    facts,
    levels_table,
    references_table,
    scores_table,
    severity_table,
    splits_table,
    within_blocks_table,
)
from structent.structure import catalog
from structent.studies.comparison import ArmScores, KeptModel, References
from structent.studies.plan import NONE, Candidate
from structent.studies.verdict import Verdict
from tests.studies.made import made_comparison

SCRIPT, QUOTES = "<script>alert(1)</script>", "say \"hi\" & 'bye'"
HOSTILE = hierarchy(
    {SCRIPT: ("<b>plant</b>",), QUOTES: ("<b>plant</b>",), "--><i>": ("x",), "$a$_{": ("x",)},
    level_names=['"><img src=x onerror=alert(1)>'],
)
STRUCTURES = {
    "months": catalog.months(),
    "cifar100": catalog.cifar100(),
    "ordinal": ordinal(range(7)),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
    "hostile": HOSTILE,
    "trivial": trivial(["a", "b"]),
}
ABOUT = {"data": "weather.csv", "target": "month"}
SECTIONS = [
    "differences", "levels", "mistakes", "confusion", "reliability", "chosen", "structure",
    "compared", "words",
]  # fmt: skip


class Page(HTMLParser):
    """Every tag with its attributes, the text outside of styles and scripts, and the data."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.data, self._inside = [], "", "", None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = "data" if dict(attributes).get("id") == "result" else tag

    def handle_data(self, data):
        if self._inside == "data":
            self.data += data
        elif self._inside not in ("style", "script"):
            self.text += data

    def named(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


def page_of(comparison, **options):
    return comparison_page(comparison, **(ABOUT | options))


@pytest.fixture(scope="module", params=STRUCTURES)
def page(request):
    return Page(page_of(made_comparison(STRUCTURES[request.param])))


def test_every_section_is_there_and_linked(page):
    assert [section["id"] for section in page.named("section")] == SECTIONS
    assert [a["href"] for a in page.named("a")] == ["#main", *(f"#{name}" for name in SECTIONS)]


def test_the_verdict_comes_first(page):
    verdict = "Use it: the structure lowers log loss by 0.010 ± 0.003 (95 %)."
    assert page.text.index(verdict) < page.text.index("How sure it is")


def test_no_tag_refers_to_anything_outside(page):
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action", "data", "srcset"):
                assert value.startswith(("#", "data:")), (tag, name, value)


def test_no_address_but_the_names_of_svg_is_in_the_page():
    html = page_of(made_comparison(catalog.months()))
    assert set(re.findall(r"https?://[^\s\"'<]*", html)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_the_network_is_forbidden(page):
    (policy,) = [m["content"] for m in page.named("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert re.search(r"script-src 'sha256-[^' ]+';", policy)  # our own script and no other


def test_names_are_text_and_never_tags(page):
    assert [script.get("type") for script in page.named("script")] == ["application/json", None]
    assert page.named("b", "i", "img") == []
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_hostile_names_are_shown_as_they_are():
    text = Page(page_of(made_comparison(HOSTILE))).text
    for name in (SCRIPT, QUOTES, "<b>plant</b>", "--><i>", "$a$_{"):
        assert name in text


def test_ids_are_unique_and_every_reference_has_one(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    values = [v for _, attributes in page.tags for v in attributes.values() if v]
    used = {name for v in values for name in re.findall(r"^#(.+)$|url\(#([^)]+)\)", v)}
    assert {first or second for first, second in used} <= set(ids)


def test_headings_are_in_order_with_one_at_the_top(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_figure_says_what_there_is_to_be_seen(page):
    for svg in page.named("svg"):
        assert svg["role"] == "img"
        assert len(svg["aria-label"]) > 30


def test_every_table_has_a_caption_and_every_heading_a_scope(page):
    assert len(page.named("caption")) == len(page.named("table")) >= 5
    assert {th.get("scope") for th in page.named("th")} == {"col", "row"}


def test_scores_are_means_and_deviations_over_the_splits():
    comparison = made_comparison(catalog.months())
    text = Page(page_of(comparison)).text
    losses = comparison.scores["structure"].by_level[:, 0, 0]
    assert f"{losses.mean():.4f} ± {losses.std(ddof=1):.4f}" in text
    severity = comparison.scores["scrambled"].severity
    assert f"{severity.mean():.4f} ± {severity.std(ddof=1):.4f}" in text


def test_what_was_compared_is_told():
    comparison = made_comparison(catalog.months(), reduced=("half of the splits are missing",))
    notes = ("2 rows without a label were left out",)
    command = "structent compare 'my data.csv' --target month --structure months"
    page = Page(page_of(comparison, group="station", notes=notes, command=command))
    text = " ".join(page.text.split())
    for told in (
        "month, 12 classes",
        "600, all of them used",
        "boosted trees",
        "2: rain, wind",
        "10: 5 folds x 2 repeats",
        "station",
        "12.5 seconds",
        "2 rows without a label were left out",
        "1 row is known by a block alone",
        "half of the splits are missing",
        command,
        "numpy 2",
    ):
        assert told in text


def test_the_question_has_the_words_of_the_user():
    named = page_of(made_comparison(catalog.months()), structure_name="<circle>")
    assert "the structure <circle> help to predict month in weather.csv?" in Page(named).text
    unnamed = Page(page_of(made_comparison(catalog.months()))).text
    assert "Does knowing the structure help to predict month in weather.csv?" in unnamed


def header_of(comparison, **options):
    header = page_of(comparison, **options).partition("</header>")[0]
    return " ".join(Page(header).text.split())


def test_the_header_says_how_to_save_to_predict_and_to_run_again():
    command = "structent compare weather.csv --target month --structure months"
    header = header_of(made_comparison(catalog.months()), command=command)
    assert f"Save the recommended model (with the structure) {command} --save model" in header
    assert "structent predict model.structent new.csv -o predictions.csv" in header
    assert f"Run it again {command}Copy" in header


def test_a_model_that_was_saved_need_not_be_saved_again():
    kept = KeptModel("my model", "Trained on all rows.")
    header = header_of(made_comparison(catalog.months()), command="structent compare x", kept=kept)
    assert "Save the recommended model" not in header
    assert "structent predict 'my model' new.csv" in header


def test_another_command_than_compare_cannot_save_and_points_to_the_one_that_can():
    header = header_of(made_comparison(catalog.months()), command="structent demo")
    assert "structent demo --save" not in header
    assert "structent compare table.csv --target label --structure ordinal --save" in header


def test_without_a_command_the_next_steps_are_in_python():
    header = header_of(made_comparison(catalog.months(), seed=7))
    assert "found.best_model().save('model.structent')" in header
    assert "random_state=7" in header


def test_the_header_says_what_was_reduced_or_that_nothing_was():
    assert "Nothing: all 600 rows and all 10 splits" in header_of(made_comparison(catalog.months()))
    reduced = made_comparison(catalog.months(), reduced=("3 splits are missing",))
    header = header_of(reduced, cautions=("Left out: 'season'",))
    assert "What was reduced 3 splits are missing" in header
    assert "Nothing: all" not in header
    assert "Left out: 'season'" in header


def test_the_picture_of_the_gain_has_the_sign_of_the_gain():
    comparison = made_comparison(catalog.months())
    header = Page(page_of(comparison).partition("</header>")[0])
    (svg,) = header.named("svg")
    gain = f"{-comparison.against_none.mean:+.4f}"
    assert gain.startswith("+")
    assert f"Gain in log loss, compared with no structure: {gain}" in svg["aria-label"]


def test_the_whole_result_is_in_the_page_as_json():
    comparison = made_comparison(catalog.months(), learning_curve=True)
    found = json.loads(Page(page_of(comparison, command="structent demo")).data)
    assert found["verdict"]["finding"] == "use it"
    assert found["command"] == "structent demo"
    assert found["classes"] == list(comparison.task.classes)
    assert found["per_split"]["against_none"] == comparison.against_none.per_split.tolist()
    assert found["mistakes"]["confusions"]
    assert "numpy" in found["versions"]


def test_hostile_names_stay_inside_of_the_json():
    html = page_of(made_comparison(HOSTILE), data="</script><b>", command="x\u2028y")
    found = json.loads(Page(html).data)
    assert found["classes"] == list(HOSTILE.classes)
    assert found["data"] == "</script><b>"
    assert found["command"] == "x\u2028y"
    assert html.count("</script>") == 2


def test_numbers_that_json_does_not_know_are_null():
    months = made_comparison(catalog.months())
    never_wrong = {
        arm: ArmScores(scores.by_level, np.full(10, np.nan))
        for arm, scores in months.scores.items()
    }
    data = Page(page_of(replace(months, scores=never_wrong))).data
    assert "NaN" not in data
    assert json.loads(data)["per_split"]["mistake_severity"]["none"] == [None] * 10


def test_labels_that_json_does_not_know_are_text():
    pairs = circular([("a", 1), ("a", 2), ("b", 1)], width=2)
    assert json.loads(Page(page_of(made_comparison(pairs))).data)["classes"][0] == ["a", 1]


def test_every_section_can_be_folded_and_is_open():
    html = page_of(made_comparison(catalog.months()))
    for section in re.findall(r"<section.*?</section>", html, flags=re.S):
        assert section.partition(">")[2].lstrip().startswith("<details open>\n<summary><h2")


def test_every_sortable_table_can_be_downloaded_under_a_name_of_its_own():
    page = Page(page_of(made_comparison(catalog.months())))
    names = [button["data-csv"] for button in page.named("button") if "data-csv" in button]
    assert len(names) == len(set(names)) == len(page.named("caption")) - 1  # all but the facts


def test_what_to_do_next_stands_below_the_verdict_where_it_is_undecided():
    verdict = Verdict("undecided", "too few rows", "Undecided.", 0.004)
    header = page_of(replace(made_comparison(catalog.months()), verdict=verdict)).partition(
        "</header>"
    )[0]
    assert "rows, four times as many." in " ".join(header.split())
    assert "Save the recommended model (without structure)" in header


def test_the_learning_curve_has_a_section_where_there_is_one():
    page = Page(page_of(made_comparison(catalog.months(), learning_curve=True)))
    assert "learning-curve" in [section["id"] for section in page.named("section")]


def test_the_model_file_is_quoted_for_python_and_for_the_shell():
    html = comparison_page(
        made_comparison(catalog.months()),
        **ABOUT,
        kept=KeptModel("it's mine.structent", "Trained on all 600 rows."),
    )
    text = Page(html).text
    assert 'StructuredBoostingClassifier.load("it\'s mine.structent")' in text
    assert "structent predict 'it'\"'\"'s mine.structent' weather.csv -o" in text
    assert "The model is in it's mine.structent. Trained on all 600 rows." in text


def test_the_same_comparison_gives_the_same_page():
    first, second = (page_of(made_comparison(STRUCTURES["counties"])) for _ in range(2))
    assert first == second


def test_a_page_of_a_hundred_classes_is_below_a_megabyte():
    html = page_of(made_comparison(catalog.cifar100(), n_rows=3000, learning_curve=True))
    assert len(html.encode()) < 2**20


def test_names_in_any_script_are_kept():
    fish = circular(["鲤鱼", "سمك", "рыба"], width=2)
    assert "鲤鱼" in Page(page_of(made_comparison(fish))).text


def test_the_file_is_the_page_and_nothing_is_left_beside_it(tmp_path):
    comparison = made_comparison(catalog.months())
    kept = KeptModel("m.structent", "Trained on all rows.")
    comparison.to_html(tmp_path / "report.html", **ABOUT, kept=kept)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written == page_of(comparison, kept=kept)


def test_where_accuracy_decides_no_difference_is_called_a_log_loss():
    comparison = made_comparison(catalog.months(), metric="accuracy")
    table = splits_table(comparison)
    assert "of the class error" in table.caption
    section = page_of(comparison).partition('id="differences"')[2].partition("</section>")[0]
    assert "Gain in accuracy" in page_of(comparison).partition("</header>")[0]
    labels = [svg["aria-label"] for svg in Page(section).named("svg")]
    captions = re.findall("<caption>(.*?)</caption>", section)
    assert not [text for text in [*labels, *captions] if "log loss" in text or "nats" in text]


# The tables


MONTHS = made_comparison(catalog.months())


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_the_levels_of_months_are_quarters_and_months():
    assert texts(levels_table(MONTHS)) == [
        ["width 3", "3", "4", "0.700"],
        ["class", "1", "12", "0.300"],
    ]


COUNTIES = made_comparison(SpanningTreePartitions(catalog.california_counties(), 10, 0.5))


def test_the_levels_of_a_sampler_are_its_first_draws_and_the_classes():
    table = levels_table(COUNTIES)
    assert texts(table) == [["blocks", "10", "10", "0.500"], ["class", "1", "58", "0.500"]]
    assert "the first 10 partitions drawn" in table.caption


def test_the_severity_of_a_sampler_is_in_edges():
    assert severity_table(COUNTIES).columns == ("Model", "Mistake severity (edges)")
    assert severity_table(MONTHS).columns == ("Model", "Mistake severity")


def test_confusions_are_named_with_their_rows_and_blocks():
    plants = hierarchy({"oak": ("tree",), "elm": ("tree",), "=rose": ("flower",)})
    sure = np.eye(3)
    comparison = replace(
        made_comparison(plants), labels=np.array([0, 0, 0, 2]),
        proba={"none": sure[[2, 1, 1, 2]], "structure": sure[[0, 0, 1, 1]]},
    )  # fmt: skip
    assert texts(confusions_table(comparison)) == [
        ["oak", "elm", "2 (67%)", "1 (33%)", "-1", "yes"],
        ["oak", "=rose", "1 (33%)", "0 (0%)", "-1", "no"],
        ["=rose", "elm", "0 (0%)", "1 (100%)", "+1", "no"],
    ]
    assert texts(within_blocks_table(comparison)) == [["level 1", "66.7%", "50.0%", "50.0%"]]


def test_confusions_on_a_graph_have_their_number_of_edges():
    table = confusions_table(COUNTIES)
    assert table.columns[-1] == "Edges apart"
    assert all(row[-1].value >= 1 for row in table.rows)
    assert re.fullmatch(r"\d+ of 10", table.rows[0][-2].text)


def test_without_mistakes_or_blocks_the_page_says_so():
    plain = made_comparison(trivial(["a", "b"]))
    assert within_blocks_table(plain) is None
    sure = np.eye(2)[plain.labels]
    right = replace(plain, proba={"none": sure, "structure": sure})
    assert "Neither model made a mistake on the test rows." in Page(page_of(right)).text


def test_there_is_a_row_for_each_level_and_model_with_the_mean_to_sort_by():
    table = scores_table(MONTHS)
    assert [row[:2] for row in texts(table)][:3] == [
        ["width 3", "no structure"],
        ["width 3", "the structure"],
        ["width 3", "scrambled copies"],
    ]
    assert len(table.rows) == 6
    assert table.rows[4][3].value == MONTHS.mean("structure", "class", "accuracy")


def test_splits_without_mistakes_have_no_severity():
    severity = np.array([np.nan, 1.0, 2.0])
    scores = {
        "none": ArmScores(MONTHS.scores["none"].by_level, severity),
        "structure": ArmScores(MONTHS.scores["none"].by_level, np.full(3, np.nan)),
        "scrambled": ArmScores(MONTHS.scores["none"].by_level, severity[:2]),
    }
    table = severity_table(replace(MONTHS, scores=scores))
    assert [row[1] for row in texts(table)] == ["1.5000 ± 0.7071", "none", "1.0000"]


def test_every_candidate_is_counted_for_the_structure_and_its_copies():
    both = Candidate(0.4, 0.6)
    chosen = {"structure": (both, both, NONE), "scrambled": (NONE, NONE, NONE)}
    table = chosen_table(replace(MONTHS, chosen=chosen))
    assert texts(table) == [
        ["loss (weights=0.4) and leaves (leaf_smoothing=0.6)", "2 of 3", "0 of 3"],
        ["no structure", "1 of 3", "3 of 3"],
        ["leaves (leaf_smoothing=0.3)", "0 of 3", "0 of 3"],
        ["loss (weights=0.4)", "0 of 3", "0 of 3"],
    ]


def test_scikit_learns_models_stand_beside_ours():
    assert texts(references_table(MONTHS)) == [
        ["ours, no structure", "2.0000"],
        ["HistGradientBoostingClassifier", "2.1000"],
        ["LogisticRegression", "2.3000"],
    ]
    nothing = replace(MONTHS, references=References({}, float("nan"), 0))
    assert references_table(nothing) is None


def test_every_split_has_a_row():
    table = splits_table(MONTHS)
    assert len(table.rows) == 10
    assert table.rows[2][1].value == MONTHS.against_none.per_split[2]
    assert [row[0] for row in texts(table)][8:] == ["9", "10"]
    assert "class log loss, in nats per row" in table.caption


def test_many_features_are_counted_and_not_all_listed():
    wide = replace(MONTHS, task=replace(MONTHS.task, features=tuple(map(str, range(100)))))
    told = dict(facts(wide, "d", "t", None))["Features"]
    assert told.startswith("100: 0, 1, 2")
    assert told.endswith("29 and 70 more")


def test_the_group_is_told_where_there_is_one():
    assert dict(facts(MONTHS, "d", "t", "patient"))["Rows kept together by"] == "patient"
    assert "Rows kept together by" not in dict(facts(MONTHS, "d", "t", None))
