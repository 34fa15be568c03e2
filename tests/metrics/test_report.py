"""The report of all levels."""

import json

import numpy as np

from structent import Partition, RandomPartition, circular, hierarchy, metrics
from structent.metrics import level_report
from tests.metrics.problems import random_rows

PLANTS = hierarchy(
    {
        "daisy": ("plant", "flower"),
        "maple": ("plant", "tree"),
        "oak": ("plant", "tree"),
        "trout": ("animal", "fish"),
    },
    level_names=["kingdom", "family"],
)


def test_each_row_holds_the_scores_of_its_level():
    y_true, proba, weights = random_rows(PLANTS, 60)
    report = level_report(y_true, proba, PLANTS, sample_weight=weights)
    assert [(row.level, row.n_blocks) for row in report.rows] == [
        ("kingdom", 2),
        ("family", 3),
        ("class", 4),
    ]
    for row in report.rows:
        for score, function in [
            (row.log_loss, metrics.block_log_loss),
            (row.accuracy, metrics.block_accuracy),
            (row.calibration_error, metrics.calibration_error),
        ]:
            assert score == function(y_true, proba, PLANTS, level=row.level, sample_weight=weights)
        level = PLANTS.level(row.level)
        assert row.skill == metrics.skill(y_true, proba, level, sample_weight=weights)


def test_the_whole_structure_is_scored_too():
    y_true, proba, _ = random_rows(PLANTS, 60)
    report = level_report(y_true, proba, PLANTS)
    assert report.n == 60
    for name in ("structured_log_loss", "skill", "mistake_severity", "average_distance"):
        assert getattr(report, name) == getattr(metrics, name)(y_true, proba, PLANTS)


def test_the_skill_is_against_the_prior_given_in_the_order_of_the_columns():
    y_true, proba, _ = random_rows(PLANTS, 60)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    report = level_report(
        y_true, proba[:, ::-1], PLANTS, prior=prior[::-1], classes=PLANTS.classes[::-1]
    )
    assert report.skill == metrics.skill(y_true, proba, PLANTS, prior=prior)
    kingdom = metrics.skill(y_true, proba, PLANTS.level("kingdom"), prior=prior)
    assert report.rows[0].skill == kingdom


def test_partitions_of_one_level_share_a_row():
    months = circular(range(12))
    report = level_report(*random_rows(months, 60)[:2], months)
    assert [(row.level, row.n_blocks) for row in report.rows] == [("width 3", 4), ("class", 12)]


def test_the_classes_have_a_row_even_where_the_structure_lacks_the_singletons():
    halves = RandomPartition([Partition.from_blocks([["a", "b"], ["c", "d"]])])
    y_true, proba, _ = random_rows(halves, 20)
    report = level_report(y_true, proba, halves)
    assert [row.level for row in report.rows] == ["level 1", "class"]
    assert report.rows[1].log_loss == metrics.block_log_loss(y_true, proba, halves)


def test_it_prints_as_a_table_whose_columns_are_aligned():
    named = hierarchy({"a": ("x",), "b": ("x",)}, level_names=["a level whose name is rather long"])
    report = level_report(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], named)
    assert str(report) == (
        "level                     blocks  log loss  accuracy  calibration error    skill\n"
        "a level whose name is...       1    0.0000    1.0000             0.0000   0.0000\n"
        "class                          2       inf    0.5000             0.5000     -inf\n"
        "\n"
        "structured log loss       inf  nats, over 2 rows\n"
        "skill                    -inf  of the loss of the class prior saved\n"
        "mistake severity       1.0000  distance, over the mistakes\n"
        "average distance       0.5000  distance, over all rows"
    )


def test_one_row_is_not_called_rows():
    report = level_report(["daisy"], [[0.7, 0.1, 0.1, 0.1]], PLANTS)
    assert "nats, over 1 row\n" in str(report)


def test_as_a_dictionary_it_goes_through_json():
    report = level_report(*random_rows(PLANTS, 60)[:2], PLANTS)
    content = json.loads(json.dumps(report.to_dict()))
    assert content["rows"][0]["level"] == "kingdom"
    assert content["rows"][2]["accuracy"] == report.rows[2].accuracy
    assert content["structured_log_loss"] == report.structured_log_loss
