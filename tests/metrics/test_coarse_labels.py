"""Metrics of rows that are known by a block or a set of classes alone."""

import numpy as np
import pytest
from hypothesis import given

from structent import StructureError, circular, hierarchy, trivial
from structent.metrics import (
    block_accuracy,
    block_log_loss,
    calibration_error,
    level_report,
    structured_log_loss,
)
from structent.metrics.scorers import scorer
from tests.strategies import structured_variables

PATHS = {"ash": ("tree",), "elm": ("tree",), "rose": ("flower",), "tulip": ("flower",)}
PLANTS = hierarchy(PATHS, level_names=["kind"], weights=[0.4, 0.6])
PROBA = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.6, 0.1, 0.2, 0.1]])
COARSE = ["tree", "tulip", {"elm", "rose"}]


def test_the_structured_loss_of_coarse_rows_is_that_of_the_definition():
    loss = structured_log_loss(COARSE, PROBA, PLANTS, allow_blocks=True)
    tree = -np.log(0.7)  # the block holds it, and of the singletons none does: the set itself
    tulip = -0.4 * np.log(0.7) - 0.6 * np.log(0.4)
    elm_or_rose = -np.log(0.3)  # every partition cuts it
    assert loss == pytest.approx((tree + tulip + elm_or_rose) / 3)


def test_plain_log_loss_of_a_coarse_row_is_that_of_its_set():
    expected = -np.log([0.7, 0.4, 0.3]).mean()
    assert block_log_loss(COARSE, PROBA, PLANTS, allow_blocks=True) == pytest.approx(expected)


@given(structured_variables())
def test_a_set_of_one_class_is_that_class_and_a_set_of_all_says_nothing(variable):
    structure, q = variable
    proba = np.full((2, structure.n_classes), 1 / structure.n_classes) if q.min() == 0 else [q, q]
    first, every = structure.classes[0], frozenset(structure.classes)
    named = {"classes": structure.classes}
    fine = structured_log_loss([first, first], proba, structure, **named)
    labels = np.fromiter([first, frozenset([first])], dtype=object, count=2)
    assert structured_log_loss(labels, proba, structure, allow_blocks=True, **named) == fine
    nothing = structured_log_loss([every, every], proba, structure, allow_blocks=True, **named)
    assert nothing == pytest.approx(0, abs=1e-12)


def test_accuracy_counts_a_coarse_row_where_one_block_holds_it():
    accuracy = {
        level: block_accuracy(COARSE, PROBA, PLANTS, level=level, allow_blocks=True)
        for level in ("kind", "class")
    }
    assert accuracy == {"kind": 1.0, "class": 1.0}  # of the first two rows, and of the second
    wrong = ["flower", "ash", {"elm", "rose"}]
    assert block_accuracy(wrong, PROBA, PLANTS, level="kind", allow_blocks=True) == 0.0


def test_a_level_of_many_partitions_counts_a_coarse_row_in_those_that_hold_it():
    months = circular(range(6), width=3)
    proba = np.array([[0.3, 0.2, 0.1, 0.2, 0.1, 0.1], [0.1, 0.1, 0.1, 0.3, 0.2, 0.2]])
    # One of three rotations holds {0, 1, 2}, where it is a hit; 5 is a hit in all but one.
    hits = []
    for partition in months.levels["width 3"]:
        sums = [[row[list(block)].sum() for block in partition.blocks] for row in proba]
        best = [partition.blocks[int(np.argmax(row))] for row in sums]
        hits += [5 in best[1]] + ([best[0] == (0, 1, 2)] if (0, 1, 2) in partition.blocks else [])
    labels = np.array([frozenset({0, 1, 2}), 5], dtype=object)
    found = block_accuracy(labels, proba, months, level="width 3", allow_blocks=True)
    assert len(hits) == 4
    assert found == pytest.approx(np.mean(hits))


def test_the_report_says_how_many_rows_were_judged_at_each_level():
    report = level_report(COARSE, PROBA, PLANTS, allow_blocks=True)
    assert [(row.level, row.n_rows) for row in report.rows] == [("kind", 2), ("class", 1)]
    assert report.n == 3
    assert report.rows[0].log_loss == pytest.approx(-np.log(0.7))
    assert report.rows[1].log_loss == pytest.approx(-np.log(0.4))
    assert report.mistake_severity == 0
    assert "rows judged" in str(report)
    assert "rows judged" not in str(level_report(["ash", "elm", "rose"], PROBA, PLANTS))


def test_a_level_that_judges_no_row_has_no_score():
    report = level_report(["tree"] * 3, PROBA, PLANTS, allow_blocks=True)
    classes = report.rows[-1]
    assert classes.n_rows == 0
    assert np.isnan([classes.log_loss, classes.accuracy, classes.skill, report.skill]).all()
    for metric in (block_accuracy, calibration_error):
        with pytest.raises(StructureError, match="there must be a row whose label is within one"):
            metric(["tree"] * 3, PROBA, PLANTS, allow_blocks=True)


def test_rows_of_known_class_have_the_scores_they_have_without_blocks():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=50)
    labels = rng.choice(PLANTS.classes, size=50)
    assert level_report(labels, proba, PLANTS, allow_blocks=True) == level_report(
        labels, proba, PLANTS
    )


@pytest.mark.requires("dask")
def test_a_dask_array_gives_what_the_whole_table_does():
    import dask.array as da

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=40)
    pool = [*PLANTS.classes, "tree", "flower", frozenset({"elm", "rose"})]
    labels = np.array([pool[i] for i in rng.integers(len(pool), size=40)], dtype=object)
    lazy = da.from_array(proba, chunks=(15, 4))
    whole, chunks = (level_report(labels, p, PLANTS, allow_blocks=True) for p in (proba, lazy))
    assert str(whole) == str(chunks)
    assert whole.structured_log_loss == pytest.approx(chunks.structured_log_loss)


def test_a_block_is_no_class_unless_it_is_allowed():
    with pytest.raises(ValueError, match="'tree' is not a class of the structure"):
        structured_log_loss(["tree"] * 3, PROBA, PLANTS)
    with pytest.raises(ValueError, match="'bush' is not a class or block of the structure"):
        structured_log_loss(["bush"] * 3, PROBA, PLANTS, allow_blocks=True)


def test_a_scorer_takes_coarse_labels():
    class Model:
        classes_ = np.array(PLANTS.classes)

        def predict_proba(self, _):
            return PROBA

    score = scorer(structured_log_loss, trivial(PLANTS.classes), allow_blocks=True)
    labels = [{"ash", "elm"}, "tulip", {"elm", "rose"}]
    assert score(Model(), None, labels) == pytest.approx(np.log([0.7, 0.4, 0.3]).mean())
