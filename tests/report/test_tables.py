"""The tables of the page."""

from dataclasses import replace

import numpy as np

from structent import SpanningTreePartitions
from structent.report.tables import (
    facts,
    folds_table,
    levels_table,
    scores_table,
    severity_table,
    weights_table,
)
from structent.structure import catalog
from structent.studies.comparison import ArmScores
from tests.studies.made import made_comparison

MONTHS = made_comparison(catalog.months())


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_the_levels_of_months_are_quarters_and_months():
    assert texts(levels_table(MONTHS)) == [
        ["width 3", "3", "4", "0.700"],
        ["class", "1", "12", "0.300"],
    ]


def test_a_sampler_has_no_levels_to_list():
    counties = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    assert levels_table(made_comparison(counties)) is None


def test_there_is_a_row_for_each_level_and_model_with_the_mean_to_sort_by():
    table = scores_table(MONTHS)
    assert [row[:2] for row in texts(table)][:3] == [
        ["width 3", "no structure"],
        ["width 3", "the structure"],
        ["width 3", "scrambled copies"],
    ]
    assert len(table.rows) == 6
    assert table.rows[4][3].value == MONTHS.mean("structure", "class", "accuracy")


def test_folds_without_mistakes_have_no_severity():
    severity = np.array([np.nan, 1.0, 2.0])
    scores = {
        "none": ArmScores(MONTHS.scores["none"].by_level, severity),
        "structure": ArmScores(MONTHS.scores["none"].by_level, np.full(3, np.nan)),
        "scrambled": ArmScores(MONTHS.scores["none"].by_level, severity[:2]),
    }
    table = severity_table(replace(MONTHS, scores=scores))
    assert [row[1] for row in texts(table)] == ["1.5000 ± 0.7071", "none", "1.0000"]


def test_every_candidate_weight_is_counted():
    chosen = np.array([0.1, 0.1, 1.0, 0.4])
    table = weights_table(replace(MONTHS, chosen=chosen))
    assert texts(table) == [
        ["0.1", "2 of 4"],
        ["0.4", "1 of 4"],
        ["0.7", "0 of 4"],
        ["1 (no structure)", "1 of 4"],
    ]


def test_every_fold_has_a_row():
    table = folds_table(MONTHS)
    assert len(table.rows) == 10
    assert table.rows[2][1].value == MONTHS.against_none.per_fold[2]


def test_many_features_are_counted_and_not_all_listed():
    wide = replace(MONTHS, task=replace(MONTHS.task, features=tuple(map(str, range(100)))))
    told = dict(facts(wide))["Features"]
    assert told.startswith("100: 0, 1, 2")
    assert told.endswith("29 and 70 more")


def test_the_group_is_told_where_there_is_one():
    grouped = replace(MONTHS, task=replace(MONTHS.task, group="patient"))
    assert dict(facts(grouped))["Rows kept together by"] == "patient"
    assert "Rows kept together by" not in dict(facts(MONTHS))
