"""Figures of what studies find."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from structent.plots import (
    plot_differences,
    plot_gain,
    plot_learning_curve,
    plot_null_distribution,
)
from structent.structure import catalog
from structent.studies.comparison import LearningCurve
from tests.studies.made import made_comparison
from tests.studies.made_tests import made_test


def test_every_fold_the_mean_and_the_interval_are_drawn_beside_zero():
    comparison = made_comparison(catalog.months())
    ax = plot_differences(comparison, Figure().add_subplot())
    drawn = [line.get_xdata() for line in ax.lines]
    zero, *rest = drawn
    assert list(zero) == [0.0, 0.0]
    for found, lines in zip(
        (comparison.against_scrambled, comparison.against_none), (rest[:3], rest[3:]), strict=True
    ):
        folds, interval, mean = lines
        np.testing.assert_array_equal(folds, found.per_split)
        assert list(interval) == [found.low, found.high]
        assert list(mean) == [found.mean]
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "against\nscrambled copies",
        "against\nno structure",
    ]


@pytest.mark.parametrize(
    ("metric", "named"),
    [
        ("log loss", "difference of class log loss, nats per row"),
        ("accuracy", "difference of class error, share of the rows"),
    ],
)
def test_the_axis_names_what_was_compared(metric, named):
    comparison = replace(made_comparison(catalog.months()), metric=metric)
    ax = plot_differences(comparison, Figure().add_subplot())
    assert ax.get_xlabel() == f"{named}\n(below 0 the structure is better)"


def test_the_differences_of_a_test_are_of_log_loss():
    ax = plot_differences(made_test(catalog.months()), Figure().add_subplot())
    assert "difference of class log loss, nats per row" in ax.get_xlabel()


def test_a_gain_is_right_of_zero_with_its_interval_and_its_numbers():
    comparison = made_comparison(catalog.months())
    ax = plot_gain(comparison, Figure().add_subplot())
    copies, copies_mean, none, none_mean, zero = [line.get_xdata() for line in ax.lines]
    for interval, mean, found in (
        (copies, copies_mean, comparison.against_scrambled),
        (none, none_mean, comparison.against_none),
    ):
        assert list(interval) == [-found.high, -found.low]
        assert list(mean) == [-found.mean]
    assert list(zero) == [0.0, 0.0]
    assert ax.texts[1].get_text().startswith(f"{-comparison.against_none.mean:+.3f}\n(")


@pytest.mark.parametrize(("metric", "named"), [("log loss", "lower"), ("accuracy", "higher")])
def test_the_axis_of_the_gain_names_what_is_gained(metric, named):
    comparison = replace(made_comparison(catalog.months()), metric=metric)
    label = plot_gain(comparison, Figure().add_subplot()).get_xlabel()
    assert f"by how much {metric} is {named}" in label


CURVE = LearningCurve(
    (100, 1000), np.array([[2.0, 2.2], [1.0, 1.4]]), np.array([[1.9, 1.9], [0.9, 0.9]])
)


def test_means_are_drawn_at_the_numbers_of_rows():
    ax = plot_learning_curve(CURVE, Figure().add_subplot())
    points = [bars.lines[0].get_xydata().tolist() for bars in ax.containers]
    assert points == [
        [[100, pytest.approx(2.1)], [1000, pytest.approx(1.2)]],
        [[100, 1.9], [1000, 0.9]],
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["100", "1,000"]


def test_bars_are_standard_errors():
    ax = plot_learning_curve(CURVE, Figure().add_subplot())
    (bar, _) = ax.containers[0].lines[2][0].get_segments()
    # Two folds, 2.0 and 2.2: a standard deviation of .2 / sqrt(2), so an error of .1.
    np.testing.assert_allclose(bar[:, 1], [2.0, 2.2], rtol=1e-12)


def test_one_fold_has_no_error():
    one = LearningCurve((100,), np.array([[2.0]]), np.array([[1.9]]))
    ax = plot_learning_curve(one, Figure().add_subplot())
    assert not ax.containers[0].has_yerr


def test_every_copy_the_structure_and_none_are_drawn():
    found = made_test(catalog.months())
    ax = plot_null_distribution(found, Figure().add_subplot())
    copies, structure, none = [line.get_xdata() for line in ax.lines]
    np.testing.assert_array_equal(copies, found.null_losses.mean(axis=1))
    assert list(structure) == [found.losses.mean()] * 2
    assert list(none) == [found.losses_without.mean()] * 2
    assert sum(bar.get_height() for bar in ax.patches) == 99


def test_the_legend_says_what_is_what():
    ax = plot_null_distribution(made_test(catalog.months()), Figure().add_subplot())
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "scrambled copies (99)" in names
    assert any(name.endswith("p = 0.01") for name in names)


def test_a_single_copy_can_be_drawn():
    found = made_test(catalog.months(), n_copies=1)
    assert plot_null_distribution(found, Figure().add_subplot()).patches
