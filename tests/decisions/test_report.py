"""Coverage, size and depth of answers."""

import json

import numpy as np
import pytest

from structent import LabelError, StructureError, hierarchy
from structent.decisions import answer_report, hedge
from tests.decisions.problems import PLANTS
from tests.metrics.problems import random_rows

NESTED = hierarchy({c: (f"half {c // 6}", f"third {c // 3}") for c in range(12)})


def test_the_report_counts_row_by_row():
    y_true, proba, _ = random_rows(NESTED, 300)
    answers = hedge(proba, NESTED, 0.7)
    report = answer_report(y_true, answers)
    hits = [label in members for label, members in zip(y_true, answers.sets, strict=True)]
    assert (report.n, report.coverage) == (300, np.mean(hits))
    assert report.average_size == np.mean([len(members) for members in answers.sets])
    assert report.average_depth == np.mean(
        [4 - {1: 1, 3: 2, 6: 3, 12: 4}[s] for s in answers.sizes]
    )
    assert [row.level for row in report.rows] == ["all classes", "level 1", "level 2", "class"]
    for row in report.rows:
        there = [(None if row.level == "all classes" else row.level) == a for a in answers.levels]
        assert row.n == sum(there)
        assert row.coverage == np.mean(np.array(hits)[there])
        assert row.average_size == np.mean(answers.sizes[there])


def test_the_report_is_a_table_and_plain_data():
    report = answer_report(["elm", "rose"], hedge([[0.5, 0.375, 0.125]] * 2, PLANTS, 0.8))
    assert "0.5000  of 2 answers hold the true class" in str(report)
    assert json.loads(json.dumps(report.to_dict())) == {
        "rows": [{"level": "level 1", "n": 2, "coverage": 0.5, "average_size": 2.0}],
        "n": 2,
        "coverage": 0.5,
        "average_size": 2.0,
        "average_depth": 1.0,
    }


def test_one_answer_is_not_called_answers():
    report = answer_report(["elm"], hedge([[0.5, 0.375, 0.125]], PLANTS, 0.8))
    assert "1.0000  of 1 answer holds the true class" in str(report)


def test_long_names_of_levels_are_cut():
    named = hierarchy({"a": ("x",), "b": ("x",), "c": ("y",)}, level_names=["level " * 9])
    report = answer_report(["a"], hedge([[0.5, 0.5, 0.0]], named, 0.9))
    assert max(map(len, str(report).splitlines())) < 80


def test_labels_that_do_not_fit_are_refused():
    answers = hedge([[0.5, 0.25, 0.25]], PLANTS, 0.9)
    with pytest.raises(LabelError, match="'mapel' is not a class"):
        answer_report(["mapel"], answers)
    with pytest.raises(StructureError, match="y_true has 2 rows but there are 1 answers"):
        answer_report(["elm", "elm"], answers)
    with pytest.raises(StructureError, match="at least one answer"):
        answer_report([], hedge(np.empty((0, 3)), PLANTS, 0.9))
