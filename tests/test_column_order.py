"""Columns of probabilities are read by name: an order is never guessed."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure

from structent import (
    LabelError,
    StructureError,
    circular,
    decisions,
    hierarchy,
    metrics,
    plots,
    trivial,
)

SEASONS = hierarchy(
    {"spring": ("mild",), "summer": ("extreme",), "autumn": ("mild",), "winter": ("extreme",)},
    level_names=["kind"],
)
SORTED = sorted(SEASONS.classes)
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.full(4, 0.5), size=60)  # in the structure's order
MOVED = PROBA[:, [SEASONS.classes.index(label) for label in SORTED]]  # as predict_proba has it
Y = [SEASONS.classes[(row.argmax() + 2 * (row.max() < 0.6)) % 4] for row in PROBA]
SCORES = RNG.random(30)


def axes():
    return Figure().add_subplot()


def confusion(proba, **options):
    ax = plots.plot_confusion(Y, proba, SEASONS, axes(), **options)
    return ax.get_images()[0].get_array().tolist()


def reliability_line(proba, **options):
    ax = plots.plot_reliability(Y, proba, SEASONS, "kind", axes(), **options)
    return ax.lines[-1].get_xydata().tolist()


def calibrated(proba, **options):
    return decisions.calibrated_hedge(proba, SEASONS, 0.6, SCORES, **options).sets


def bins(proba, **options):
    return np.array(plots.reliability(Y, proba, SEASONS, "kind", **options)).tolist()


def shares(proba, **options):
    return plots.confusion_shares(Y, proba, SEASONS, **options).tolist()


def of_metric(metric, **more):
    return lambda proba, **options: metric(Y, proba, SEASONS, **more, **options)


# Every function that takes probabilities, by name; each returns what can be compared.
FUNCTIONS = {
    "structured_log_loss": of_metric(metrics.structured_log_loss),
    "block_log_loss": of_metric(metrics.block_log_loss, level="kind"),
    "block_accuracy": of_metric(metrics.block_accuracy, level="kind"),
    "calibration_error": of_metric(metrics.calibration_error),
    "mistake_severity": of_metric(metrics.mistake_severity),
    "average_distance": of_metric(metrics.average_distance),
    "skill": of_metric(metrics.skill),
    "level_report": of_metric(metrics.level_report),
    "block_proba": lambda proba, **options: metrics.block_proba(
        proba, SEASONS.partitions[0], **options
    ).tolist(),
    "hedge": lambda proba, **options: decisions.hedge(proba, SEASONS, 0.7, **options).sets,
    "calibrated_hedge": calibrated,
    "block_scores": lambda proba, **options: decisions.block_scores(
        Y, proba, SEASONS, **options
    ).tolist(),
    "minimum_risk": lambda proba, **options: decisions.minimum_risk(
        proba, SEASONS, **options
    ).tolist(),
    "plot_confusion": confusion,
    "confusion_shares": shares,
    "plot_reliability": reliability_line,
    "reliability": bins,
}


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return FUNCTIONS[request.param]


def test_no_function_that_takes_probabilities_is_left_out():
    public = [getattr(package, name) for package in (metrics, decisions, plots)
              for name in package.__all__]  # fmt: skip
    taking = [f.__name__ for f in public
              if inspect.isfunction(f) and "proba" in inspect.signature(f).parameters]  # fmt: skip
    assert set(taking) == set(FUNCTIONS)


def test_columns_without_names_are_refused_if_they_could_be_read_in_two_orders(function):
    message = (
        r"proba has no names for its columns, and the structure's order \(spring, summer, \.\.\.\) "
        r"is not the sorted one \(autumn, spring, \.\.\.\); pass classes=model\.classes_, or "
        r"classes=structure\.classes if the columns are in the structure's order"
    )
    for proba in (PROBA, pd.DataFrame(PROBA)):
        with pytest.raises(StructureError, match=message):
            function(proba)


def test_the_classes_say_which_column_is_which(function):
    expected = function(PROBA, classes=SEASONS.classes)
    assert function(MOVED, classes=np.array(SORTED)) == expected
    assert function(MOVED, classes=SEASONS.classes) != expected


def test_a_data_frame_says_it_itself(function):
    expected = function(PROBA, classes=SEASONS.classes)
    assert function(pd.DataFrame(MOVED, columns=SORTED)) == expected
    assert function(pl.DataFrame(MOVED, schema=SORTED)) == expected


@pytest.mark.requires("dask")
def test_so_does_a_data_frame_of_dask():
    import dask.array as da
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(MOVED, columns=SORTED), npartitions=3)
    labels = dd.from_pandas(pd.Series(Y), npartitions=3)
    expected = metrics.structured_log_loss(Y, PROBA, SEASONS, classes=SEASONS.classes)
    assert metrics.structured_log_loss(labels, frame, SEASONS) == pytest.approx(expected)
    with pytest.raises(StructureError, match="proba has no names for its columns"):
        metrics.structured_log_loss(Y, da.from_array(MOVED, chunks=20), SEASONS)


def test_a_data_frame_in_another_order_is_never_read_by_position():
    sides = trivial(["heads", "tails"])
    frame = pd.DataFrame([[0.9, 0.1]], columns=["tails", "heads"])
    assert decisions.minimum_risk(frame, sides).tolist() == ["tails"]
    with pytest.raises(LabelError, match="'edge' is not a class of the structure"):
        decisions.minimum_risk(pd.DataFrame([[0.9, 0.1]], columns=["heads", "edge"]), sides)


def test_the_prior_is_in_the_order_of_the_named_columns():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    expected = metrics.skill(Y, PROBA, SEASONS, prior=prior, classes=SEASONS.classes)
    order = [SEASONS.classes.index(label) for label in SORTED]
    frame = pd.DataFrame(MOVED, columns=SORTED)
    assert metrics.skill(Y, frame, SEASONS, prior=prior[order]) == expected


@pytest.mark.parametrize(
    "classes",
    [["a", "b", "c"], range(3), [False, True], [("a", 2), ("b", 1)], ["only"]],
)
def test_sorted_classes_need_no_names(classes):
    structure = trivial(classes)
    proba = np.eye(structure.n_classes)
    assert metrics.block_accuracy(list(structure.classes), proba, structure) == 1.0
    # Nor do names that mean nothing to the structure get in the way.
    table = pd.DataFrame(proba, columns=[f"column {i}" for i in range(structure.n_classes)])
    assert metrics.block_accuracy(list(structure.classes), table, structure) == 1.0


def test_classes_that_cannot_be_sorted_have_one_order_only():
    mixed = trivial(["b", 1, "a"])
    assert metrics.block_accuracy(["b", 1, "a"], np.eye(3), mixed) == 1.0


def test_the_error_shows_where_the_orders_differ():
    sizes = trivial(["L", "M", "XL", "S"])
    with pytest.raises(StructureError, match=r"order \(\.\.\., XL, S\) .* one \(\.\.\., S, XL\)"):
        metrics.block_accuracy(["L"], [[1.0, 0.0, 0.0, 0.0]], sizes)


def test_an_estimator_knows_the_order():
    class Model:
        classes_ = np.array(SORTED)

        def predict_proba(self, rows):
            return MOVED[rows]

    score = metrics.scorer(metrics.block_accuracy, SEASONS)
    expected = metrics.block_accuracy(Y, PROBA, SEASONS, classes=SEASONS.classes)
    assert score(Model(), np.arange(60), Y) == expected


def test_months_by_number_are_in_the_order_of_the_year():
    assert decisions.hedge([np.eye(12)[0]], circular(range(1, 13)), 0.9).names == ("1",)
