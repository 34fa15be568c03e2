"""What every metric asks of its rows, and what it makes of weights and of the columns' order."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from structent import (
    LabelError,
    Partition,
    SpanningTreePartitions,
    StructureError,
    circular,
    hierarchy,
    metrics,
)
from structent.structure import catalog
from tests.metrics.problems import METRICS, random_rows

PLANTS = hierarchy(
    {"rose": ("flower",), "oak": ("tree",), "maple": ("tree",), "tulip": ("flower",)}
)


@pytest.fixture(params=METRICS)
def metric(request):
    function, options = METRICS[request.param]

    def score(y_true, proba, *, classes=PLANTS.classes, **more):
        return function(y_true, proba, PLANTS, classes=classes, **options, **more)

    return score


@pytest.fixture
def rows():
    return random_rows(PLANTS, 40)


# The bins of the calibration error hold equal numbers of rows, whatever their weights.
@pytest.mark.parametrize("metric", sorted(METRICS.keys() - {"calibration error"}), indirect=True)
def test_an_integer_weight_is_a_repeated_row(metric, rows):
    y_true, proba, _ = rows
    times = np.random.default_rng(2).integers(0, 4, size=len(y_true))
    expected = metric(np.repeat(y_true, times), np.repeat(proba, times, axis=0))
    found = metric(y_true, proba, sample_weight=times)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_only_the_ratios_of_the_weights_matter(metric, rows):
    y_true, proba, weights = rows
    expected = metric(y_true, proba, sample_weight=weights)
    found = metric(y_true, proba, sample_weight=1000 * weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert abs(found - metric(y_true, proba)) > 1e-6


@pytest.mark.parametrize("as_given", [list, np.array, pd.Series])
def test_columns_are_matched_by_the_classes_given(metric, rows, as_given):
    y_true, proba, _ = rows
    classes = sorted(PLANTS.classes)
    moved = proba[:, [PLANTS.classes.index(label) for label in classes]]
    expected = metric(y_true, proba)
    found = metric(as_given(y_true), moved, classes=as_given(classes))
    assert found == expected
    assert abs(found - metric(y_true, moved)) > 1e-6


def test_every_metric_is_a_plain_number(metric, rows):
    assert type(metric(*rows[:2])) is float


def test_probabilities_may_be_of_single_precision(metric, rows):
    y_true, proba, _ = rows
    expected = metric(y_true, proba)
    np.testing.assert_allclose(metric(y_true, proba.astype(np.float32)), expected, rtol=1e-5)


ONE_ROW = [[0.4, 0.3, 0.2, 0.1]]


@pytest.mark.parametrize(
    ("y_true", "proba", "options", "message"),
    [
        (["oak"], [[0.5, 0.5]], {}, "structure covers 4 classes but axis -1 of proba has 2"),
        (["oak"], ONE_ROW[0], {}, r"proba must have 2 axes, rows and classes, got shape \(4,\)"),
        (["oak"], [[0.4, 0.3, 0.2, 0.2]], {}, "proba must sum to 1 .* got a sum of 1.1"),
        (["oak"], [[0.6, 0.6, -0.2, 0.0]], {}, "proba must hold probabilities, got -0.2 below 0"),
        (["oak"], [[np.nan] * 4], {}, "proba must hold probabilities, got NaN"),
        (["oak", "oak"], ONE_ROW, {}, "y_true has 2 rows but proba has 1"),
        ([], np.empty((0, 4)), {}, "at least one row with a weight above 0, got none"),
        (["oak"], ONE_ROW, {"sample_weight": [0]}, "at least one row with a weight above 0"),
        (["oak"], ONE_ROW, {"sample_weight": [-1]}, "sample_weight must be .* negative, got -1"),
        (["oak"], ONE_ROW, {"sample_weight": [np.inf]}, "sample_weight must be finite .* got inf"),
        (["oak"], ONE_ROW, {"sample_weight": [np.nan]}, "sample_weight must be finite .* got nan"),
        (["oak"], ONE_ROW, {"sample_weight": [1, 2]}, r"each of the 1 rows, got .* shape \(2,\)"),
        (["oak"], ONE_ROW, {"sample_weight": ["1"]}, "one number for each of the 1 rows, got <U1"),
        (["oak"], ONE_ROW, {"classes": ["oak", "rose", "tulip"]}, "got no column for 'maple'"),
        (["oak"], ONE_ROW, {"classes": ["oak"] * 4}, "got no column for 'rose'"),
        (
            ["oak"],
            ONE_ROW,
            {"classes": ["oak", "oak", "rose", "maple", "tulip"]},
            "got 2 columns for 'oak'",
        ),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(metric, y_true, proba, options, message):
    with pytest.raises(StructureError, match=message):
        metric(y_true, proba, **options)


@pytest.mark.parametrize(
    ("y_true", "options"), [(["oka"], {}), (["oak"], {"classes": ["oka", "rose", "maple"]})]
)
def test_a_label_outside_of_the_structure_is_named(metric, y_true, options):
    with pytest.raises(LabelError, match=r"'oka' is not a class .* did you mean 'oak'"):
        metric(y_true, ONE_ROW, **options)


@pytest.mark.parametrize(
    "metric_of_a_level",
    [metrics.block_log_loss, metrics.block_accuracy, metrics.calibration_error],
)
def test_a_level_must_be_one_of_the_structure(metric_of_a_level):
    with pytest.raises(LabelError, match="'level 9' is not a level of the structure"):
        metric_of_a_level(["oak"], ONE_ROW, PLANTS, level="level 9")
    with pytest.raises(StructureError, match="level must be None for a Partition"):
        metric_of_a_level(["oak"], ONE_ROW, PLANTS.partitions[0], level="level 1")


def test_a_structure_must_be_a_random_partition():
    sampler = SpanningTreePartitions(catalog.california_counties(), 5, 0.5)
    for function in (metrics.structured_log_loss, metrics.skill, metrics.mistake_severity):
        with pytest.raises(StructureError, match="must be a RandomPartition, got SpanningTree"):
            function(["oak"], ONE_ROW, sampler)
    with pytest.raises(StructureError, match="must be a RandomPartition, got Partition"):
        metrics.structured_log_loss(["a"], [[1.0]], Partition.singletons(["a"]))


def test_labels_of_any_kind_are_matched_by_value():
    pairs = circular([("cold", 1), ("hot", 1), ("hot", 2)], width=2)
    y_true, proba, _ = random_rows(pairs, 10)
    codes = [pairs.classes.index(label) for label in y_true]
    expected = -np.log(proba[np.arange(10), codes]).mean()
    np.testing.assert_allclose(metrics.block_log_loss(y_true, proba, pairs), expected)


def test_importing_metrics_and_decisions_loads_no_framework():
    code = (
        "import sys, structent.metrics, structent.decisions;"
        "print({'sklearn', 'dask', 'pandas', 'torch', 'xgboost'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
